"""All that is known of a finished or half-finished run, as the page about it wants it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from towpath.data.cleaning import Step
from towpath.data.split import Split
from towpath.diagnostics.contrast import Vouched
from towpath.diagnostics.dial import Dial
from towpath.diagnostics.lists import Spread
from towpath.evaluation.comparison import Difference
from towpath.evaluation.result import Evaluation
from towpath.training.fit import EpochMetrics
from towpath.training.weighed_pairs import WeighedPairs

THIS = "this run"
LOG = "the log"
POPULARITY = "popularity"


@dataclass(frozen=True)
class Outcome:
    """How training ended."""

    best_epoch: int  # 0: the start, before any training
    stopped_because: str


@dataclass(frozen=True)
class EvaluatedRun:
    """What the test part says: the run first, then what it is held against."""

    k: int
    evaluations: Mapping[str, Sequence[Evaluation]]  # by whom; one for each protocol
    differences: tuple[Difference, ...]  # of the run to each of the others, paired by user

    def protocols(self) -> list[str]:
        """Under which protocols."""
        return [one.protocol for one in self.evaluations[THIS]]

    def of(self, who: str, protocol: str) -> Evaluation:
        """Somebody's evaluation under this protocol."""
        return next(one for one in self.evaluations[who] if one.protocol == protocol)


@dataclass(frozen=True)
class Recommended:
    """The lists of the same users by the run and by others."""

    k: int
    users: int
    spreads: Mapping[str, Spread]  # by whom; the log's is that of its training events
    shared: Mapping[str, NDArray[np.float64]]  # by whom: share of each user's list that the run's list has
    known: float  # share of the run's slots whose item the user interacted with in the test part
    dial: Dial | None = None  # where the log says what was shown


@dataclass(frozen=True)
class Gap:
    """Something that the page cannot show, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class RunFacts:
    """A run, from its files and one evaluation of its model; None where something is not known."""

    name: str
    record: Mapping[str, Any]  # run.json
    history: Sequence[EpochMetrics]
    command: str  # that makes the run again
    outcome: Outcome | None = None  # None: it has not finished
    split: Split | None = None
    steps: Sequence[Step] = ()
    evaluated: EvaluatedRun | None = None
    recommended: Recommended | None = None
    weights: WeighedPairs | None = None
    vouched: Vouched | None = None  # what the log has seen of the lists, and of what others have unlike them
    gaps: tuple[Gap, ...] = field(default_factory=tuple)
    changed: str = ""  # a sentence, if the data are no longer those that the run was trained on

    @property
    def recipe(self) -> Mapping[str, Any]:
        """Model, method, settings and seed, as they were resolved; any JSON."""
        return self.record["recipe"]

    @property
    def data(self) -> Mapping[str, Any]:
        """Where the data came from and what was done to them; any JSON."""
        return self.record["data"]

    @property
    def kept(self) -> EpochMetrics | None:
        """The row of the epoch that is kept, or that is best so far; None if it is the start."""
        if self.outcome is not None:
            return self.history[self.outcome.best_epoch - 1] if self.outcome.best_epoch else None
        return max(self.history, key=lambda row: row["validation_hit"], default=None)
