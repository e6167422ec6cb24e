"""Where tensors live: the CPU, or an accelerator that is there.

Everything random is drawn on the CPU and moved, so that a seed means the same on every device. Compiled
kernels take tensors of the CPU alone; plain torch does their work elsewhere.
"""

from itertools import chain

import torch
from torch import Tensor, nn

from towpath.errors import ConfigError, unknown_name

DEVICES = ("cpu", "cuda", "mps")
# Devices that have no numbers in double precision.
WITHOUT_DOUBLE = {"mps"}


def device_named(name: str) -> torch.device:
    """The device of this name, such as cpu, cuda, cuda:1 or mps; raises if it is not there."""
    kind, _, number = name.partition(":")
    if kind not in DEVICES:
        raise unknown_name("device", name, DEVICES)
    there = _count(kind)
    if number and not (number.isdecimal() and int(number) < there):
        raise ConfigError(
            f"There is no device {name!r}; torch finds {there} of kind {kind}, which are counted from 0."
        )
    if not there:
        raise ConfigError(f"The device {name!r} was asked for, and torch finds none here; use cpu.")
    return torch.device(name)


def device_of(module: nn.Module) -> torch.device:
    """Where a module's parameters and buffers are; the CPU if it has none."""
    for tensor in chain(module.parameters(), module.buffers()):
        return tensor.device
    return torch.device("cpu")


def in_double(values: Tensor) -> Tensor:
    """The same numbers in double precision: on the CPU if their own device has none."""
    return (values if has_double(values.device) else values.cpu()).double()


def has_double(device: torch.device) -> bool:
    """Whether a device has numbers in double precision."""
    return device.type not in WITHOUT_DOUBLE


def _count(kind: str) -> int:
    """How many devices of this kind there are."""
    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    return 1 if kind == "cpu" or torch.backends.mps.is_available() else 0
