"""The page about what the log can vouch for of what a model would show."""

from collections.abc import Sequence

import numpy as np

from towpath.bandit.overlap import Overlap
from towpath.diagnostics.diagnose import SEGMENTS, Diagnosis
from towpath.diagnostics.evidence import ENOUGH, LEVELS
from towpath.reports.groups import draw_groups
from towpath.reports.page import Page, Section
from towpath.reports.tables import Cell, Table

# How the levels are called where everything shown is logged, and where only clicks are.
NAMES = {
    "shown_to_user": "shown to this user",
    "similar_users": "shown to similar users",
    "item_known": "item known",
    "never_shown": "never shown",
}
CLICK_NAMES = {
    "shown_to_user": "clicked by this user",
    "similar_users": "clicked by similar users",
    "item_known": "item known",
    "never_shown": "hardly ever clicked",
}


def level_names(complete: bool) -> dict[str, str]:
    """What the levels are called; `complete` where the log says what was shown and not clicked."""
    return NAMES if complete else CLICK_NAMES


def diagnosis_page(found: Diagnosis, name: str) -> Page:
    """All that is known, in the order in which it matters."""
    sections = [_warnings(found), ladder_section(found), _segments(found), _items(found)]
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
    shares, clicks = found.evidence.shares(), found.evidence.expected_clicks()
    seen = "shown to" if found.complete else "clicked by"
    return (
        f"Of the {found.evidence.slots:,} slots in the lists of {found.k} of {found.users:,} users, "
        f"{shares['shown_to_user']:.1%} were {seen} that user in {found.period} and "
        f"{shares['similar_users']:.1%} often enough {seen} similar users. Clicks per slot lie between "
        f"{clicks.low:.3f} and {clicks.high:.3f}, depending on what the rest is worth."
    )


def _warnings(found: Diagnosis) -> Section:
    nothing = "Nothing stood out: the log has seen most of what this model would show."
    points = found.warnings or (nothing,)
    return Section("What to be careful about", points=(*points, *found.remarks))


def ladder_section(found: Diagnosis) -> Section:
    """The evidence ladder: the share of each level, and what follows for clicks."""
    shares, levels, names = found.evidence.shares(), found.evidence.levels, level_names(found.complete)
    rates = [_rate(found, level) for level in range(1, 5)]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (names[level], int((levels == place + 1).sum()), 100 * shares[level], rates[place])
        for place, level in enumerate(LEVELS)
    )
    levels_text = (
        f"Similar users: at least {ENOUGH} impressions of the item within a cell of users, made from "
        f"training events alone. Item known: at least {ENOUGH} impressions in all, training included."
    )
    columns = ("evidence", "slots", "% of slots", "observed clicks per slot")
    figure = draw_groups(
        {names[level]: {"lists": 100 * shares[level]} for level in LEVELS},
        "% of recommended slots",
        "Where the evidence ends: the best evidence that the log has for each recommended slot.",
    )
    return Section("Evidence", (levels_text, _clicks_text(found)), (Table(columns, rows),), (figure,))


def _clicks_text(found: Diagnosis) -> str:
    clicks = found.evidence.expected_clicks()
    text = (
        f"Clicks per slot, with the last two levels priced at 0 and at 1: {clicks.low:.4f} to "
        f"{clicks.high:.4f}. "
    )
    if found.evidence.answers is None:
        return (
            text + "Rows that were picked by their clicks say nothing about the chance of one: no interval."
        )
    (low, high), (sure_low, sure_high) = clicks.alike, clicks.sure
    return text + (
        f"With the chance in the observed clicks (95 %): {low:.4f} to {high:.4f} if similar users click "
        f"alike, and {sure_low:.4f} to {sure_high:.4f} whether they do or not."
    )


def _rate(found: Diagnosis, level: int) -> Cell:
    rates = found.evidence.rates[found.evidence.levels == level]
    return float(rates.mean()) if len(rates) and not np.isnan(rates).any() else "—"


def _segments(found: Diagnosis) -> Section:
    names, rows = level_names(found.complete), list[tuple[Cell, ...]]()
    groups: dict[str, dict[str, float]] = {}
    for name, counts in zip(SEGMENTS, found.by_segment, strict=False):
        share = 100 * counts / max(1.0, counts.sum())
        rows.append((name, int(counts.sum()), *share.tolist()))
        groups[name] = {names[level]: float(share[place]) for place, level in enumerate(LEVELS)}
    columns = ("users", "slots", *(f"{names[level]}, %" for level in LEVELS))
    figure = draw_groups(
        groups, "% of slots", "Evidence by how many training events users have, in quarters."
    )
    return Section("By user segment", (), (Table(columns, tuple(rows), decimals=1),), (figure,))


def _items(found: Diagnosis) -> Section:
    """The items that take most slots without evidence."""
    rows = tuple(
        (one.item, one.slots, one.without_evidence, 100 * one.without_evidence / one.slots)
        for one in found.items
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
    names = {
        "log_to_itself": "the log to itself (noise)",
        "log_to_recommended": "the log to what would be shown",
        "log_to_weighted": "the log to the reweighted training pairs",
        "weighted_to_recommended": "reweighted training pairs to what would be shown",
    }
    rows: list[tuple[Cell, ...]] = []
    for key, name in names.items():
        exact = getattr(d, key)
        if exact is not None:
            own = "—" if d.own_critic is None else d.own_critic[key]
            rows.append((name, exact, d.critic[key], own))
    text = (
        "Exact Wasserstein-1 distances between samples of 500 pairs, in vectors made from the training log. "
        "Only what exceeds the distance of the log to itself is a difference."
    )
    critics = (
        "A critic is a function that tries to tell the two samples apart, divided by its largest slope; it "
        "never exceeds the exact distance. The first is a small network fitted for this page. "
    ) + (
        "The run keeps no critic that can be asked about any pair (only a transport game whose players are "
        "models has one)."
        if d.own_critic is None
        else "The second is the run's own g: far below the exact distance it did not see the difference."
    )
    columns = ("from", "exact distance", "critic fitted here", "critic of the run")
    return Section("Distances", (text, critics), (Table(columns, tuple(rows)),))


def _bounds(found: Diagnosis) -> Section:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (bound.name, term, value, bound.kind)
        for bound in found.bounds.bounds
        for term, value in (*bound.terms.items(), ("sum", bound.value))
    )
    text = (
        "What the bounds of the paper come to here, on the share of slots that are not clicked. explicit: "
        "every constant is known, and it holds with probability 95 %. order only: constants are missing or "
        "taken from the sample, so terms can be compared and nothing is guaranteed. Above 1 a bound says "
        "nothing."
    )
    sgns = (
        f"Skip-gram divergence of log and lists over cells of users and items: KL {found.sgns.kl:.4f}, "
        f"2 JS {found.sgns.two_js:.4f}."
    )
    tables = (Table(("bound", "term", "value", "kind"), rows),) if rows else ()
    says = tuple(f"{bound.name}: {bound.says}." for bound in found.bounds.bounds)
    return Section("Bounds", (text, sgns), tables, points=(*says, *found.bounds.left_out))
