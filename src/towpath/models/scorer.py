"""The one contract of everything that can score a user and an item."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from towpath.data.features import FeatureSchema
from towpath.data.interactions import Histories, Interactions
from towpath.device import device_of
from towpath.rng import Rng


class Settings(BaseModel):
    """A frozen group of settings; an unknown key is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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
    scorers that ask for no history. Where several models look at the same pairs, h may be larger than a
    scorer's `history_length`; it looks at the last `history_length` columns only.

    steps: (b,) if not None, then histories are s sequences (s, h) that several instances share: instance j
    stands at the place steps[j] = row * h + column, and has seen the items up to and including that column.

    slice_of: if these are the instances that one of several processes has of a batch: the number of its first
    one, and how many the batch has. With it, what is random at each instance is as in the whole batch.
    """

    users: Tensor
    histories: Tensor
    steps: Tensor | None = None
    slice_of: tuple[int, int] | None = field(default=None, kw_only=True)


class Scorer(nn.Module, ABC):
    """Scores items for users: the higher the better within one user, a logit where the loss is logistic.

    A scorer is built from its settings and sizes alone, then filled: `initialise` from training data, or
    `load_state_dict` from an artifact. Whether anything is left to train shows in its parameters: closed-form
    models keep everything in buffers.

    Every model can `initialise` and `score`. What only some can do besides is in `models/capabilities.py`.
    """

    settings_type: ClassVar[type[Settings]]
    # Defaults of the fit loop that suit this model better than the common ones.
    suited_training: ClassVar[Mapping[str, Any]] = {}
    # What replaces some of these for methods that weigh single pairs and cannot use a softmax.
    suited_pairwise: ClassVar[Mapping[str, Any]] = {}
    # The model's own settings that are worth searching, with the values worth trying.
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    # Whether a model depends on the seed although it has no parameters to train: it draws at its start.
    needs_seed: ClassVar[bool] = False
    # What `initialise` has to say about the data, a sentence each; shown to the user.
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


def context_of(
    scorer: Scorer, users: NDArray[np.int64], histories: Histories, history_length: int | None = None
) -> Context:
    """The context in which `scorer` scores these users (b,) after these histories.

    It holds as much of a history as the scorer looks at, or `history_length` items.
    """
    users = np.asarray(users, dtype=np.int64)
    past = histories.padded(users, scorer.history_length if history_length is None else history_length)
    device = device_of(scorer)
    return Context(torch.from_numpy(users).to(device), torch.from_numpy(past).to(device))
