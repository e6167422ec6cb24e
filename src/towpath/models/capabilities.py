"""What only some models can do, each as a protocol of its own.

A model has a capability if it has its methods; nothing has to be declared. Callers ask
`isinstance(scorer, HasFactors)`, or one of the functions below, which say in one sentence what is missing.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast, runtime_checkable

from torch import Tensor

from towpath.errors import ConfigError
from towpath.models.scorer import Context, Scorer


@runtime_checkable
class HasSquaredNorm(Protocol):
    """Can be trained with an L2 penalty on the vectors that a pair uses."""

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (b, k), and the mean over the pairs of the squared length of their vectors: ()."""


@runtime_checkable
class HasManualBackward(HasSquaredNorm, Protocol):
    """Works out its gradients itself, so that autograd need not."""

    def has_manual_backward(self, context: Context, items: Tensor) -> bool:
        """Whether `gradients` can be asked about these pairs."""

    def gradients(
        self, context: Context, items: Tensor, by_score: Tensor, by_norm: float
    ) -> dict[Tensor, Tensor]:
        """The gradient of each parameter, from the gradients of the scores (b, k) and of the norm."""


@runtime_checkable
class HasParameterRates(Protocol):
    """Has parameters that learn at a rate of their own."""

    def rates(self) -> Mapping[str, float]:
        """Name of a parameter, as in `named_parameters`, -> factor of the learning rate; others have one."""


@runtime_checkable
class HasFactors(Protocol):
    """Scores by inner products, so that a softmax over the whole catalogue can be taken in small memory."""

    def factors(self, context: Context) -> tuple[Tensor, Tensor]:
        """States (b, d) and a table (n_items, d) whose inner products are the scores of the catalogue."""


@runtime_checkable
class HasPairFeatures(Protocol):
    """Has a vector for each pair, in which critics can measure distances."""

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """A vector for each pair in the model's own space: (b, k, p)."""


@runtime_checkable
class HasItemSimilarity(Protocol):
    """Knows which items are alike."""

    def item_similarity(self, items: Tensor) -> Tensor:
        """How alike each of `items` (b,) is to every item of the catalogue: (b, n_items)."""


@runtime_checkable
class NeedsPretraining(Protocol):
    """Has parts that are trained alone before the whole."""

    def to_pretrain(self) -> tuple[int, Sequence[Scorer]]:
        """For how many epochs which parts are trained alone; zero epochs: not at all."""

    def pretrained(self) -> None:
        """Called when these parts have been trained, to put them together."""


def score_with_norm(scorer: Scorer, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (b, k), and the squared norm that an L2 penalty charges for; zero for a model that has none."""
    # Not isinstance, which takes 50 microseconds for a protocol: this is asked at every step.
    own = getattr(scorer, "score_with_norm", None)
    if own is not None:
        return own(context, items)
    scores = scorer.score(context, items)
    return scores, scores.new_zeros(())


def manual_backward(scorer: Scorer, context: Context, items: Tensor) -> HasManualBackward | None:
    """The same scorer if it works out its gradients for these pairs itself, else None."""
    able = getattr(scorer, "has_manual_backward", None)  # asked at every step, as above
    return cast(HasManualBackward, scorer) if able is not None and able(context, items) else None


def with_factors(scorer: Scorer) -> HasFactors:
    """The same scorer, which must score by inner products."""
    if isinstance(scorer, HasFactors):
        return scorer
    raise ConfigError(f"{type(scorer).__name__} does not score by inner products; use loss=logistic.")


def with_pair_features(scorer: Scorer) -> HasPairFeatures:
    """The same scorer, which must have a vector for each pair."""
    if isinstance(scorer, HasPairFeatures):
        return scorer
    raise ConfigError(f"{type(scorer).__name__} has no vectors for pairs; use a model such as mf for that.")


def with_item_similarity(scorer: Scorer) -> HasItemSimilarity:
    """The same scorer, which must know which items are alike."""
    if isinstance(scorer, HasItemSimilarity):
        return scorer
    raise ConfigError(
        f"{type(scorer).__name__} does not know which items are alike; fit mf or ease for that."
    )
