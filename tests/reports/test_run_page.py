"""The page about a run from facts made by hand: what is said, what is warned of, what is left out."""

from dataclasses import replace

import numpy as np
import pytest

from small import small_split
from towpath.data.cleaning import Step
from towpath.data.split import Split
from towpath.diagnostics.lists import Spread
from towpath.evaluation.comparison import Difference
from towpath.evaluation.result import Evaluation
from towpath.reports.figures import charts_available
from towpath.reports.page import to_html
from towpath.reports.run_facts import LOG, POPULARITY, THIS, EvaluatedRun, Gap, Outcome, Recommended, RunFacts
from towpath.reports.run_page import run_page
from towpath.reports.run_results import metric_names
from towpath.reports.run_training import training_figures
from towpath.reports.run_warnings import warnings_of
from towpath.stats.estimate import Estimate

PLAIN = [
    {"epoch": n, "loss": 1 / n, "validation_hit": 0.1 - 0.01 * abs(n - 4), "seconds": 2.0}
    for n in range(1, 7)
]
GAME = {
    "ess": 0.8, "w_positive": 1.0, "w_negative": 1.0, "w_shown": 1.4, "w_hidden": 0.9, "gap": 2.0,
    "reco_positive": 0.3, "reco_negative": 0.01, "risk": 0.4, "weighted_risk": 0.5, "critic_ratio": 3.0,
}  # fmt: skip
RECORD = {
    "recipe": {
        "model": "mf",
        "method": "plain",
        "settings": {"l2": 0.1, "clip_norm": None, "w": ""},
        "seed": 0,
    },
    "data": {
        "source": "logs/events.csv",
        "split": "leave-last-two",
        "fingerprint": "ab12",
        "notes": ["no header"],
    },
    "versions": {"towpath": "0.1.0"},
}
SPLIT = small_split(users=600)


def evaluated(low: float, high: float) -> EvaluatedRun:
    """600 users, every second of whom is hit by the run."""
    hits = np.tile([0.0, 1.0], 300)
    per_user = {"hit": hits, "recall": hits, "ndcg": hits / 2, "mrr": hits / 3}
    runs = {who: [Evaluation("full", "test", 10, np.arange(600), per_user, {})] for who in (THIS, POPULARITY)}
    found = tuple(
        Difference(THIS, POPULARITY, "full", m, Estimate((low + high) / 2, low, high, 600, "by hand"))
        for m in per_user
    )
    return EvaluatedRun(10, runs, found)


def recommended(thin: float = 0.0) -> Recommended:
    spread = Spread(6000, 0.25, 0.5, 7, thin, (0.1, 0.2, 0.3, 0.4, 0.0))
    spreads = {LOG: spread, THIS: spread, POPULARITY: spread}
    return Recommended(10, 600, spreads, {POPULARITY: np.tile([0.2, 0.4], 300)}, known=0.05)


FACTS = RunFacts(
    name="mine",
    record=RECORD,
    history=PLAIN,
    command="towpath fit logs/events.csv --out mine",
    outcome=Outcome(4, "validation Hit@10 has not risen for 2 epochs; epoch 4 is kept"),
    split=SPLIT,
    steps=(Step("read", 0, 7300, 600, 40), Step("repeats: first", 100, 7200, 600, 40)),
    evaluated=evaluated(0.05, 0.15),
    recommended=recommended(),
)


def game(**kept: float) -> RunFacts:
    rows = [row | (GAME | kept if row["epoch"] > 1 else {}) for row in PLAIN]
    return replace(FACTS, history=rows)


def test_a_healthy_run_is_warned_of_nothing() -> None:
    assert warnings_of(FACTS) == ()
    assert warnings_of(game()) == ()
    assert "Nothing stood out" in to_html(run_page(FACTS))


def without_events(split: Split, users: int, items: int) -> Split:
    """The split with some users and items that only the later parts know."""
    train = split.train
    return replace(split, train=train.where((train.users >= users) & (train.items >= items)))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            replace(FACTS, outcome=None, evaluated=None),
            "has not finished: there is no model yet, and 6 epochs",
        ),
        (replace(FACTS, changed="The data have changed."), "The data have changed."),
        (game(ess=0.05), "close to collapse: they are worth 5.0% of the pairs"),
        (game(w_positive=0.1), "hardly count positives: their mean weight is 0.10"),
        (replace(game(), outcome=Outcome(1, "")), "that of epoch 1, from before the game began"),
        (game(reco_positive=0.0, reco_negative=0.0), "Hardly any training pair is one"),
        (
            replace(FACTS, recommended=recommended(0.5)),
            "50% of the slots in its lists hold items with fewer than 5",
        ),
        (
            replace(FACTS, evaluated=evaluated(-0.01, 0.03)),
            "not better, by more than chance, than showing everyone",
        ),
        (
            replace(FACTS, evaluated=evaluated(-0.04, -0.02)),
            "is worse than showing everyone the most popular",
        ),
        (replace(FACTS, outcome=Outcome(6, "")), "The best epoch is the last of 6"),
        (replace(FACTS, outcome=Outcome(0, "")), "No epoch was better on validation than the start"),
        (
            replace(FACTS, split=small_split(users=600, per_user=5)),
            "Half of the users have 3 training events",
        ),
        (replace(FACTS, split=without_events(SPLIT, 2, 0)), "2 of 600 users have no training events"),
        (replace(FACTS, split=without_events(SPLIT, 0, 3)), "3 of 40 items have no training events"),
    ],
)
def test_each_warning_is_given_alone(facts: RunFacts, words: str) -> None:
    (sentence,) = warnings_of(facts)
    assert words in sentence


def test_few_evaluated_users_are_warned_of() -> None:
    few = {
        who: [
            replace(one, users=one.users[:50], per_user={m: v[:50] for m, v in one.per_user.items()})
            for one in found
        ]
        for who, found in FACTS.evaluated.evaluations.items()
    }
    (sentence,) = warnings_of(replace(FACTS, evaluated=replace(FACTS.evaluated, evaluations=few)))
    assert sentence.startswith("Only 50 users were evaluated")


def test_the_page_has_the_numbers() -> None:
    html = to_html(run_page(FACTS)).replace("\xa0", " ")
    half = 100 * 1.96 * np.tile([0.0, 1.0], 300).std(ddof=1) / 600**0.5
    assert f"50.0 ({50 - half:.1f} to {50 + half:.1f})" in html
    assert "10.0 (5.0 to 15.0)" in html  # the difference
    assert "30.0 (" in html  # shared with popularity
    assert '<td class="number">100</td>' in html  # dropped
    assert "epoch 4 is kept" in html
    assert "6 epochs took 12 seconds" in html
    assert "<pre>towpath fit logs/events.csv --out mine</pre>" in html
    assert "on events.csv. 50.0 %" in html
    assert "<li>no header</li>" in html
    assert "ab12" in html


def test_what_is_not_known_has_no_section_but_is_named() -> None:
    bare = RunFacts(
        name="mine",
        record=RECORD,
        history=[],
        command="towpath fit",
        gaps=(Gap("the weights", "w is gone."),),
    )
    html = to_html(run_page(bare))
    assert "<li>The weights: w is gone.</li>" in html
    assert "No epoch has been finished yet" in html
    assert "no model yet, and no epoch is recorded" in html
    for heading in ("How good it is", "What it recommends", "What the weighting learned"):
        assert f"{heading}</h2>" not in html


def test_recall_is_shown_where_it_says_more_than_hit() -> None:
    assert "recall" not in metric_names(FACTS.evaluated)
    one = FACTS.evaluated.evaluations[THIS][0]
    other = replace(one, per_user={**one.per_user, "recall": one.per_user["hit"] / 2})
    assert "recall" in metric_names(replace(FACTS.evaluated, evaluations={THIS: [other]}))


@pytest.mark.skipif(not charts_available(), reason="the extra `report` is not installed")
def test_curves_are_drawn_of_all_that_moves_and_nothing_else() -> None:
    def captions(facts: RunFacts) -> str:
        return " ".join(figure.caption for figure in training_figures(facts))

    assert len(training_figures(FACTS)) == 2
    assert len(training_figures(game())) == 2  # nothing in this game moves
    rows = [
        row | ({"gap": row["epoch"], "own_number": row["loss"]} if row["epoch"] > 1 else {}) for row in PLAIN
    ]
    moving = replace(FACTS, history=rows)
    assert "How far the weighted training pairs are" in captions(moving)
    assert "Own number, as the method says it." in captions(moving)
    assert all(figure.small and ">kept<" in figure.svg for figure in training_figures(moving))
