"""A small page about a running server: arms, traffic, health."""

from towpath.reports.page import Page, Section, to_html
from towpath.reports.tables import Cell, Table
from towpath.serving.http.service import Service
from towpath.stats.sample_ratio import ALARM


def status_html(service: Service) -> str:
    """The page as HTML; reload it for newer numbers."""
    total = service.total()
    refused = sum(n for key, n in total.requests.items() if not key.endswith(" 200"))
    everything = sum(total.requests.values())
    health = "is ready" if service.ready else "is starting"
    lead = (
        f"This server {health}: {everything:,} requests since it started, {refused:,} of them refused; "
        f"{total.waiting:,} answers wait for the log. Reload the page for newer numbers."
    )
    return to_html(Page("Towpath server", lead, (_arms(service), _traffic(service))))


def _arms(service: Service) -> Section:
    shares, total = service.settings.shares, service.total()
    counts: dict[str, int] = {}
    for key, count in total.answers.items():
        arm = key.rsplit(" ", 1)[0]
        counts[arm] = counts.get(arm, 0) + count
    rows = tuple(
        (
            arm,
            f"{share:.1%}",
            total.users.get(arm, 0),
            service.answerer.model_of(arm).version,
            counts.get(arm, 0),
        )
        for arm, share in shares.items()
    )
    columns = ("arm", "share of users", "users", "model version", "answers")
    said = (
        "Users are not split between the arms as configured, so no lift can be trusted"
        if total.evidence >= ALARM
        else "Users are split between the arms as configured"
    )
    text = f"{said} (evidence against the configured split {total.evidence:.2g}; an alarm at {ALARM:g})."
    return Section("Arms", (text,), tables=(Table(columns, rows),))


def _traffic(service: Service) -> Section:
    total = service.total()
    rows: list[tuple[Cell, ...]] = []
    for key, count in sorted(total.requests.items()):
        endpoint, status = key.rsplit(" ", 1)
        buckets = total.durations.get(endpoint, [0.0, 0.0])
        mean = 1_000 * buckets[-1] / max(1.0, sum(buckets[:-1]))
        rows.append((endpoint, int(status), count, mean))
    columns = ("endpoint", "status", "requests", "mean time of the endpoint, ms")
    received = " and ".join(f"{total.outcomes.get(kind, 0):,} {kind}s" for kind in ("click", "order"))
    said = f"Clients have sent {received}, those that came twice included."
    return Section("Traffic", (said,), tables=(Table(columns, tuple(rows), decimals=2),))
