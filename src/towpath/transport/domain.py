"""The deployment domain of f during training: thresholds, margins and the pairs it would show."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.errors import ConfigError
from towpath.models.scorer import Scorer
from towpath.rng import Rng
from towpath.training.batches import Batch
from towpath.training.ranking import LiveRanking
from towpath.training.settings import TrainingSettings
from towpath.transport.objective import mass
from towpath.transport.pairs import Pairs, Table
from towpath.transport.reco import pool_thresholds, shown
from towpath.transport.settings import TransportSettings

# Above this many pairs w and g see only so many columns of a table: as many pairs as a sampled batch has.
_MOST_PAIRS = 2**15
_COLUMNS = 256


class Deployment:
    """Says which pairs f would show now.

    sampled   a pair is shown if it is among the best `shown` when ranked against a pool of unseen items
    exact     a pair is shown if it reaches its user's true threshold over the whole catalogue
    ranking   shown pairs are drawn from the users' own lists, not looked for among the training tuples
    """

    def __init__(
        self, scorer: Scorer, train: Interactions, training: TrainingSettings, settings: TransportSettings
    ) -> None:
        if settings.shown > train.n_items:
            raise ConfigError(
                f"Lists of shown = {settings.shown:,} items cannot be made of {train.n_items:,}; lower shown."
            )
        self._scorer, self._settings = scorer, settings
        depth = max(settings.shown, training.head if training.head_negatives else 0)
        self.ranking = LiveRanking(scorer, train, shown=settings.shown, depth=depth)
        self._needs_ranking = settings.domain != "sampled" or training.head_negatives > 0
        self._sampler = NegativeSampler(train) if settings.domain == "sampled" else None
        self._histories = train.histories

    def begin_epoch(self, number: int, rng: Rng) -> None:
        """Generators and ranking of this epoch."""
        self._pool_rng = rng.numpy("pool", number)
        self._list_rng = rng.torch("lists", number)
        self._column_rng = rng.torch("columns", number)
        if self._needs_ranking:
            self.ranking.refresh()

    def tick(self, step: int) -> None:
        """Refresh the ranking within an epoch if it is time."""
        every = self._settings.refresh
        if every and step and step % every == 0 and self._needs_ranking:
            self.ranking.refresh()

    def table(self, batch: Batch, scores: Tensor, loss: Tensor, scope: Tensor) -> Table:
        """The batch with its margins and the measure of what f shows; scores detached (b, k)."""
        thresholds = self._thresholds(batch)
        pairs = Pairs(batch.context, batch.items, scores - thresholds[:, None])
        is_shown = shown(pairs.margins)
        if self._settings.domain == "ranking":
            deployed = self._from_lists(batch, thresholds)
            mass_f = torch.full(deployed.items.shape, 1 / deployed.items.numel())
        else:
            deployed = pairs
            mass_f = mass(is_shown, scope, self._settings.measure)
        return Table(pairs, loss, batch.labels, scope, is_shown, deployed, mass_f)

    def thinned(self, table: Table) -> Table:
        """A table small enough for w and g to move on: random columns, and what is shown as it is.

        Only f needs every pair; w and g learn functions of a few numbers or look at many tables.
        """
        width = table.pairs.items.shape[1]
        if table.pairs.margins.numel() <= _MOST_PAIRS or width <= _COLUMNS:
            return table
        columns = torch.randint(width, (_COLUMNS,), generator=self._column_rng)
        deployed, mass_f = table.deployed, table.mass_f
        if deployed is table.pairs:
            mass_f, best = mass_f.topk(self._settings.shown, dim=1)
            items = deployed.items.expand(len(best), -1).gather(1, best)
            deployed = Pairs(deployed.context, items, deployed.margins.gather(1, best))
        pairs = Pairs(table.pairs.context, table.pairs.items[:, columns], table.pairs.margins[:, columns])
        loss, labels, scope, is_shown = (
            t[:, columns] for t in (table.loss, table.labels, table.scope, table.shown)
        )
        return Table(pairs, loss, labels, scope, is_shown, deployed, mass_f)

    def _thresholds(self, batch: Batch) -> Tensor:
        """The score of the last item that each user of the batch would be shown: (b,)."""
        if self._sampler is None:
            return self.ranking.current().thresholds[batch.context.users]
        users = batch.context.users.cpu().numpy()
        pool = torch.from_numpy(self._sampler.sample(users, self._settings.pool, self._pool_rng))
        with torch.no_grad():
            return pool_thresholds(self._scorer.score(batch.context, pool), self._settings.shown)

    def _from_lists(self, batch: Batch, thresholds: Tensor) -> Pairs:
        """One pair from each user's current list."""
        depth = self._settings.shown
        items = self.ranking.current().draw(batch.context.users, 1, depth, self._list_rng)
        with torch.no_grad():
            scores = self._scorer.score(batch.context, items)
        return Pairs(batch.context, items, scores - thresholds[:, None])
