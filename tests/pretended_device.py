"""A second device for machines that have none: it computes on the CPU, and refuses what a GPU would refuse.

Tensors on it report the device "meta", so the checks of our code (`tensor.device`) see another device. An
operation that mixes them with tensors of the CPU raises, as it does on CUDA and MPS; so do generators of the
CPU, a look at the memory by numpy and, as on MPS, double precision.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from towpath import device

NAME = "meta"


class MixedDevicesError(RuntimeError):
    """What a real device would not have done."""


class There(Tensor):
    """A tensor on the pretended device; `held` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "There":
        made: There = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=NAME,
        )
        made.held = held
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"There({self.held})"

    def numpy(self, *, force: bool = False) -> Any:
        raise MixedDevicesError("numpy cannot look at the memory of another device")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {}, doubles=True)


class _Pretending(TorchDispatchMode):
    def __init__(self, doubles: bool) -> None:
        super().__init__()
        self._doubles = doubles

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _compute(func, args, kwargs or {}, doubles=self._doubles)


def _compute(func: Any, args: Any, kwargs: dict[str, Any], *, doubles: bool) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    asked = kwargs.get("device")
    # Without a word about the device a result is where its inputs are.
    there = any(isinstance(t, There) for t in tensors) if asked is None else torch.device(asked).type == NAME
    _refuse_mixing(func, tensors)
    if there and any(isinstance(leaf, torch.Generator) for leaf in tree_leaves((args, kwargs))):
        raise MixedDevicesError(f"{func}: a generator of the CPU cannot draw on another device")
    here = {**kwargs, "device": torch.device("cpu")} if asked is not None else kwargs
    held = {id(t.held): t for t in tensors if isinstance(t, There)}
    found = func(*tree_map(_held, args), **tree_map(_held, here))
    return tree_map(lambda out: _wrapped(func, out, held, doubles) if there else out, found)


def _held(leaf: Any) -> Any:
    return leaf.held if isinstance(leaf, There) else leaf


def _wrapped(func: Any, out: Any, held: dict[int, There], doubles: bool) -> Any:
    if not isinstance(out, Tensor):
        return out
    if out.dtype == torch.float64 and not doubles:
        raise MixedDevicesError(f"{func}: no double precision on this device")
    if id(out) in held:
        return held[id(out)]  # written in place: the same tensor as before
    return There(out)


def _refuse_mixing(func: Any, tensors: list[Tensor]) -> None:
    if func is torch.ops.aten.copy_.default or not any(isinstance(t, There) for t in tensors):
        return
    # Single numbers of the CPU are let through by real devices too, but must not be written to.
    here = [t for t in tensors if not isinstance(t, There)]
    written = func._schema.is_mutable and tensors and not isinstance(tensors[0], There)
    if written or any(t.dim() for t in here):
        raise MixedDevicesError(f"{func}: some tensors are on the CPU, others on the pretended device")


@contextmanager
def pretended_device(monkeypatch: pytest.MonkeyPatch, *, doubles: bool = False) -> Iterator[str]:
    """The name of a second device, which is there as long as this is open."""
    monkeypatch.setattr(device, "DEVICES", (*device.DEVICES, NAME))
    monkeypatch.setattr(device, "_count", lambda kind: 1)
    monkeypatch.setattr(device, "WITHOUT_DOUBLE", set() if doubles else {NAME})
    with _Pretending(doubles), warnings.catch_warnings():
        # True of tensors on the device that this one goes by the name of.
        warnings.filterwarnings("ignore", message=".*copying from a non-meta parameter")
        yield NAME
