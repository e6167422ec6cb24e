"""Adam over dense and sparse parameters as if they were one."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn, zeros_like

from towpath.kernels.inner_products import usable
from towpath.kernels.lazy_adam import Rates, move_rows
from towpath.models.scorer import Scorer


class Optimiser:
    """Adam for dense parameters, SparseAdam for tables whose gradients are sparse.

    SparseAdam is lazy: it moves only the rows of the batch, which is what makes large tables affordable.
    Parameters for which a scorer among the modules has a rate of their own (`Scorer.rates`) learn at that.
    """

    def __init__(
        self, modules: Iterable[nn.Module], learning_rate: float, clip_norm: float | None = None
    ) -> None:
        modules = list(modules)
        tables = {
            id(m.weight)
            for root in modules
            for m in root.modules()
            if isinstance(m, nn.Embedding) and m.sparse
        }
        parameters = [p for m in modules for p in m.parameters() if p.requires_grad]
        sparse = [p for p in parameters if id(p) in tables]
        dense = [p for p in parameters if id(p) not in tables]
        self._parameters = parameters
        self._clip_norm = clip_norm
        self._parts: list[torch.optim.Optimizer] = []
        factors = _factors(modules)
        if dense:
            self._parts.append(torch.optim.Adam(_groups(dense, factors, learning_rate), fused=True))
        if sparse:
            self._parts.append(torch.optim.SparseAdam(_groups(sparse, factors, learning_rate)))

    def walk_at(self, pace: float) -> None:
        """From now on take steps of this share of each parameter's own rate."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = pace * group["full_rate"]

    def step(self, loss: Tensor) -> None:
        """Descend `loss` by one step; parameters of other players are left without gradient."""
        gradients = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        if self._clip_norm is not None:
            clip_gradients(self._parameters, self._clip_norm)
        for part in self._parts:
            if isinstance(part, torch.optim.SparseAdam):
                _step_lazily(part)
            else:
                part.step()
            part.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Every moment and step count as a flat dictionary of tensors."""
        flat = {}
        for i, part in enumerate(self._parts):
            for key, slots in part.state_dict()["state"].items():
                for slot, value in slots.items():
                    flat[f"{i}.{key}.{slot}"] = torch.as_tensor(value).clone()
        return flat

    def load_state(self, flat: dict[str, Tensor]) -> None:
        """Put back what `state` gave."""
        for i, part in enumerate(self._parts):
            parameters = [p for group in part.param_groups for p in group["params"]]
            state: dict[int, dict[str, Tensor | int]] = {}
            for name, value in flat.items():
                owner, key, slot = name.split(".")
                if int(owner) == i:
                    state.setdefault(int(key), {})[slot] = _slot(part, parameters[int(key)], slot, value)
            part.load_state_dict({"state": state, "param_groups": part.state_dict()["param_groups"]})


def _step_lazily(part: torch.optim.SparseAdam) -> None:
    """What part.step() does, by a compiled loop for tables that it takes."""
    if not all(usable(table, table) for group in part.param_groups for table in group["params"]):
        part.step()  # type: ignore[no-untyped-call]  # untyped in torch
        return
    for group in part.param_groups:
        beta1, beta2 = group["betas"]
        for table in group["params"]:
            if table.grad is None:
                continue
            state = part.state[table]
            if not state:
                state |= {"step": 0, "exp_avg": zeros_like(table), "exp_avg_sq": zeros_like(table)}
            state["step"] += 1
            step = group["lr"] * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
            rates = Rates(1 - beta1, 1 - beta2, step, group["eps"])
            move_rows(table, table.grad.coalesce(), state["exp_avg"], state["exp_avg_sq"], rates)


def _factors(modules: Iterable[nn.Module]) -> dict[int, float]:
    """The id of each parameter that has a rate of its own, and the factor."""
    scorers = [m for root in modules for m in root.modules() if isinstance(m, Scorer)]
    return {id(s.get_parameter(name)): factor for s in scorers for name, factor in s.rates().items()}


def _groups(
    parameters: Iterable[nn.Parameter], factors: Mapping[int, float], learning_rate: float
) -> list[dict[str, Any]]:  # torch's own form of parameter groups
    """The parameters by their rates, in the order in which rates first occur."""
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(factors.get(id(parameter), 1.0), []).append(parameter)
    rates = {factor: factor * learning_rate for factor in groups}
    return [{"params": m, "lr": rates[f], "full_rate": rates[f]} for f, m in groups.items()]


def _slot(part: torch.optim.Optimizer, parameter: Tensor, slot: str, value: Tensor) -> Tensor | int:
    """A stored moment or step count as the optimiser keeps it."""
    if slot != "step":
        # The fused step walks through memory, so a moment must lie in memory as its parameter does.
        return torch.empty_like(parameter).copy_(value)
    # SparseAdam counts its steps in a plain int and compares it as one.
    return int(value) if isinstance(part, torch.optim.SparseAdam) else value


def clip_gradients(parameters: Iterable[nn.Parameter], longest: float) -> Tensor:
    """Shorten all gradients together to length `longest` if they are longer; returns the length before.

    Works on sparse gradients too, whose repeated rows are summed first (torch's own clipping refuses them).
    """
    values = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
                values.append(parameter.grad.values())
            else:
                values.append(parameter.grad)
    length = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v) for v in values]))
    shrink = (longest / (length + 1e-12)).clamp(max=1)
    for value in values:
        value.mul_(shrink)
    return length
