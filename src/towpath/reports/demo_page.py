"""The demonstration as a page that can be read without knowing the field."""

import numpy as np
from numpy.typing import NDArray

from towpath.experiments.demo import BASELINE, SEEDS, Demonstration, K, Trial
from towpath.reports.figures import Dot, draw_dots
from towpath.reports.page import Page, Section
from towpath.reports.tables import Interval, Table

_PAIRED = f"Difference to {BASELINE}, user by user and seed by seed; the brackets hold the 95 % interval."
_KINDS = {
    "popularity": "popularity shows everyone what most people clicked",
    "ease": "ease learns from which items are clicked together",
    "mf": "mf (matrix factorisation) gives every user and item a short list of numbers and matches them",
    "transport": "transport trains the same mf with more care for what it will show itself",
}


def demo_page(demo: Demonstration) -> Page:
    """The page: what the log holds, what it says about each recommender, what each would really earn."""
    judged = len(demo.trials[0].full[0].users)
    return Page(
        title="What would a recommender earn once it is switched on?",
        lead=_lead(demo),
        sections=(
            _log_section(demo),
            _offline_section(demo),
            _truth_section(demo),
            _gap_section(demo),
            _NEXT,
        ),
        footer="Made by towpath demo on one simulated world; in another the order may be another. What is "
        f"trained step by step was trained with {SEEDS} seeds. Intervals are over {judged:,} users.",
    )


def summary_table(demo: Demonstration) -> Table:
    """One row per recommender, truly best first: what the log says, then the truth."""
    columns = ("recommender", f"Hit@{K} full", "sampled", "never tried", "true clicks per list")
    return Table(columns, tuple(_summary(trial) for trial in demo.ranked("rel")))


def difference_table(demo: Demonstration) -> Table:
    """Every other recommender against the baseline: hits in the log and true clicks."""
    found = {(d.a, d.metric): Interval(d.mean, d.low, d.high) for d in demo.comparison.differences}
    rows = [
        (f"{name} − {BASELINE}", found[name, "hit"], found[name, "rel"])
        for name in (trial.name for trial in demo.ranked("rel"))
        if name != BASELINE
    ]
    return Table(("difference", f"Hit@{K} full", "true clicks per list"), tuple(rows), _PAIRED)


def _summary(trial: Trial) -> tuple[str, float, float, float, Interval]:
    hits = trial.mean("hit"), trial.mean("hit", "sampled")
    return trial.name, *hits, 1 - trial.tried_share, _interval(trial.per_user("rel"))


def _interval(values: NDArray[np.float64]) -> Interval:
    """The mean of values (users,) and its 95 % interval by the normal approximation."""
    mean, half = float(values.mean()), 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return Interval(mean, mean - half, mean + half)


def _lead(demo: Demonstration) -> str:
    best, oracle = demo.ranked("rel")[0], demo.oracle()
    return (
        f"Here {len(demo.trials)} recommenders learned from the same log of clicks. In this made-up world "
        f"the truth is known, so we can say what each would earn: {best.name} comes first with "
        f"{best.mean('rel'):.2f} clicks on a list of {K}. The best possible list earns "
        f"{oracle['best possible']:.2f}, blind choice {oracle['blind choice']:.2f}."
    )


def _log_section(demo: Demonstration) -> Section:
    world, made = demo.world, demo.settings
    blind = round(made.exploration * made.shown_per_user)
    who = (
        f"There are {made.users:,} users and {made.items:,} items. An earlier recommender showed each user "
        f"{made.shown_per_user} items: the {made.shown_per_user - blind} it thought best, the same whenever "
        f"it was asked, and {blind} chosen blindly. Users clicked {world.click_rate():.0%} of what they were "
        f"shown, which left {len(world.log):,} clicks."
    )
    how_little = (
        f"Only {world.shown_share():.1%} of all pairs of a user and an item were ever tried. About the other "
        f"{1 - world.shown_share():.1%} the log says nothing, and a new recommender will pick from them."
    )
    return Section("What the log holds", (who, how_little))


def _offline_section(demo: Demonstration) -> Section:
    kinds = [_KINDS.get(trial.name, trial.name) for trial in demo.trials]
    test = (
        "The usual test hides each user's last click and asks whether the recommender puts it among its "
        f"first {K}. The share of users for whom it does is called Hit@{K}. Ranked against the whole "
        "catalogue (full) it is much lower than against 100 random items (sampled), so the number means "
        "little without the name of the protocol. And it can reward only what the earlier recommender "
        "chose to show."
    )
    chart = draw_dots(
        [_dot(trial, "hit") for trial in demo.trials],
        axis=f"Hit@{K}, full ranking, hidden clicks",
        caption=f"Share of users whose hidden click is in the list of {K}; bars are 95 % intervals.",
    )
    return Section(
        "What the log says about each recommender", (f"{'; '.join(kinds)}.", test), figures=(chart,)
    )


def _truth_section(demo: Demonstration) -> Section:
    text = (
        "Here is what no real log can tell: the clicks to expect if the lists were shown, by the true chance "
        f"of each click. {_verdict(demo)}"
    )
    chart = draw_dots(
        [_dot(trial, "rel") for trial in demo.trials],
        axis=f"true clicks to expect on a list of {K}",
        caption="Dashed lines: blind choice, and the best list there is. Bars are 95 % intervals.",
        marks=demo.oracle(),
    )
    tables = (summary_table(demo), difference_table(demo))
    return Section("What each would really earn", (text,), tables, (chart,))


def _gap_section(demo: Demonstration) -> Section:
    shares = [1 - trial.tried_share for trial in demo.trials]
    text = (
        f"Between {min(shares):.0%} and {max(shares):.0%} of what these recommenders would show had never "
        "been shown to the same user (the column “never tried”). There they go by what they learned "
        "elsewhere, and the log cannot contradict them. The larger that part, the less a good test "
        "result promises."
    )
    return Section("Why the two can differ", (text,))


_NEXT = Section(
    "With your own data",
    (
        "A table of events with a user, an item and, if possible, a time is enough. These commands train a "
        "recommender, judge it, give a list for a user, and say whether one recommender is better than "
        "another by more than luck:",
    ),
    commands=(
        "towpath fit events.csv --model mf --out run",
        "towpath evaluate run",
        "towpath recommend run --user ID",
        "towpath compare events.csv --models mf,ease --seeds 3",
    ),
)


def _verdict(demo: Demonstration) -> str:
    log = [trial.name for trial in demo.ranked("hit")]
    truth = [trial.name for trial in demo.ranked("rel")]
    if log == truth:
        return "This time the log puts the recommenders in the order that the truth does."
    return f"The log's order was {', '.join(log)}; the true order is {', '.join(truth)}."


def _dot(trial: Trial, metric: str) -> Dot:
    spread = _interval(trial.per_user(metric))
    return Dot(trial.name, spread.value, spread.low, spread.high)
