"""What a run recommends, next to what is in the log and what others would recommend."""

from towpath.diagnostics.lists import BANDS, THIN
from towpath.reports.groups import draw_groups
from towpath.reports.intervals import mean_interval
from towpath.reports.page import Section
from towpath.reports.run_facts import LOG, THIS, Recommended
from towpath.reports.tables import Cell, Table


def lists_section(found: Recommended) -> Section:
    """How the lists spread over the catalogue, and what they share with those of others."""
    run = found.spreads[THIS]
    what = (
        f"Here are the lists of {found.k} of {found.users:,} users, as they would be shown after the "
        "training and the validation part. What a user has already interacted with is left out."
    )
    known = (
        f"Of the {run.places:,} slots {found.known:.1%} hold an item of the user in the test "
        f"part. The other {1 - found.known:.1%} pair a user and an item that the log has never seen "
        "together. Only showing them can tell whether they are right."
    )
    order = sorted(found.spreads, key=lambda who: who == LOG)  # the run first, the log last
    rows = {
        band: {who: 100 * found.spreads[who].bands[place] for who in order}
        for place, band in enumerate(BANDS)
    }
    figure = draw_groups(
        rows,
        f"% of slots in lists ({LOG}: % of training events)",
        "How slots are spread: items from the most popular to the least, as shares of the catalogue.",
    )
    return Section("What it recommends", (what, known), (spread_table(found), shared_table(found)), (figure,))


def spread_table(found: Recommended) -> Table:
    """How slots of lists (of the log: training events) are spread over items."""
    rows: list[tuple[Cell, ...]] = [
        (who, 100 * s.popularity, 100 * s.coverage, s.half, 100 * s.thin) for who, s in found.spreads.items()
    ]
    columns = (
        "whose lists",
        "popularity in %",
        "items shown in %",
        "items with half of the slots",
        f"items under {THIN} events in %",
    )
    caption = (
        "Popularity: mean share of users who interacted in training with the item of a slot. Items "
        "shown: share of the catalogue with at least one slot. Last column: share of the slots whose item "
        f"has fewer than {THIN} training events. For {LOG} a slot is a training event."
    )
    return Table(columns, tuple(rows), caption, decimals=1)


def shared_table(found: Recommended) -> Table:
    """How much of each list is also in another's list for the same user."""
    rows = tuple((f"{THIS} and {who}", mean_interval(v, 100)) for who, v in found.shared.items())
    caption = f"Share of each list of {found.k} that both hold for the same user, with 95 % intervals."
    return Table(("lists of", "in common in %"), rows, caption, decimals=1)
