"""The paper's tables, as declarations."""

from towpath.experiments.paper.benchmarks import OVERLAP
from towpath.experiments.paper.claims import BestIsTransport, Better
from towpath.experiments.paper.columns import (
    DEBIASED,
    DT_MCF,
    FEWER_SEEDS,
    MAIN,
    MCF,
    MCF_HARD,
    MIXED_SEEDS,
    MIXES,
    MORE_DEBIASED,
    NCF,
    NCF_HARD,
    OF_PAIRS,
    POP,
    SEQUENTIAL,
    TRUE_IPW,
    WIDE_DEEP,
)
from towpath.experiments.paper.experiment import Experiment

_NO_ORDER = tuple(SEQUENTIAL)  # clicks of a simulation have no order to learn from
_BASES = ("MCF", "NCF", "Attn")
# Each DT-X against X, against X with the same hard negatives, and its other reading against X.
PAIRS = tuple(
    (better, worse)
    for base in _BASES
    for better, worse in (
        (f"DT-{base}", base),
        (f"DT-{base}", f"{base}, same hard negatives"),
        (f"DT-{base}, the paper's players", base),
    )
)
UNORDERED = tuple(pair for pair in PAIRS if "Attn" not in pair[0])
IMPROVES = tuple(
    Better(name, base) for base in _BASES for name in (f"DT-{base}", f"DT-{base}, the paper's players")
)
_UNORDERED_IMPROVES = IMPROVES[:4]
BEATS_DEBIASED = tuple(
    Better("DT-MCF", name, f"DT-MCF is better than {name}, which was made against bias") for name in DEBIASED
)
_PLAYERS = (
    "The players of DT-MCF, DT-NCF and DT-Attn look at the margin of a pair; “the paper's players” are "
    "models of users and items that weigh all pairs."
)
_EASE = "EASE is not in the paper: a linear model in closed form, which a practitioner would try first."
_HARD = (
    "“Same hard negatives” is not in the paper: plain training that draws one of three negatives from "
    "the top of its own ranking, as transport does; it separates what w and g add from what negatives add."
)
_MIXED = "In DT-(f/w/g) w and g look at users and items, all pairs are weighed, w stays within [0.5, 2]."
_ATTENTION = "Attn learns from every step of windows of 50 items, with three negatives each."
_SEEDS = (
    "The paper has ten seeds everywhere. Here rows of attention and “NCF, same hard negatives” have five, "
    "and networks with “the paper's players” three: they cost most."
)
_MIXED_SEEDS = "The mixed games have three seeds, the paper ten: they cost most."

TABLES = (
    Experiment(
        name="table-1",
        title="Table 1: real data and the MovieLens simulation",
        about="The main comparison: the proposed method on three models against those models and three "
        "methods made against bias, on three data sets and a simulation.",
        benchmarks=("ml-1m", "ml-1m-simulation", "lastfm-2k", "goodreads"),
        methods=MAIN,
        pairs=PAIRS,
        claims=(*IMPROVES, *BEATS_DEBIASED, BestIsTransport()),
        not_on={"ml-1m-simulation": _NO_ORDER},
        fewer_seeds=FEWER_SEEDS,
        departures=(_PLAYERS, _EASE, _HARD, _ATTENTION, _SEEDS),
    ),
    Experiment(
        name="table-movielens-more",
        title="Appendix: more methods on MovieLens 1M and its simulation",
        about="Other models as w and g than as f, and two more methods made against bias.",
        benchmarks=("ml-1m", "ml-1m-simulation"),
        methods={**MCF, **DT_MCF, **NCF, **MIXES, **MORE_DEBIASED},
        fewer_seeds=MIXED_SEEDS,
        pairs=(
            ("DT-(M/N/N)", "MCF"),
            ("DT-(M/M/N)", "MCF"),
            ("DT-(N/M/M)", "NCF"),
            ("DR-MF", "MCF"),
            ("CE-MF", "MCF"),
        ),
        claims=(
            Better("DT-(M/N/N)", "MCF"),
            Better("DT-(M/M/N)", "MCF"),
            Better("DT-(N/M/M)", "NCF"),
            Better("DT-(M/M/N)", "DT-MCF", "Mixing models is better than one: DT-(M/M/N) against DT-MCF"),
            Better("DT-(N/M/M)", "DT-NCF", "Mixing models is better than one: DT-(N/M/M) against DT-NCF"),
            Better("DR-MF", "MCF"),
            Better("CE-MF", "MCF"),
            Better("DT-MCF", "DR-MF", "DR-MF improves MCF less than the proposed method does"),
            Better("DT-MCF", "CE-MF", "CE-MF improves MCF less than the proposed method does"),
        ),
        departures=(_MIXED, _PLAYERS, _MIXED_SEEDS),
    ),
    Experiment(
        name="table-goodreads-simulation",
        title="Appendix: the GoodReads simulation",
        about="The main comparison once more, on clicks simulated from GoodReads ratings.",
        benchmarks=("goodreads-simulation",),
        methods={**POP, **DEBIASED, **MCF, **MCF_HARD, **DT_MCF, **NCF, **NCF_HARD, **OF_PAIRS},
        pairs=UNORDERED,
        fewer_seeds=FEWER_SEEDS,
        claims=(*_UNORDERED_IMPROVES, *BEATS_DEBIASED, BestIsTransport()),
        departures=(_PLAYERS, _HARD, _SEEDS),
    ),
    Experiment(
        name="table-mixes",
        title="Appendix: mixed models on GoodReads, its simulation and LastFM",
        about="Other models as w and g than as f.",
        benchmarks=("goodreads", "goodreads-simulation", "lastfm-2k"),
        methods={**MCF, **DT_MCF, **NCF, **{n: MIXES[n] for n in ("DT-(M/N/N)", "DT-(N/M/M)")}},
        fewer_seeds=MIXED_SEEDS,
        pairs=(("DT-(M/N/N)", "MCF"), ("DT-(N/M/M)", "NCF")),
        claims=(
            Better("DT-(M/N/N)", "MCF"),
            Better("DT-(N/M/M)", "NCF"),
            Better("DT-(M/N/N)", "DT-MCF", "Mixing models is better than one: DT-(M/N/N) against DT-MCF"),
            Better("DT-(N/M/M)", "DT-NCF", "Mixing models is better than one: DT-(N/M/M) against DT-NCF"),
        ),
        departures=(_MIXED, _MIXED_SEEDS),
    ),
    Experiment(
        name="table-wide-deep",
        title="Appendix: the offline table of the wide-and-deep A/B/C test",
        about="Three ways to train a wide-and-deep model, before they went online. The paper's log is not "
        "public and it prints relative lifts only; here they meet on MovieLens 1M with its side features.",
        benchmarks=("ml-1m",),
        methods=WIDE_DEEP,
        pairs=(("IPW-D&W", "D&W"), ("DT-D&W", "D&W"), ("DT-D&W", "IPW-D&W")),
        claims=(Better("IPW-D&W", "D&W"), Better("DT-D&W", "D&W"), Better("DT-D&W", "IPW-D&W")),
        seeds=3,
        k=20,
        departures=(
            "Another log, another catalogue and public side features; w and g look at the margin of a pair.",
            "The paper's estimated click-through rate needs its exposure log and has no counterpart here.",
        ),
    ),
    Experiment(
        name="simulation-by-chance",
        title="Not in the paper: simulated clicks by chance",
        about="The paper's simulation clicks the likeliest pairs, where exposure and relevance cannot be "
        "told apart. Here pairs are shown and clicked by chance, so that there is a bias to undo.",
        benchmarks=("ml-1m-by-chance", "goodreads-by-chance"),
        methods={**POP, **DEBIASED, **TRUE_IPW, **MCF, **MCF_HARD, **DT_MCF, **NCF, **NCF_HARD, **OF_PAIRS},
        pairs=UNORDERED,
        fewer_seeds=FEWER_SEEDS,
        claims=(*_UNORDERED_IMPROVES, *BEATS_DEBIASED, BestIsTransport()),
        departures=(_PLAYERS, _HARD, _SEEDS),
    ),
    Experiment(
        name="figure-overlap",
        title="Overlap, in simulated worlds whose log shows more and more at random",
        about="Proposition 1 says that what can be learned for other lists than the logged ones depends on "
        "the overlap of the two. Each data set is a latent world with another share of random exposures.",
        benchmarks=OVERLAP,
        methods={**POP, **MCF, **MCF_HARD, **DT_MCF, **TRUE_IPW, "IPW-MF": DEBIASED["IPW-MF"]},
        pairs=(("DT-MCF", "MCF"), ("DT-MCF", "MCF, same hard negatives"), ("DT-MCF", "IPW-MF")),
        claims=(Better("DT-MCF", "MCF"), Better("DT-MCF", "IPW-MF, true propensities")),
        seeds=5,
        departures=(_PLAYERS, _HARD, "The paper has no such figure; the worlds are ours."),
    ),
)
