"""What a served loop showed: tables for the terminal, and the page of its A/B test with the truth added."""

from dataclasses import replace

from towpath.abtest.page import experiment_page, interval_cell
from towpath.abtest.served_loop import ServedLoop
from towpath.reports.page import Page, Section
from towpath.reports.tables import NOTHING, Cell, Table
from towpath.stats.estimate import Estimate
from towpath.stats.spread import scaled

# What the test measures, and the truth that it estimates.
_PAIRS = {"click_rate": ("clicks", "click_rate"), "gmv_per_visitor": ("value of orders", "value_per_list")}
_SHARES = "True relevance of the lists, as a share of the best lists that could have been shown."
_MODELS = "Clicks to expect in truth on a list by the models of each week, for the same users and candidates."
_TRUTH = "Lift over the control: what the test says, and what is true of the lists that were shown."


def loop_page(loop: ServedLoop) -> Page:
    """The page of the test, with what is true of the world next to it."""
    page = experiment_page(loop.experiment)
    added = (
        Section("The test and the truth", tables=(truth_table(loop),)),
        Section(
            "Do arms get better by learning from their own log?",
            tuple(learning_sentences(loop)),
            tables=(models_table(loop),),
        ),
        Section(
            "The lists of each week",
            (
                "These shares can fall while the models get better: what users have clicked is not shown "
                "again, so the good items that a model knows run out first.",
            ),
            tables=(shares_table(loop),),
        ),
    )
    return replace(
        page,
        title="Served loop: " + ", ".join(loop.experiment.arms),
        sections=(*added, *page.sections),
        footer="Made by towpath simulate serve.",
    )


def learning_sentences(loop: ServedLoop) -> list[str]:
    """For each arm, by how much the models of its last week differ from those of its first."""
    return [
        f"{arm}: a list by the models of week {len(models.start.weeks)} gets {_change(models.start.gain)} "
        f"clicks, compared with week 1, out of what could be shown before the first day, and "
        f"{_change(models.end.gain)} out of what is left after the last."
        for arm, models in loop.models.items()
        if len(models.start.weeks) > 1
    ]


def _change(gain: Estimate) -> str:
    return f"{gain.mean:+.2f} ({gain.low:+.2f} to {gain.high:+.2f})"


def models_table(loop: ServedLoop) -> Table:
    """The models of each week, like for like."""
    weeks = max((len(models.start.weeks) for models in loop.models.values()), default=1)
    rows = tuple(
        (arm, candidates, *values.weeks, values.gain if weeks > 1 else NOTHING)
        for arm, models in loop.models.items()
        for candidates, values in (
            ("before the first day", models.start),
            ("left after the last", models.end),
        )
    )
    columns = ("arm", "candidates", *_weeks(weeks), f"week {weeks} less week 1")
    return Table(columns, rows, _MODELS, decimals=2)


def shares_table(loop: ServedLoop) -> Table:
    """The share of the best lists, week by week."""
    shares = loop.weeks()
    longest = max(map(len, shares.values()))
    rows = tuple(
        (arm, *(f"{share:.1%}" for share in mine), *[NOTHING] * (longest - len(mine)))
        for arm, mine in shares.items()
    )
    return Table(("arm", *_weeks(longest)), rows, _SHARES)


def truth_table(loop: ServedLoop) -> Table:
    """The lifts of the test next to the true ones, in per cent."""
    true = loop.true_lifts()
    rows: list[tuple[Cell, ...]] = []
    for lift in loop.experiment.lifts:
        if lift.metric in _PAIRS and lift.arm in true:
            name, key = _PAIRS[lift.metric]
            truth = true[lift.arm][key]
            covers = "yes" if lift.relative.covers(truth) else "no"
            rows.append((lift.arm, name, interval_cell(scaled(lift.relative, 100)), 100 * truth, covers))
    columns = ("arm", "lift of", "test, %", "truth, %", "truth within the interval")
    return Table(columns, tuple(rows), _TRUTH, decimals=1)


def _weeks(count: int) -> list[str]:
    return [f"week {number}" for number in range(1, count + 1)]
