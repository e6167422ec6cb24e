"""The one contract of everything that can score a user and an item."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from towpath.data.features import FeatureSchema
from towpath.data.interactions import Histories, Interactions
from towpath.device import device_of
from towpath.errors import ConfigError
from towpath.rng import Rng


class Settings(BaseModel):
    """A frozen group of settings; an unknown key is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Sizes:
    """How many users and items the codes range over, and what is known of them where anything is."""

    users: int
    items: int
    features: FeatureSchema | None = None

    def to_json(self) -> dict[str, Any]:  # any JSON
        """The same for a manifest; features are left out where there are none."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "Sizes":  # any JSON
        """What `to_json` gave, as a JSON file gives it back."""
        features = stored.get("features")
        return Sizes(
            stored["users"], stored["items"], None if features is None else FeatureSchema.from_json(features)
        )


def sizes_of(train: Interactions) -> Sizes:
    """The sizes of a model for these data."""
    return Sizes(train.n_users, train.n_items, train.feature_schema)


@dataclass(frozen=True)
class Context:
    """What is known when a list is asked for.

    users: (b,) codes. histories: (b, h) item codes, oldest first, right-aligned, -1 as padding; h is zero for
    scorers that ask for no history.

    steps: (b,) if not None, then histories are s sequences (s, h) that several instances share: instance j
    stands at the place steps[j] = row * h + column, and has seen the items up to and including that column.
    """

    users: Tensor
    histories: Tensor
    steps: Tensor | None = None


class Scorer(nn.Module, ABC):
    """Scores items for users: the higher the better within one user, a logit where the loss is logistic.

    A scorer is built from its settings and sizes alone, then filled: `initialise` from training data, or
    `load_state_dict` from an artifact. Whether anything is left to train shows in its parameters: closed-form
    models keep everything in buffers.
    """

    settings_type: ClassVar[type[Settings]]
    # Defaults of the fit loop that suit this model better than the common ones.
    suited_training: ClassVar[Mapping[str, Any]] = {}
    # The model's own settings that are worth searching, with the values worth trying.
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    # Whether a model depends on the seed although it has no parameters to train: it draws at its start.
    needs_seed: ClassVar[bool] = False
    # What `initialise` has to say about the data, a sentence each; shown to whoever asked for the fit.
    remarks: tuple[str, ...] = ()
    # How many of a user's latest items `score` wants to see in the context.
    history_length: int = 0
    # Whether `score` understands the steps of a context, so that every step of a sequence can be an instance.
    trains_on_sequences: ClassVar[bool] = False

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        self.settings = settings
        self.sizes = sizes

    @abstractmethod
    def initialise(self, train: Interactions, rng: Rng) -> None:
        """Set all parameters and buffers from the training data and the generators named "initialise"."""

    @abstractmethod
    def score(self, context: Context, items: Tensor) -> Tensor:
        """Scores (b, k) of items (b, k), or of the same items (1, k) for everyone."""

    def forward(self, context: Context, items: Tensor) -> Tensor:
        """The same as `score`."""
        return self.score(context, items)

    def to_pretrain(self) -> tuple[int, Sequence["Scorer"]]:
        """For how many epochs which parts of the model are trained alone before the whole: none for most."""
        return 0, ()

    def pretrained(self) -> None:
        """Called when the parts of `to_pretrain` have been trained, to put them together."""

    def rates(self) -> dict[str, float]:
        """How fast parameters learn: name -> factor of the learning rate, one for those not named.

        Names are those of `named_parameters`; a table that was trained before learns at a tenth, say.
        """
        return {}

    def score_with_norm(self, context: Context, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (b, k), and what an L2 penalty charges for, one number, from one look-up.

        The charge is the mean over the pairs of the squared length of the vectors that a pair uses; none
        unless a model has some.
        """
        scores = self.score(context, items)
        return scores, scores.new_zeros(())

    def has_manual_backward(self, context: Context, items: Tensor) -> bool:
        """Whether `gradients` can be asked about these pairs, so that autograd need not be."""
        return False

    def gradients(
        self, context: Context, items: Tensor, by_score: Tensor, by_norm: float
    ) -> dict[Tensor, Tensor]:
        """What reaches each parameter, from what reaches the scores (b, k) and the norm."""
        raise ConfigError(f"{type(self).__name__} leaves its gradients to autograd.")

    def factors(self, context: Context) -> tuple[Tensor, Tensor]:
        """States (b, d) and a table (n_items, d) whose inner products are the scores of the catalogue."""
        raise ConfigError(f"{type(self).__name__} does not score by inner products; use loss=logistic.")

    def pair_features(self, context: Context, items: Tensor) -> Tensor:
        """A vector for each pair in the model's own space, (b, k, p), for critics that measure distances."""
        raise ConfigError(f"{type(self).__name__} has no vectors for pairs; use a model such as mf for that.")

    def item_similarity(self, items: Tensor) -> Tensor:
        """How alike each of `items` (b,) is to every item of the catalogue: (b, n_items)."""
        raise ConfigError(
            f"{type(self).__name__} does not know which items are alike; fit mf or ease for that."
        )


def context_of(scorer: Scorer, users: NDArray[np.int64], histories: Histories) -> Context:
    """The context in which `scorer` scores these users (b,) after these histories."""
    users = np.asarray(users, dtype=np.int64)
    past = histories.padded(users, scorer.history_length)
    device = device_of(scorer)
    return Context(torch.from_numpy(users).to(device), torch.from_numpy(past).to(device))
