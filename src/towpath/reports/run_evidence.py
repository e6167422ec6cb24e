"""The numbers of a diagnosis that matter for a run: what the log has seen of its lists and of differences."""

from towpath.diagnostics.contrast import Vouched
from towpath.diagnostics.evidence import LEVELS
from towpath.reports.diagnosis_page import level_names
from towpath.reports.page import Section
from towpath.reports.run_facts import THIS
from towpath.reports.tables import Cell, Table


def evidence_section(vouched: Vouched) -> Section:
    """How much of everyone's lists the held-out parts have seen, and what that leaves open."""
    names, rows = level_names(vouched.complete), list[tuple[Cell, ...]]()
    for who, found in vouched.evidence.items():
        clicks, shares = found.expected_clicks(), found.shares()
        rows.append(
            (who, *(100 * shares[level] for level in LEVELS), f"{clicks.low:.3f} to {clicks.high:.3f}")
        )
    columns = ("whose lists", *(f"{names[level]}, %" for level in LEVELS), "clicks per slot")
    apart: tuple[tuple[Cell, ...], ...] = tuple(
        (f"{one.a} and {one.b}", one.slots, 100 * one.unseen) for one in vouched.contrasts
    )
    tables = [Table(columns, tuple(rows), "Best evidence for each slot in the held-out parts.", decimals=1)]
    if apart:
        caption = "Slots in which the two differ, and how many of them the log cannot vouch for."
        tables.append(
            Table(
                ("lists of", "differ in slots", f"not {names['shown_to_user'].replace('this', 'the')}, %"),
                apart,
                caption,
                decimals=1,
            )
        )
    more = "`towpath diagnose` has the whole ladder, by item and by user segment."
    return Section("What the log can vouch for", (vouched_text(vouched), more), tuple(tables))


def vouched_text(vouched: Vouched) -> str:
    """The run's own two numbers in a sentence."""
    found = vouched.evidence[THIS]
    shares, clicks = found.shares(), found.expected_clicks()
    seen = "shown to" if vouched.complete else "clicked by"
    return (
        f"Of what the run would show, {shares['shown_to_user']:.1%} was {seen} that user in the held-out "
        f"parts and {shares['similar_users']:.1%} was often {seen} similar users. Clicks per slot may be "
        f"anything from {clicks.low:.3f} to {clicks.high:.3f}."
    )
