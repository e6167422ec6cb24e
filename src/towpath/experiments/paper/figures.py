"""The paper's figures, as declarations."""

from collections.abc import Sequence

from towpath.experiments.paper.claims import Better, CatchesUp, Claim, Rises, Steady, WeightsAre
from towpath.experiments.paper.columns import ALIKE, BY_POPULARITY, DT_MCF, GAME, MCF, OF_PAIRS, PAIRS
from towpath.experiments.paper.experiment import Experiment, Sweep
from towpath.methods.recipe import Recipe

_OF_PAIRS_NOTE = (
    "“The paper's players”: w and g are models of users and items that weigh all pairs. Those of DT-MCF "
    "look at the margin of a pair, and weigh pairs without an interaction only."
)
_LAMBDAS = (0.0, 0.005, 0.05, 0.1, 0.3, 0.5, 1.0)
MARGIN_LAMBDA = Sweep(
    "margin players",
    Recipe("mf", "transport", GAME | ALIKE),
    "penalty",
    (*_LAMBDAS, 3.0),
    ("MCF",),
    (0.0, 0.1, 1.0),
)
_FREE = {key: value for key, value in PAIRS.items() if key != "penalty"}
PAIR_LAMBDA = Sweep(
    "the paper's players", Recipe("mf", "transport", _FREE), "penalty", _LAMBDAS, ("MCF",), (0.0, 0.1, 0.5)
)
# Beyond MovieLens 1M the sweeps are shorter.
_LEFT_OUT = tuple(sweep.label(value) for sweep in (MARGIN_LAMBDA, PAIR_LAMBDA) for value in (0.005, 0.1, 0.3))
_SHORTER = "Beyond MovieLens 1M lambda is 0, 0.05, 0.5 and more: the other values of the paper are left out."


def _about_lambda(sweep: Sweep, usual: float) -> tuple[Claim, ...]:
    without, *others = (sweep.label(value) for value in sweep.values)
    return (
        Better(sweep.label(usual), without, f"Without the regularisation it degenerates ({sweep.name})"),
        Steady(f"Performance is steady under different lambda ({sweep.name})", tuple(others)),
    )


def _about_weights(columns: Sequence[str]) -> tuple[Claim, ...]:
    said = (
        ("weights are larger on positives", "more on positives"),
        ("weights are larger on what f would show", "more on shown"),
        ("among what f would show, weights rise with its score", "rising with score"),
    )
    rise = [WeightsAre(text, column, statistic) for column in columns for text, statistic in said]
    elsewhere = "among the others there is no such pattern"
    return (*rise, *(WeightsAre(elsewhere, column, "rising elsewhere", within=0.1) for column in columns))


def _about_exposure(columns: Sequence[str]) -> tuple[Claim, ...]:
    said = (
        ("on negatives, weights rise with exposure", "rising with exposure"),
        ("on positives they rise less", "even on positives"),
    )
    return tuple(WeightsAre(text, column, statistic) for column in columns for text, statistic in said)


_MCF_WEIGHTS = ("DT-MCF, the paper's players", "DT-MCF")
_BOTH = tuple(OF_PAIRS)
_STEPS_W = Sweep(
    "moves of w",
    Recipe("mf", "transport", PAIRS),
    "steps_w",
    (1, 2, 5),
    ("MCF",),
    (1, 5),
)
_STEPS_G = Sweep(
    "moves of g",
    Recipe("mf", "transport", PAIRS),
    "steps_g",
    (1, 2, 5),
    ("MCF",),
    (1, 5),
)
_THRESHOLD = Sweep(
    "IPW threshold",
    Recipe("mf", "ipw", ALIKE | BY_POPULARITY),
    "floor",
    (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    ("MCF",),
    (0.01, 0.1, 0.5),
)

FIGURES = (
    Experiment(
        name="figure-2a",
        title="Figure 2a: what the weights learned, MovieLens 1M and GoodReads",
        about="How weights differ between positives and negatives, and how they go with the score of f among "
        "pairs that f would show and among the others.",
        benchmarks=("ml-1m", "goodreads"),
        methods={"DT-MCF, the paper's players": OF_PAIRS["DT-MCF, the paper's players"], **DT_MCF},
        claims=_about_weights(_MCF_WEIGHTS),
        pictures=("weights",),
        seeds=5,
        departures=(_OF_PAIRS_NOTE,),
    ),
    Experiment(
        name="figure-2b",
        title="Figure 2b: weights and true exposure, MovieLens simulation",
        about="How weights go with the true chance of having been shown, on positives and on negatives.",
        benchmarks=("ml-1m-simulation",),
        methods=OF_PAIRS,
        claims=_about_exposure(_BOTH),
        pictures=("weights",),
        seeds=5,
        departures=(_OF_PAIRS_NOTE,),
    ),
    Experiment(
        name="figure-2c",
        title="Figure 2c: the regularisation and lambda, MovieLens 1M and its simulation",
        about="What becomes of DT-MCF without the transportation regularisation, and with other prices.",
        benchmarks=("ml-1m", "ml-1m-simulation"),
        methods=MCF,
        sweeps=(MARGIN_LAMBDA, PAIR_LAMBDA),
        claims=(*_about_lambda(MARGIN_LAMBDA, 1.0), *_about_lambda(PAIR_LAMBDA, 0.5)),
        not_on={"ml-1m-simulation": _LEFT_OUT},
        seeds=3,
        departures=(
            "lambda is the setting `penalty`; at 0 w is still trained. MCF is the same without w and g.",
            _SHORTER,
        ),
    ),
    Experiment(
        name="figure-goodreads-weights",
        title="Appendix: what the weights learned, GoodReads and its simulation",
        about="Figures 2a and 2b once more, on GoodReads.",
        benchmarks=("goodreads", "goodreads-simulation"),
        methods=OF_PAIRS,
        claims=(*_about_weights(_BOTH), *_about_exposure(_BOTH)),
        pictures=("weights",),
        seeds=5,
        departures=(_OF_PAIRS_NOTE,),
    ),
    Experiment(
        name="figure-lastfm-weights",
        title="Appendix: what the weights learned, LastFM",
        about="Figure 2a once more, on LastFM.",
        benchmarks=("lastfm-2k",),
        methods=OF_PAIRS,
        claims=_about_weights(_BOTH),
        pictures=("weights",),
        seeds=5,
        departures=(_OF_PAIRS_NOTE,),
    ),
    Experiment(
        name="figure-lambda-more",
        title="Appendix: the regularisation and lambda, GoodReads and LastFM",
        about="Figure 2c once more, on two other data sets.",
        benchmarks=("goodreads", "lastfm-2k"),
        methods=MCF,
        sweeps=(MARGIN_LAMBDA, PAIR_LAMBDA),
        claims=(*_about_lambda(MARGIN_LAMBDA, 1.0), *_about_lambda(PAIR_LAMBDA, 0.5)),
        not_on=dict.fromkeys(("goodreads", "lastfm-2k"), _LEFT_OUT),
        seeds=3,
        departures=(_SHORTER,),
    ),
    Experiment(
        name="figure-steps",
        title="Appendix: moves of w and of g per move of f, MovieLens 1M",
        about="What it brings to let w and g move more often.",
        benchmarks=("ml-1m",),
        methods=MCF,
        sweeps=(_STEPS_W, _STEPS_G),
        claims=(
            Rises("More moves of w are better", tuple(map(_STEPS_W.label, _STEPS_W.values))),
            Rises("More moves of g are better", tuple(map(_STEPS_G.label, _STEPS_G.values))),
        ),
        seeds=3,
        departures=("The other player makes one move. Moves are in turns, not in loops within loops.",),
    ),
    Experiment(
        name="figure-ipw-threshold",
        title="Appendix: the threshold of IPW-MF's propensities, MovieLens 1M",
        about="Propensities below a threshold are raised to it, which pretends overlap; the paper varies it.",
        benchmarks=("ml-1m",),
        methods=MCF,
        sweeps=(_THRESHOLD,),
        claims=(
            Rises(
                "Less faith in small propensities is better", tuple(map(_THRESHOLD.label, _THRESHOLD.values))
            ),
        ),
        seeds=5,
        departures=("The threshold is the setting `floor`; at 1 all weights are equal.",),
    ),
    Experiment(
        name="figure-efficiency",
        title="Appendix: training time against quality, MovieLens 1M",
        about="Validation after every epoch against seconds of training, plain and with transport.",
        benchmarks=("ml-1m",),
        methods={**MCF, **DT_MCF},
        pairs=(("DT-MCF", "MCF"),),
        claims=(CatchesUp("DT-MCF", "MCF"),),
        pictures=("time",),
        seeds=5,
        departures=(
            "The paper's curves go over training time on its own machines; these are from this one.",
        ),
    ),
)
