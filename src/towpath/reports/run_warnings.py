"""What a reader of a run should be careful about, as sentences; no sentence where there is nothing to say."""

from collections.abc import Iterator

import numpy as np

from towpath.diagnostics.lists import THIN
from towpath.reports.run_facts import POPULARITY, THIS, RunFacts

# Below these a warning is given. They are rules of thumb: nothing happens at the exact number.
_FEW_EVALUATED = 500  # users: one in a hundred more or less is then within chance
_FEW_EVENTS = 5  # training events of the median user
_LOW_ESS = 0.1  # effective share of the pairs that w ranges over
_LOW_WEIGHT = 0.2  # mean weight of positives, where one is average
_LOW_SHOWN = 0.001  # share of training pairs that f would show
_MANY_THIN = 0.2  # share of the slots in lists


def warnings_of(facts: RunFacts) -> tuple[str, ...]:
    """Everything that stood out, the gravest first."""
    checks = (
        _unfinished, _changed, _game, _no_overlap, _unseen, _no_better, _end_of_training, _little_data, _cold,
    )  # fmt: skip
    return tuple(sentence for check in checks for sentence in check(facts))


def _unfinished(facts: RunFacts) -> Iterator[str]:
    if facts.outcome is None:
        done = f"{len(facts.history):,} epochs are" if facts.history else "no epoch is"
        yield (
            f"The run has not finished: there is no model yet, and {done} recorded. If it was stopped, "
            "run the command at the end of this page with --resume; if it stopped itself, towpath fit "
            "said why, and will say it again."
        )


def _changed(facts: RunFacts) -> Iterator[str]:
    if facts.changed:
        yield facts.changed


def _game(facts: RunFacts) -> Iterator[str]:
    """Whether w has collapsed, or had no say at all."""
    row = facts.kept
    begun = [one for one in facts.history if "ess" in one]
    if not begun:
        return
    if row is None or "ess" not in row:
        kept = "the start" if row is None else f"epoch {int(row['epoch'])}"
        yield (
            f"The model that is kept is that of {kept}, from before the game began: w and g had no say in "
            "it, and it was trained as plain training does."
        )
        return
    if row["ess"] < _LOW_ESS:
        yield (
            f"The weights are close to collapse: they are worth {row['ess']:.1%} of the pairs they are "
            "spread over, so few pairs decide. Raise floor or lower ceiling."
        )
    if row["w_positive"] < _LOW_WEIGHT:
        yield (
            f"The weights hardly count positives: their mean weight is {row['w_positive']:.2f} where one is "
            "average. Raise floor, or use reweight=unlabelled."
        )


def _no_overlap(facts: RunFacts) -> Iterator[str]:
    """Whether what is learned from and what is shown have anything to do with each other."""
    row = facts.kept or {}
    if 0 <= row.get("reco_negative", 1) < _LOW_SHOWN and row.get("reco_positive", 1) < _LOW_SHOWN:
        yield (
            "Hardly any training pair is one that the model would show, so there was next to nothing to "
            "carry over to; raise hard_negatives or negatives."
        )
    thin = facts.recommended.spreads[THIS].thin if facts.recommended else 0
    if thin > _MANY_THIN:
        yield (
            f"{thin:.0%} of the slots in its lists hold items with fewer than {THIN} training events, of "
            "which the log says next to nothing."
        )


def _unseen(facts: RunFacts) -> Iterator[str]:
    """Whether a difference to another run rests on pairs that the log never showed."""
    for one in facts.vouched.contrasts if facts.vouched else ():
        if one.a != POPULARITY and one.warning is not None:
            yield one.warning


def _no_better(facts: RunFacts) -> Iterator[str]:
    """Whether the run beats the simplest list there is by more than chance."""
    for difference in facts.evaluated.differences if facts.evaluated else ():
        gap, about = difference.estimate, (difference.b, difference.protocol, difference.metric)
        if about != (POPULARITY, "full", "hit") or gap.low > 0:
            continue
        worse = "worse than" if gap.high < 0 else "not better, by more than chance, than"
        yield (
            f"In full ranking the run is {worse} showing everyone the most popular items (Hit difference "
            f"{100 * gap.mean:+.1f} percentage points, {100 * gap.low:+.1f} to {100 * gap.high:+.1f}); tune "
            "its settings before you rely on it."
        )


def _end_of_training(facts: RunFacts) -> Iterator[str]:
    if facts.outcome is None or not facts.history:
        return
    if facts.outcome.best_epoch == len(facts.history):
        yield (
            f"The best epoch is the last of {len(facts.history):,}: validation was still rising when "
            "training stopped. Raise epochs."
        )
    if facts.outcome.best_epoch == 0:
        yield "No epoch was better on validation than the start, which is kept; lower learning_rate."


def _little_data(facts: RunFacts) -> Iterator[str]:
    if facts.split is None:
        return
    lengths = facts.split.train.histories.lengths
    median = float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0
    if median < _FEW_EVENTS:
        yield (
            f"Half of the users have {median:.0f} training events or fewer; a model can hardly tell such "
            "users apart."
        )
    evaluated = facts.evaluated and len(facts.evaluated.of(THIS, facts.evaluated.protocols()[0]).users)
    if evaluated and evaluated < _FEW_EVALUATED:
        yield (
            f"Only {evaluated:,} users were evaluated, so the intervals are wide; do not read differences "
            "inside them."
        )


def _cold(facts: RunFacts) -> Iterator[str]:
    """Ids that the model has learned nothing about."""
    if facts.split is None:
        return
    train = facts.split.train
    users, items = (int((counts == 0).sum()) for counts in (train.histories.lengths, train.item_counts))
    if users:
        yield (
            f"{users:,} of {train.n_users:,} users have no training events: they are not evaluated, "
            "and towpath recommend gives them the most popular items."
        )
    if items:
        yield (
            f"{items:,} of {train.n_items:,} items have no training events: the model learned nothing about "
            "them and will hardly ever show them."
        )
