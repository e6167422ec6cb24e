"""What every method trains with: players that get better by epochs, and a state that can be resumed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from towpath.kernels.threads import coarse
from towpath.models.scorer import Scorer
from towpath.models.sharded_table import ShardedTable
from towpath.training.checkpoint import Progress, add_prefix, strip_prefix
from towpath.training.fit import EpochMetrics
from towpath.training.optimiser import Optimiser


class Learner(ABC):
    """Something that gets better by epochs: one player or several.

    A learner declares what it consists of: `scorer`, the other `players`, the `optimisers`, and the names
    of attributes that are plain `numbers`. Together they must be all that later epochs depend on, since a
    resumed run starts from them. Random numbers come from generators named after the epoch, which need no
    state.
    """

    scorer: Scorer  # the model that will be deployed
    numbers: ClassVar[tuple[str, ...]] = ()  # attributes that hold a float which training changes
    part_began: float = 0  # after how many epochs the current part of training began

    @abstractmethod
    def epoch(self, number: int) -> EpochMetrics:
        """Train through epoch `number` (from 1) and say how it went."""

    def run_epoch(self, number: int) -> EpochMetrics:
        """The same with threads where they pay: what asks for an epoch asks for it so."""
        with coarse():
            return self.epoch(number)

    @property
    def own_epochs(self) -> int | None:
        """How many epochs it takes, if it needs no validation to know; its last epoch is then kept."""
        return None

    def next_part(self, progress: Progress) -> bool:
        """Begin the next part of training, from the best epoch so far.

        Asked when validation has not risen for long enough, or all epochs are done. False: there is no next
        part, and training is over. Patience and the number of epochs count anew in each part.
        """
        return False

    def name_of(self, epoch: int) -> str:
        """What people call this epoch."""
        return f"epoch {epoch}"

    def players(self) -> Mapping[str, nn.Module]:
        """The modules that learn in addition to the scorer, by name; they are kept for analysis."""
        return {}

    def optimisers(self) -> Mapping[str, Optimiser]:
        """The optimisers by name."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """A copy of all that later epochs depend on."""
        return {key: tensor.clone() for key, tensor in self.live_state().items()}

    def live_state(self) -> dict[str, Tensor]:
        """The same, not copied: the next epoch changes it."""
        state = {
            f"number.{name}": torch.tensor(getattr(self, name), dtype=torch.float64) for name in self.numbers
        }
        for name, module in self._modules().items():
            state |= add_prefix(f"module.{name}", module.state_dict())
        for name, optimiser in self.optimisers().items():
            state |= add_prefix(f"optimiser.{name}", optimiser.live_state())
        return state

    def sharded_rows(self) -> dict[str, int]:
        """Those keys of the state of which this process has only some rows, and how many there are in all."""
        found = {
            f"module.{name}.{place}.weight": table.rows
            for name, module in self._modules().items()
            for place, table in module.named_modules()
            if isinstance(table, ShardedTable)
        }
        for name, optimiser in self.optimisers().items():
            found |= {f"optimiser.{name}.{key}": rows for key, rows in optimiser.sharded_rows().items()}
        return found

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go back to a state."""
        for name in self.numbers:
            setattr(self, name, float(state[f"number.{name}"]))
        for name, module in self._modules().items():
            module.load_state_dict(strip_prefix(f"module.{name}", state))
        for name, optimiser in self.optimisers().items():
            optimiser.load_state(strip_prefix(f"optimiser.{name}", state))

    def auxiliary_state(self) -> dict[str, Tensor]:
        """A copy of what the players other than the scorer have learned; empty where there are none."""
        return {
            key: value.clone()
            for name, module in self.players().items()
            for key, value in add_prefix(name, module.state_dict()).items()
        }

    def _modules(self) -> dict[str, nn.Module]:
        return {"scorer": self.scorer, **self.players()}
