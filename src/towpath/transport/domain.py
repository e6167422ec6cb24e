"""The deployment domain of f during training: thresholds, margins and the pairs it would show."""

import torch
from torch import Tensor

from towpath.data.interactions import Interactions
from towpath.data.negatives import NegativeSampler
from towpath.errors import ConfigError
from towpath.models.scorer import Scorer
from towpath.ranking.snapshot import LiveRanking
from towpath.rng import Rng
from towpath.training.batches import Batch
from towpath.training.distributed import shared_scores, workers
from towpath.training.settings import TrainingSettings
from towpath.transport.game_batch import CandidatePairs, GameBatch
from towpath.transport.objective import mass
from towpath.transport.reco import pool_thresholds, shown
from towpath.transport.settings import TransportSettings

# Above this many pairs w and g see only so many columns of a game: as many pairs as a sampled batch has.
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
        if settings.list_length > train.n_items:
            raise ConfigError(
                f"Lists of list_length = {settings.list_length:,} items cannot be made of {train.n_items:,}; "
                "lower list_length."
            )
        self._scorer, self._settings = scorer, settings
        depth = max(settings.list_length, training.hard_negative_depth if training.hard_negatives else 0)
        self.ranking = LiveRanking(scorer, train, shown=settings.list_length, depth=depth)
        self._needs_ranking = settings.domain != "sampled" or training.hard_negatives > 0
        self._sampler = NegativeSampler(train) if settings.domain == "sampled" else None
        self._histories = train.histories
        # Whether w and g see the same pairs as f, and nothing else.
        sampled = training.pairs == "sampled" and training.negatives < _COLUMNS
        self.one_table = sampled and settings.domain != "ranking"
        self.workers = workers()

    def begin_epoch(self, number: int, rng: Rng) -> None:
        """Generators and ranking of this epoch."""
        self._pool_rng = rng.numpy("pool", number)
        self._list_rng = rng.torch("lists", number)
        self._column_rng = rng.torch("columns", number)
        if self._needs_ranking:
            self.ranking.refresh()

    def game_batch(self, batch: Batch, scores: Tensor, loss: Tensor, reweight_mask: Tensor) -> GameBatch:
        """The batch with its margins and the measure of what f shows; scores detached (b, k)."""
        thresholds = self._thresholds(batch)
        pairs = CandidatePairs(batch.context, batch.items, scores - thresholds[:, None])
        is_shown = shown(pairs.margins)
        if self._settings.domain == "ranking":
            deployed = self._from_lists(batch, thresholds)
            mass_f = torch.full_like(deployed.margins, 1 / deployed.items.numel())
        else:
            deployed = pairs
            mass_f = mass(is_shown, reweight_mask, self._settings.measure)
        return GameBatch(pairs, loss, batch.labels, reweight_mask, is_shown, deployed, mass_f)

    def margins(self, batch: Batch, scores: Tensor) -> Tensor:
        """How far above its user's threshold each pair is, from detached scores (b, k)."""
        return scores - self._thresholds(batch)[:, None]

    def subsample_columns(self, game: GameBatch) -> GameBatch:
        """A game small enough for w and g to move on: random columns, and what is shown as it is.

        Only f needs every pair; w and g learn functions of a few numbers or look at many tables.
        """
        width = game.pairs.items.shape[1]
        if game.pairs.margins.numel() <= _MOST_PAIRS or width <= _COLUMNS:
            return game
        columns = torch.randint(width, (_COLUMNS,), generator=self._column_rng).to(game.loss.device)
        deployed, mass_f = game.deployed, game.mass_f
        if deployed is game.pairs:
            mass_f, best = mass_f.topk(self._settings.list_length, dim=1)
            items = deployed.items.expand(len(best), -1).gather(1, best)
            deployed = CandidatePairs(deployed.context, items, deployed.margins.gather(1, best))
        pairs = CandidatePairs(
            game.pairs.context, game.pairs.items[:, columns], game.pairs.margins[:, columns]
        )
        loss, labels, reweight_mask, is_shown = (
            t[:, columns] for t in (game.loss, game.labels, game.reweight_mask, game.shown)
        )
        return GameBatch(pairs, loss, labels, reweight_mask, is_shown, deployed, mass_f)

    def _thresholds(self, batch: Batch) -> Tensor:
        """The score of the last item that each user of the batch would be shown: (b,)."""
        if self._sampler is None:
            return self.ranking.current().thresholds[batch.context.users]
        users = batch.context.users.cpu().numpy()
        drawn = self._sampler.sample(users, self._settings.pool, self._pool_rng)
        pool = torch.from_numpy(drawn).to(batch.items.device)
        with torch.no_grad():
            scores = shared_scores(self.workers, self._scorer, batch, pool)
            return pool_thresholds(scores, self._settings.list_length)

    def _from_lists(self, batch: Batch, thresholds: Tensor) -> CandidatePairs:
        """One pair from each user's current list."""
        depth = self._settings.list_length
        drawn = self.ranking.current().draw(batch.context.users, 1, depth, self._list_rng)
        items = drawn.to(batch.items.device)
        with torch.no_grad():
            scores = shared_scores(self.workers, self._scorer, batch, items)
        return CandidatePairs(batch.context, items, scores - thresholds[:, None])
