"""Gradients of a batch whose sequences several threads share."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import torch
from torch import Tensor

from towpath.kernels.threads import at_once, each
from towpath.models.scorer import Scorer
from towpath.training.batch import Batch
from towpath.training.distributed import Slice, Workers

Gradients = dict[Tensor, Tensor]
Loss = Callable[[Scorer, Batch], Tensor]  # the mean over a batch


class SharedBatches:
    """Gives each thread a part of a batch, and a copy of the model to send it through.

    Copies have the same parameters. What else a model counts while it trains, such as the draws of dropout,
    each copy counts for itself and alike. Made anew for every epoch, where a resumed run begins.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._parameters: list[Tensor] = list(scorer.parameters())
        known = {id(parameter): parameter for parameter in self._parameters}
        self._copies = [scorer, *(deepcopy(scorer, dict(known)) for _ in range(at_once() - 1))]

    def gradients(self, batch: Batch, loss: Loss) -> tuple[Gradients, Tensor]:
        """The gradient of the mean loss, added up in one order, and the loss."""
        parts = [Workers(rank, len(self._copies)).slice(batch) for rank in range(len(self._copies))]
        found = each(
            [partial(self._of, copy, part, loss) for copy, part in zip(self._copies, parts, strict=True)]
        )
        total, losses = found[0]
        for gradients, own in found[1:]:
            losses = losses + own
            for parameter, gradient in gradients.items():
                total[parameter] = total[parameter] + gradient if parameter in total else gradient
        return total, losses

    def _of(self, scorer: Scorer, part: Slice, loss: Loss) -> tuple[Gradients, Tensor]:
        value = loss(scorer, part.batch) * part.share
        found = torch.autograd.grad(value, self._parameters, allow_unused=True)
        reached = {p: g for p, g in zip(self._parameters, found, strict=True) if g is not None}
        return reached, value.detach()
