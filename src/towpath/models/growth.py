"""What one model has learned, handed to a larger one of the same kind."""

import torch
from torch import Tensor

from towpath.errors import ConfigError
from towpath.models.scorer import Scorer


def take_over(old: Scorer, new: Scorer) -> None:
    """Give the parameters of `old` to `new`, which may have more users and items, behind the old ones.

    A table that has more rows than before begins with the old ones; each new row is their mean. Buffers, such
    as encoded features, stay as `new` was initialised.
    """
    learned = dict(old.named_parameters())
    with torch.no_grad():
        for name, parameter in new.named_parameters():
            if name not in learned or learned[name].shape[1:] != parameter.shape[1:]:
                raise ConfigError(
                    f"The model cannot go on from what was learned: {name} has another shape than before; "
                    "fit again."
                )
            parameter.copy_(_with_rows(learned[name], len(parameter) if parameter.dim() else 1))


def _with_rows(table: Tensor, rows: int) -> Tensor:
    if table.dim() == 0 or len(table) == rows:
        return table
    mean = table.mean(0, keepdim=True)
    return torch.cat([table, mean.expand(rows - len(table), *table.shape[1:])])
