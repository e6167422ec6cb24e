"""What both suites ask of a class of settings."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from towpath.models.scorer import Settings


def assert_described(kind: type[Settings]) -> None:
    """Every setting has a default and a text; the settings are frozen and refuse unknown keys."""
    for name, field in kind.model_fields.items():
        assert not field.is_required(), f"the setting {name} needs a default"
        assert field.description, f"the setting {name} needs a description"
    config = kind.model_config
    assert config.get("frozen"), f"{kind.__name__} should be frozen, as Settings is"
    assert config.get("extra") == "forbid", f"{kind.__name__} should refuse unknown keys, as Settings does"


def assert_equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor], what: str) -> None:
    """Both have the same names and the same floats, bit by bit."""
    assert one.keys() == other.keys(), f"{what} have other names: {sorted(one.keys() ^ other.keys())}"
    apart = [name for name, tensor in one.items() if not torch.equal(tensor, other[name])]
    assert not apart, f"{what} differ in {', '.join(apart)}"


def timeless(history: Any) -> list[dict[str, float]]:  # rows of a fit
    """The rows of a history without what clocks said."""
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in history]
