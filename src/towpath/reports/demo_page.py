"""The demonstration as a page that can be read without knowing the field."""

import numpy as np

from towpath.experiments.demo import BASELINE, ROUNDS, SEEDS, Demonstration, DemoResult, K
from towpath.reports.figures import ACCENT, INK, QUIET, Figure, draw_dots
from towpath.reports.intervals import mean_interval
from towpath.reports.lines import DASHED, DOTTED, SOLID, Axes, draw_lines
from towpath.reports.page import Page, Section
from towpath.reports.tables import Cell, Table
from towpath.stats.estimate import Estimate

_PAIRED = f"Difference to {BASELINE}, paired by user and seed."
_KINDS = {
    "popularity": "shows everyone what most people clicked",
    "plain": "clicks, with items that were not clicked as negatives",
    "ipw": "the same, but clicks on rarely shown items count more",
    "shown": "shown pairs alone: what was clicked and what was not",
    "imitation": "what was shown, whether it was clicked or not",
    "transport": "both, and how near to the log to stay, by impressions that it holds out",
}
# What becomes of those that learn from impressions; where one is missing, its sentence is.
_STORY = {
    "shown": "Learning from shown pairs alone tells clicks among them apart, but it never learns what the "
    "rest of the catalogue is like, and recommends from there: {untried:.0%} of its lists were never tried, "
    "and it earns {clicks:.2f} clicks.",
    "imitation": "Imitation stays near the log ({untried:.0%} never tried) and earns {clicks:.2f}: it is "
    "about as good as the earlier recommender was.",
    "transport": "Transport learns both questions on one representation and lets held-out impressions say "
    "how much each counts: {untried:.0%} never tried, {clicks:.2f} clicks.",
}
# A recommender looks the same in all charts.
_LINES = {
    "transport": (ACCENT, SOLID),
    "plain": (INK, SOLID),
    "imitation": (QUIET, SOLID),
    "shown": (QUIET, DOTTED),
}
_BARS = "95 % normal interval over users"
# Points of the curve of what was shown: enough for the eye.
_POINTS = 80


def demo_page(demo: Demonstration) -> Page:
    """The page: what the log holds, what it says about each recommender, what each would really earn."""
    evaluated = len(demo.results[0].full[0].users)
    return Page(
        title="What would a recommender earn once it is switched on?",
        lead=_lead(demo),
        sections=(
            _log_section(demo),
            _offline_section(demo),
            _lists_section(demo),
            _truth_section(demo),
            _loop_section(demo),
            _overlap_section(demo),
            _NEXT,
        ),
        footer="Made by towpath demo on one simulated world; in another the order may be another. All but "
        f"popularity were trained with {SEEDS} seeds. Intervals are over {evaluated:,} users.",
    )


def summary_table(demo: Demonstration) -> Table:
    """One row per recommender, truly best first: what the log says, then the truth."""
    columns = ("recommender", f"Hit@{K} full", "sampled", "never tried", "true clicks per list")
    return Table(columns, tuple(_summary(result) for result in demo.ranked("rel")))


def difference_table(demo: Demonstration) -> Table:
    """Every other recommender against the baseline: hits in the log and true clicks."""
    gaps = {(d.a, d.metric): d.estimate for d in demo.comparison.differences}
    rows = [
        (f"{name} − {BASELINE}", gaps[name, "hit"], gaps[name, "rel"])
        for name in (result.name for result in demo.ranked("rel"))
        if name != BASELINE
    ]
    return Table(("difference", f"Hit@{K} full", "true clicks per list"), tuple(rows), _PAIRED)


def _summary(result: DemoResult) -> tuple[str, float, float, float, Estimate]:
    hits = result.mean("hit"), result.mean("hit", "sampled")
    return result.name, *hits, 1 - result.tried_share, mean_interval(result.per_user("rel"))


def _lead(demo: Demonstration) -> str:
    best, oracle = demo.ranked("rel")[0], demo.oracle()
    return (
        f"Here {len(demo.results)} recommenders learned from the same log of what was shown and "
        "clicked. In this simulated world the truth is known, so we can say what each would earn: "
        f"{best.name} comes first with {best.mean('rel'):.2f} clicks on a list of {K}. The best "
        f"possible list earns {oracle['best possible']:.2f}, random choice {oracle['random choice']:.2f}."
    )


def _log_section(demo: Demonstration) -> Section:
    world, made = demo.world, demo.settings
    n_random = round(made.exploration * made.shown_per_user)
    who = (
        f"There are {made.users:,} users and {made.items:,} items. An earlier recommender showed each user "
        f"{made.shown_per_user} items: the {made.shown_per_user - n_random} it ranked highest and "
        f"{n_random} drawn at random. Users clicked {world.click_rate():.0%} of what they were "
        f"shown, which left {len(world.log):,} clicks."
    )
    how_little = (
        f"Only {world.shown_share():.1%} of all pairs of a user and an item were ever tried. About the other "
        f"{1 - world.shown_share():.1%} the log says nothing, and a new recommender will pick from them."
    )
    return Section("What the log holds", (who, how_little), figures=(_shown_figure(demo),))


def _shown_figure(demo: Demonstration) -> Figure:
    """How unevenly the earlier recommender spread its showings, next to what users would have liked."""
    world = demo.world
    shown = np.sort(world.exposures.item_counts / world.log.n_users)[::-1]
    ranks = np.unique(np.linspace(0, len(shown) - 1, _POINTS).astype(int))
    lines = {"shown to": [(float(rank + 1), 100 * float(shown[rank])) for rank in ranks]}
    return draw_lines(
        lines,
        Axes("items, most shown first", "% of users", whole=False),
        f"To how many users each item was ever shown: the first to {shown[0]:.0%}, half of all items to less "
        f"than {np.median(shown):.0%}.",
    )


def _offline_section(demo: Demonstration) -> Section:
    names = [result.name for result in demo.results]
    kinds = Table(("recommender", "learns from"), tuple((name, _KINDS.get(name, "")) for name in names))
    test = (
        "The usual test hides each user's last click and asks whether the recommender puts it among its "
        f"first {K}. The share of users for whom it does is called Hit@{K}. Ranked against the whole "
        "catalogue (full) it is much lower than against 100 random items (sampled), so the number means "
        "little without the name of the protocol. And it can reward only what the earlier recommender "
        "chose to show."
    )
    chart = draw_dots(
        _dots(demo, "hit"),
        axis=f"Hit@{K}, full ranking, hidden clicks",
        caption=f"Share of users whose hidden click is in the list of {K}; bars: {_BARS}.",
    )
    return Section("What the log says about each recommender", (test,), (kinds,), (chart,))


def _truth_section(demo: Demonstration) -> Section:
    text = (
        "Here is what no real log can tell: the clicks to expect if the lists were shown, by the true chance "
        f"of each click. {_verdict(demo)}"
    )
    chart = draw_dots(
        _dots(demo, "rel"),
        axis=f"true clicks to expect on a list of {K}",
        caption=f"Dashed lines: random choice, and the best possible list. Bars: {_BARS}.",
        marks=demo.oracle(),
    )
    told = {result.name: result for result in demo.results}
    story = " ".join(
        sentence.format(untried=1 - told[name].tried_share, clicks=told[name].mean("rel"))
        for name, sentence in _STORY.items()
        if name in told
    )
    tables = (summary_table(demo), difference_table(demo))
    texts = (text, story) if story else (text,)
    return Section("What each would really earn", texts, tables, (chart,))


def _lists_section(demo: Demonstration) -> Section:
    shares = [1 - result.tried_share for result in demo.results]
    user = demo.world.log.user_ids.ids(demo.results[0].full[0].users[:1])[0]
    text = (
        f"Between {min(shares):.0%} and {max(shares):.0%} of what these recommenders would show had never "
        "been shown to the same user. There they go by what they learned elsewhere, and the log cannot "
        f"contradict them. Here is what {user} would see first; in brackets the true chance of a click, and "
        "a star where the log knows nothing about this user and item:"
    )
    return Section("What each would show", (text,), (example_table(demo),))


def example_table(demo: Demonstration, places: int = 5) -> Table:
    """The first places of one user's list by each of those that train the same model."""
    shown = [result for result in demo.results if result.name in demo.arms]
    user = int(demo.results[0].full[0].users[0])
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (place + 1, *(_place(demo, user, int(result.example[place])) for result in shown))
        for place in range(places)
    )
    return Table(("place", *(result.name for result in shown)), rows)


def _place(demo: Demonstration, user: int, item: int) -> str:
    """item-017 (62 %), with a star if the user was never shown it."""
    rows = demo.world.exposures
    known = bool(np.any((rows.users == user) & (rows.items == item)))
    name = rows.item_ids.ids(np.array([item]))[0]
    return f"{name} ({demo.world.relevance[user, item]:.0%}){'' if known else ' *'}"


def _loop_section(demo: Demonstration) -> Section:
    first, last = (demo.rounds_of(BASELINE)[place] for place in (0, -1))
    text = (
        f"Now {', '.join(demo.arms[:-1])} and {demo.arms[-1]} are switched on. Each shows everyone a list of "
        f"{K}, users click as they truly would, the clicks go into its own log, and it is trained again on "
        "that. What was clicked is not shown again, so even perfect lists earn less every time: "
        f"{first.best:.2f} clicks in the first round of {BASELINE}, {last.best:.2f} in the last."
    )
    gap = (
        f"Compare this with the metric on its own log. Before its first round {BASELINE} was promised a hit "
        f"for {first.promised_hit:.0%} of the users, before its last for {last.promised_hit:.0%}. If hidden "
        "clicks came from everything that users like, and not from what it had shown itself, it would be "
        f"{first.true_hit:.0%} and {last.true_hit:.0%}. The log of a recommender praises the recommender."
    )
    earned = draw_lines(
        {arm: [(float(one.number), one.relevance) for one in demo.rounds_of(arm)] for arm in demo.arms},
        Axes("round", f"true clicks on a list of {K}"),
        "What each truly earns, round by round, when it lives on its own log.",
        _LINES,
    )
    hits = draw_lines(
        {
            f"{arm}, {what}": [(float(one.number), 100 * getattr(one, f"{what}_hit")) for one in of_arm]
            for what in ("promised", "true")
            for arm, of_arm in ((arm, demo.rounds_of(arm)) for arm in demo.arms)
        },
        Axes("round", f"Hit@{K} in %"),
        "Solid: the usual test on each one's own log before every round. Dashed: the same test on clicks "
        "that come by taste alone.",
        {f"{arm}, promised": look for arm, look in _LINES.items()}
        | {f"{arm}, true": (colour, DASHED) for arm, (colour, _) in _LINES.items()},
    )
    return Section("Round after round", (text, gap), (loop_table(demo),), (earned, hits))


def loop_table(demo: Demonstration) -> Table:
    """What came of each arm in all rounds together, and what its lists were like in the last one."""
    played = [(arm, demo.rounds_of(arm)) for arm in demo.arms]
    earned = {arm: sum(one.relevance for one in rounds) for arm, rounds in played}
    rows = [
        (arm, earned[arm], last.promised_hit, last.true_hit, last.coverage)
        for arm, (*_, last) in sorted(played, key=lambda one: -earned[one[0]])
    ]
    columns = (
        "deployed",
        f"clicks in {ROUNDS} rounds",
        "promised Hit",
        "true Hit",
        "items shown",
    )
    caption = (
        "True clicks that a user is expected to have made in all rounds; Hits, and the share of all items "
        "that anyone is shown, of the last round."
    )
    return Table(columns, tuple(rows), caption)


def _overlap_section(demo: Demonstration) -> Section:
    text = (
        "How much a recommender can learn depends on what the earlier one showed. These are smaller worlds, "
        "from a log in which everyone was shown a fixed list (0 % at random) to one in which all was chance. "
        "Learning from shown pairs alone needs chance; imitation needs a good earlier recommender; transport "
        "weighs the two by impressions that it holds out."
    )
    names = list(demo.overlap[0].clicks)
    chart = draw_lines(
        {n: [(100 * one.exploration, one.clicks[n]) for one in demo.overlap] for n in names},
        Axes("% of the log drawn at random", f"true clicks on a list of {K}", whole=False),
        "True clicks of each recommender as the log covers more; one world and one seed each.",
        _LINES,
    )
    return Section("From no overlap to full", (text,), (overlap_table(demo),), (chart,))


def overlap_table(demo: Demonstration) -> Table:
    """True clicks of each recommender, one column for each share of the log that was drawn at random."""
    columns = ("recommender", *(f"{one.exploration:.0%} random" for one in demo.overlap))
    names = list(demo.overlap[0].clicks)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(one.clicks[name] for one in demo.overlap)) for name in names
    )
    return Table(columns, rows, "True clicks on a list of ten; one world and one seed each.", decimals=2)


_NEXT = Section(
    "With your own data",
    (
        "A table of events with a user, an item and, if possible, a time is enough. These commands train a "
        "recommender, evaluate it, give a list for a user, and say whether one recommender is better than "
        "another by more than luck:",
    ),
    commands=(
        "towpath fit events.csv --model mf --out run",
        "towpath evaluate run",
        "towpath recommend run --user ID",
        "towpath compare events.csv --methods plain,shown,imitation,transport --seeds 3",
    ),
)


def _verdict(demo: Demonstration) -> str:
    log = [result.name for result in demo.ranked("hit")]
    truth = [result.name for result in demo.ranked("rel")]
    if log == truth:
        return "This time the log puts the recommenders in the order that the truth does."
    return f"The log's order was {', '.join(log)}; the true order is {', '.join(truth)}."


def _dots(demo: Demonstration, metric: str) -> dict[str, Estimate]:
    return {result.name: mean_interval(result.per_user(metric)) for result in demo.results}
