"""Adam over dense and sparse parameters as if they were one.

By torch's functions, not its classes: to make one of those takes two seconds and 70 MB, for a compiler of
graphs that nothing here asks for.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from towpath.kernels.lazy_adam import Rates, move_rows
from towpath.models.capabilities import HasParameterRates
from towpath.models.sharded_table import ShardedTable
from towpath.training.distributed import Workers

BETAS, EPSILON = (0.9, 0.999), 1e-8  # as everywhere


@dataclass
class _Moving:
    """A parameter in training: its share of the rate, the moments of its gradient, its number of steps."""

    parameter: nn.Parameter
    factor: float
    sharded: int | None  # how many rows there are in all, if this process has some of them only
    mean: Tensor
    square: Tensor
    steps: Tensor  # a float, as torch counts


class Optimiser:
    """Adam for dense parameters, lazy Adam for tables whose gradients are sparse.

    The lazy one moves only the rows of the batch, which is what makes large tables affordable.
    Parameters for which a module has a rate of their own (`HasParameterRates`) learn at it, unless the module
    plays another part than the recommender: such rates are made for the prediction of labels.
    """

    def __init__(
        self,
        modules: Iterable[nn.Module],
        learning_rate: float,
        clip_norm: float | None = None,
        *,
        own_rates: bool = True,
    ) -> None:
        modules = list(modules)
        factors, sharded = _factors(modules) if own_rates else {}, _sharded_rows(modules)
        self._moving = [
            _Moving(
                p,
                factors.get(id(p), 1.0),
                sharded.get(id(p)),
                torch.zeros_like(p),
                torch.zeros_like(p),
                torch.zeros((), device=p.device),
            )
            for module in modules
            for p in module.parameters()
            if p.requires_grad
        ]
        self._clip_norm = clip_norm
        self._learning_rate, self._lr_scale = learning_rate, 1.0
        self.workers: Workers | None = None  # processes whose gradients are added to those of this one

    def set_lr_scale(self, scale: float) -> None:
        """From now on take steps of this share of each parameter's own rate."""
        self._lr_scale = scale

    def start_over(self, learning_rate: float) -> None:
        """Forget all moments, and go on at this rate."""
        self._learning_rate = learning_rate
        for tensor in self.live_state().values():
            tensor.zero_()

    def step(self, loss: Tensor) -> None:
        """Descend `loss` by one step; parameters of other players are left without gradient."""
        parameters = [m.parameter for m in self._moving]
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        self.apply_gradients({p: g for p, g in zip(parameters, gradients, strict=True) if g is not None})

    def apply_gradients(self, gradients: Mapping[Tensor, Tensor]) -> None:
        """Take one step against these gradients; parameters without one stay where they are."""
        if self.workers is not None:
            # Sharded tables have sent theirs to the owners of the rows already.
            own = {m.parameter for m in self._moving if m.sharded is not None}
            copied = {p: g for p, g in gradients.items() if p not in own}
            gradients = {**gradients, **self.workers.add_up(copied)}
        reached = [
            (m, g.coalesce() if g.is_sparse else g)
            for m in self._moving
            if (g := gradients.get(m.parameter)) is not None
        ]
        if self._clip_norm is not None:
            clip_gradients([g for _, g in reached], self._clip_norm, self._square_elsewhere(reached))
        with torch.no_grad():
            # A softmax over the whole catalogue touches every row, of a large table too.
            self._move_dense([(m, g) for m, g in reached if not g.is_sparse])
            for moving, gradient in reached:
                if gradient.is_sparse:
                    self._move_sparse(moving, gradient)

    def state(self) -> dict[str, Tensor]:
        """A copy of every moment and step count as a flat dictionary of tensors."""
        return {name: tensor.clone() for name, tensor in self.live_state().items()}

    def live_state(self) -> dict[str, Tensor]:
        """The same, not copied."""
        return {
            f"{n}.{slot}": getattr(moving, slot)
            for n, moving in enumerate(self._moving)
            for slot in ("mean", "square", "steps")
        }

    def sharded_rows(self) -> dict[str, int]:
        """Those keys of the state of which this process has only some rows, and how many there are in all."""
        return {
            f"{n}.{slot}": moving.sharded
            for n, moving in enumerate(self._moving)
            for slot in ("mean", "square")
            if moving.sharded is not None
        }

    def load_state(self, flat: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave."""
        for name, value in flat.items():
            n, slot = name.split(".")
            getattr(self._moving[int(n)], slot).copy_(value)

    def _square_elsewhere(self, reached: list[tuple[_Moving, Tensor]]) -> Tensor | None:
        """The squared length of gradients of sharded tables that other processes have; None without any."""
        own = [g.values() if g.is_sparse else g for m, g in reached if m.sharded is not None]
        if self.workers is None or not own:
            return None
        square = torch.stack([g.square().sum() for g in own]).sum()
        return self.workers.total(square) - square

    def _move_dense(self, reached: list[tuple[_Moving, Tensor]]) -> None:
        for factor in dict.fromkeys(moving.factor for moving, _ in reached):
            group = [(m, g) for m, g in reached if m.factor == factor]
            adam(
                [m.parameter for m, _ in group],
                [g for _, g in group],
                [m.mean for m, _ in group],
                [m.square for m, _ in group],
                [],
                [m.steps for m, _ in group],
                fused=True,
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=self._lr_scale * (self._learning_rate * factor),
                weight_decay=0,
                eps=EPSILON,
                maximize=False,
            )

    def _move_sparse(self, moving: _Moving, gradient: Tensor) -> None:
        moving.steps += 1
        by_mean, by_square = (1 - beta for beta in BETAS)
        unbiased = math.sqrt(1 - BETAS[1] ** float(moving.steps)) / (1 - BETAS[0] ** float(moving.steps))
        rate = self._lr_scale * (self._learning_rate * moving.factor)
        rates = Rates(by_mean, by_square, rate * unbiased, EPSILON)
        move_rows(moving.parameter, gradient, moving.mean, moving.square, rates)


def _sharded_rows(modules: Iterable[nn.Module]) -> dict[int, int]:
    """The id of each parameter of which this process has only some rows, and how many there are in all."""
    within = (m for root in modules for m in root.modules())
    return {id(m.weight): m.rows for m in within if isinstance(m, ShardedTable)}


def _factors(modules: Iterable[nn.Module]) -> dict[int, float]:
    """The id of each parameter that has a rate of its own, and the factor."""
    return {
        id(module.get_parameter(name)): factor
        for root in modules
        for module in root.modules()
        if isinstance(module, HasParameterRates)
        for name, factor in module.rates().items()
    }


def clip_gradients(gradients: Iterable[Tensor], longest: float, elsewhere: Tensor | None = None) -> Tensor:
    """Shorten all gradients together to length `longest` if they are longer; returns the length before.

    Works on coalesced sparse gradients too (torch's own clipping refuses them). `elsewhere` is the squared
    length of what belongs to the same gradient and is not here.
    """
    values = [g.values() if g.is_sparse else g for g in gradients]
    length = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v) for v in values]))
    if elsewhere is not None:
        length = (length.square() + elsewhere).sqrt()
    shrink = (longest / (length + 1e-12)).clamp(max=1)
    for value in values:
        value.mul_(shrink)
    return length
