"""What a run recommends, next to what is in the log and what others would recommend."""

from towpath.diagnostics.dial import Dial
from towpath.diagnostics.lists import BANDS, THIN
from towpath.reports.groups import draw_groups
from towpath.reports.intervals import mean_interval
from towpath.reports.page import Section
from towpath.reports.run_facts import LOG, THIS, Recommended
from towpath.reports.tables import Cell, Table


def lists_section(recommended: Recommended) -> Section:
    """How the lists spread over the catalogue, and what they share with those of others."""
    run = recommended.spreads[THIS]
    what = (
        f"Here are the lists of {recommended.k} of {recommended.users:,} users, as they would be shown after "
        "the training and the validation part. What a user has already interacted with is left out."
    )
    known = (
        f"Of the {run.places:,} slots {recommended.known:.1%} hold an item that the user interacted with in "
        f"the test part. The other {1 - recommended.known:.1%} pair a user with an item that the log does "
        "not have for them: only showing it can tell whether it is right."
    )
    texts = (what, known) if recommended.dial is None else (what, known, dial_sentence(recommended.dial))
    order = sorted(recommended.spreads, key=lambda who: who == LOG)  # the run first, the log last
    rows = {
        band: {who: 100 * recommended.spreads[who].bands[place] for who in order}
        for place, band in enumerate(BANDS)
    }
    figure = draw_groups(
        rows,
        f"% of slots in lists ({LOG}: % of training events)",
        "Which items get the slots: items from the most popular to the least, as shares of the catalogue.",
    )
    return Section(
        "What it recommends", texts, (spread_table(recommended), shared_table(recommended)), (figure,)
    )


def dial_sentence(dial: Dial) -> str:
    """Where the lists stand between what was shown before and what never was."""
    return (
        f"{dial.shown_share:.1%} of the recommended pairs have been shown before. Their likeness to what was "
        f"shown is {dial.likeness:.2f}: 0 is that of random pairs, 1 that of the pairs in the log, by "
        "the scores of a small model that tells the two apart."
    )


def spread_table(recommended: Recommended) -> Table:
    """How slots (of the log: training events) are spread over items."""
    rows: list[tuple[Cell, ...]] = [
        (who, 100 * s.popularity, 100 * s.coverage, s.half, 100 * s.thin)
        for who, s in recommended.spreads.items()
    ]
    columns = (
        "whose slots",
        "popularity in %",
        "items shown in %",
        "items with half of the slots",
        f"items under {THIN} events in %",
    )
    caption = (
        "Popularity: mean share of users who interacted in training with the item of a slot. Items "
        "shown: share of the catalogue with at least one slot. Last column: share of the slots whose item "
        f"has fewer than {THIN} training events. For {LOG} a place is a training event."
    )
    return Table(columns, tuple(rows), caption, decimals=1)


def shared_table(recommended: Recommended) -> Table:
    """How much of each list is also in another's list for the same user."""
    rows = tuple((f"{THIS} and {who}", mean_interval(v, 100)) for who, v in recommended.shared.items())
    caption = f"Share of each list of {recommended.k} that both hold for the same user."
    return Table(("lists of", "in common in %"), rows, caption, decimals=1)
