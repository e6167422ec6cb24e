"""The page about what the log can vouch for of what a model would show."""

from collections.abc import Sequence

import numpy as np

from towpath.bandit.overlap import Overlap
from towpath.data.vocabulary import Vocabulary
from towpath.diagnostics.diagnose import SEGMENTS, Diagnosis
from towpath.diagnostics.evidence import ENOUGH, LEVELS
from towpath.reports.groups import draw_groups
from towpath.reports.page import Page, Section
from towpath.reports.tables import Cell, Table

NAMES = {
    "shown_to_user": "shown to this user",
    "similar_users": "shown to similar users",
    "item_known": "item known",
    "never_shown": "never shown",
}
MOST_ITEMS = 30


def diagnosis_page(found: Diagnosis, items: Vocabulary, name: str) -> Page:
    """All that is known, in the order in which it matters."""
    sections = [_warnings(found), _ladder(found), _segments(found), _items(found, items)]
    if found.overlap is not None:
        sections.append(_overlap(found.overlap))
    return Page(
        title=f"What the log can vouch for: {name}",
        lead=_lead(found),
        sections=(*sections, _distances(found), _bounds(found)),
        footer=f"Made by towpath diagnose from the run {name}.",
        contents=True,
    )


def _lead(found: Diagnosis) -> str:
    shares = found.evidence.shares()
    low, high = found.evidence.expected_clicks()
    return (
        f"Of the {found.evidence.slots:,} slots in the lists of {found.k} of {found.users:,} users, "
        f"{shares['shown_to_user']:.1%} were shown to that user in {found.period} and "
        f"{shares['similar_users']:.1%} often enough to similar users. Clicks per slot lie between "
        f"{low.mean:.3f} and {high.mean:.3f}, depending on what the rest is worth."
    )


def _warnings(found: Diagnosis) -> Section:
    nothing = "Nothing stood out: the log has seen most of what this model would show."
    points = found.warnings or (nothing,)
    return Section("What to be careful about", points=(*points, *found.remarks))


def _ladder(found: Diagnosis) -> Section:
    shares, levels = found.evidence.shares(), found.evidence.levels
    rates = [_rate(found, level) for level in range(1, 5)]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (NAMES[level], int((levels == place + 1).sum()), 100 * shares[level], rates[place])
        for place, level in enumerate(LEVELS)
    )
    low, high = found.evidence.expected_clicks()
    text = (
        f"Similar users: at least {ENOUGH} impressions of the item within a cell of users, made from "
        f"training events alone. Item known: at least {ENOUGH} impressions in all. Slots of the last two "
        f"levels are priced at 0 and at 1: {low.mean:.4f} to {high.mean:.4f} clicks per slot, with "
        f"the chance in the clicks {low.low:.4f} to {high.high:.4f}."
    )
    columns = ("evidence", "slots", "% of slots", "observed clicks per slot")
    figure = draw_groups(
        {NAMES[level]: {"lists": 100 * shares[level]} for level in LEVELS},
        "% of recommended slots",
        "Where the evidence ends: the best evidence that the log has for each recommended slot.",
    )
    return Section("Evidence", (text,), (Table(columns, rows),), (figure,))


def _rate(found: Diagnosis, level: int) -> Cell:
    rates = found.evidence.rates[found.evidence.levels == level]
    return float(rates.mean()) if len(rates) and not np.isnan(rates).any() else "—"


def _segments(found: Diagnosis) -> Section:
    rows: list[tuple[Cell, ...]] = []
    groups: dict[str, dict[str, float]] = {}
    for name, counts in zip(SEGMENTS, found.by_segment, strict=False):
        share = 100 * counts / max(1.0, counts.sum())
        rows.append((name, int(counts.sum()), *share.tolist()))
        groups[name] = {NAMES[level]: float(share[place]) for place, level in enumerate(LEVELS)}
    columns = ("users", "slots", *(f"{NAMES[level]}, %" for level in LEVELS))
    figure = draw_groups(
        groups, "% of slots", "Evidence by how many training events users have, in quarters."
    )
    return Section("By user segment", (), (Table(columns, tuple(rows), decimals=1),), (figure,))


def _items(found: Diagnosis, items: Vocabulary) -> Section:
    """The items that take most slots without evidence."""
    unknown = found.by_item[:, 2:].sum(axis=1)
    worst = np.argsort(-unknown, kind="stable")[:MOST_ITEMS]
    worst = worst[unknown[worst] > 0]
    rows = tuple(
        (
            str(one),
            int(found.by_item[item].sum()),
            int(unknown[item]),
            100 * unknown[item] / found.by_item[item].sum(),
        )
        for one, item in zip(items.ids(worst), worst, strict=True)
    )
    text = (
        "The items with most slots that have no evidence, neither from the user nor from similar users. "
        "Showing them to a small share of users would tell most."
        if rows
        else "Every recommended item has evidence in all of its slots."
    )
    columns = ("item", "slots", "without evidence", "%")
    return Section("By item", (text,), (Table(columns, rows, decimals=1),) if rows else ())


def _overlap(overlap: Overlap) -> Section:
    rows: Sequence[tuple[Cell, ...]] = (
        ("rows with propensities", overlap.rows),
        ("effective sample size, % of rows", 100 * overlap.ess_share),
        ("unsupported mass, 1 - mean weight", overlap.unsupported_mass),
        ("its standard error", overlap.unsupported_mass_se),
        ("mass never logged at its position", overlap.never_logged_mass),
        ("mass on items with enough effective rows", overlap.mass_with_evidence),
        ("largest weight", overlap.largest_weight),
        ("its share of all weight", overlap.influential_share),
    )
    text = "What the logged propensities say about showing these lists, and nothing else, to everyone."
    return Section("Overlap", (text,), (Table(("", "value"), tuple(rows), decimals=4),))


def _distances(found: Diagnosis) -> Section:
    d = found.distances
    known = {
        "the log to itself (noise)": d.log_to_itself,
        "the log to what would be shown": d.log_to_recommended,
        "the log to the reweighted training pairs": d.log_to_weighted,
        "reweighted training pairs to what would be shown": d.weighted_to_recommended,
    }
    rows = tuple((name, value) for name, value in known.items() if value is not None)
    text = (
        "Exact Wasserstein-1 distances between samples of 500 pairs, in vectors made from the training log. "
        "Only what exceeds the distance of the log to itself is a difference."
    )
    return Section("Distances", (text,), (Table(("from", "distance"), rows),))


def _bounds(found: Diagnosis) -> Section:
    rows = tuple(
        (bound.name, bound.kind, bound.value, "yes" if bound.vacuous else "no") for bound in found.bounds
    )
    js = found.sgns.two_js
    sgns = f"Skip-gram divergence of log and lists over cells: KL {found.sgns.kl:.4f}, 2 JS {js:.4f}."
    none = "Bounds by importance weighting need propensities, and the log has none." if not rows else ""
    tables = (Table(("bound", "kind", "value", "vacuous"), rows),) if rows else ()
    return Section("Bounds", tuple(text for text in (none, sgns) if text), tables)
