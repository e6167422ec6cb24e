"""Lists for users and neighbours of items, in the user's own ids."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import torch
from numpy.typing import NDArray

from towpath.data.interactions import Histories, Interactions
from towpath.data.repeats import RestCurve, estimate_rest
from towpath.data.split import Split
from towpath.data.vocabulary import UNKNOWN, Id
from towpath.device import device_named, device_of
from towpath.errors import ConfigError, DataError
from towpath.models.capabilities import with_item_similarity
from towpath.models.fold_in import HasFoldIn
from towpath.models.popularity import Popularity, PopularitySettings
from towpath.models.scorer import Scorer, Sizes
from towpath.ranking.blocks import NOTHING, Hide, candidate_block
from towpath.ranking.lists import TopK, top_k_lists
from towpath.ranking.resting import NOTHING_RESTS, Rest, Resting, rest_by
from towpath.ranking.scoring import inference_mode, score_block
from towpath.ranking.top_k import HIDDEN, top_k
from towpath.serving.answers import FALLBACK, How, ItemScores, Neighbours, Recommendation
from towpath.serving.artifact import Artifact, load_artifact, log_of, shown_histories_of
from towpath.serving.catalogue import ListRules, candidate_codes, check_k, known_codes, pack
from towpath.serving.run import Run

__all__ = ["FALLBACK", "ItemScores", "Neighbours", "Recommendation", "Recommender", "load"]


class Recommender:
    """Answers from an artifact alone; ids in and out are the user's own.

    The run that the artifact belongs to, where it is at hand, is asked only for what users were shown.
    """

    def __init__(self, artifact: Artifact, run: Run | None = None) -> None:
        self.artifact = artifact
        self._run = run

    def recommend(
        self,
        user: Id,
        k: int = 10,
        *,
        history: Sequence[Id] | None = None,
        candidates: Sequence[Id] | None = None,
        exclude: Sequence[Id] = (),
        filter_seen: bool = True,
        filter_shown: bool = False,
        resting: Resting = NOTHING_RESTS,
        now: int | None = None,
    ) -> Recommendation:
        """The k best items for this user.

        history: the items that the user has interacted with, oldest first, instead of what the log says of
            them; a user whom the model does not know is folded in by it.
        candidates: rank these items only. exclude: never recommend these.
        filter_seen: leave out what the user has interacted with. filter_shown: and all that they were shown.
        resting: discount or hide what was shown lately, as of `now`, in the log's times (its end if None);
            `Resting(most_showings=3, curve=recommender.rest_curve())` does both.
        """
        return self.recommend_many(
            [user],
            k,
            histories=[history],
            candidates=candidates,
            exclude=exclude,
            filter_seen=filter_seen,
            filter_shown=filter_shown,
            resting=resting,
            now=now,
        )[0]

    def recommend_many(
        self,
        users: Sequence[Id],
        k: int = 10,
        *,
        histories: Sequence[Sequence[Id] | None] | None = None,
        candidates: Sequence[Id] | None = None,
        exclude: Sequence[Id] = (),
        filter_seen: bool = True,
        filter_shown: bool = False,
        resting: Resting = NOTHING_RESTS,
        now: int | None = None,
    ) -> list[Recommendation]:
        """The k best items for each of these users; `histories` has one for each, or None.

        A user who has had nearly everything gets a shorter list.
        """
        check_k(k, len(self.artifact.item_ids))
        allowed = candidate_codes(self.artifact.item_ids, candidates, exclude)
        rules = ListRules(k, allowed, filter_seen, filter_shown, resting, now)
        given = self._histories(users, histories)
        codes = self.artifact.user_ids.codes(users)
        without = np.array([history is None for history in given], dtype=np.bool_)
        lists = TopK(np.empty((len(users), k), np.int64), np.empty((len(users), k), np.float32))
        hows = np.empty(len(users), dtype=object)
        lists.items[without], lists.scores[without], hows[without] = self.lists(codes[without], rules)
        for place in np.flatnonzero(~without):
            found, how = self._list_after(int(codes[place]), pack([given[place]]), rules)  # type: ignore[list-item]  # not None
            lists.items[place], lists.scores[place], hows[place] = found.items[0], found.scores[0], how
        return [
            Recommendation(user, *answer, fallback=how == FALLBACK, how=how)
            for user, answer, how in zip(users, self._in_ids(lists), hows, strict=True)
        ]

    def lists(
        self, codes: NDArray[np.int64], rules: ListRules
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.object_]]:
        """Items and scores (n, k) for these users by code, UNKNOWN for a stranger, and how each was made."""
        known = self.knows(codes)
        items = np.empty((len(codes), rules.k), np.int64)
        scores = np.empty((len(codes), rules.k), np.float32)
        past, hide, rest = self.artifact.history.histories, self._hide(rules), self._rest(rules)
        for some, scorer in ((known, self.artifact.scorer), (~known, self._fallback)):
            if some.any():
                found = top_k_lists(
                    scorer, codes[some], past, rules.k, hide=hide, candidates=rules.candidates, rest=rest
                )
                items[some], scores[some] = found.items, found.scores
        return items, scores, np.where(known, "model", FALLBACK).astype(object)

    def knows(self, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these users (n,) the model was trained on."""
        return (codes != UNKNOWN) & self.artifact.history.trained[codes]

    def score(self, user: Id, items: Sequence[Id], *, history: Sequence[Id] | None = None) -> ItemScores:
        """The user's scores of these items, whether they have had them or not."""
        codes = self._item_codes(items)
        [given] = self._histories([user], [history])
        code = self.artifact.user_ids.codes([user])
        if given is None:
            how: How = "model" if self.knows(code)[0] else FALLBACK
            scorer = self.artifact.scorer if how == "model" else self._fallback
            row, past = code, self.artifact.history.histories
        else:
            scorer, row, past, how = self._after(int(code[0]), pack([given]))
        scores = score_block(scorer, candidate_block(row, codes[None, :]), past)
        return ItemScores(user, tuple(items), tuple(scores[0].tolist()), how == FALLBACK, how)

    # For type checkers alone: what `overload` remembers of a module outlives the program's libraries.
    if TYPE_CHECKING:

        @overload
        def similar(self, item: list[Id] | tuple[Id, ...], k: int = 10) -> list[Neighbours]: ...
        @overload
        def similar(self, item: Id, k: int = 10) -> Neighbours: ...

    def similar(self, item: Id, k: int = 10) -> Neighbours | list[Neighbours]:
        """The k items most like this one, without itself; a list of items gives a list of answers."""
        check_k(k, len(self.artifact.item_ids))
        many = isinstance(item, list | tuple)
        asked = list(item) if many else [item]
        answers = [
            self._similar(one, int(code), k) for one, code in zip(asked, self._item_codes(asked), strict=True)
        ]
        return answers if many else answers[0]

    def _similar(self, item: Id, code: int, k: int) -> Neighbours:
        alike = with_item_similarity(self.artifact.scorer)
        with inference_mode(self.artifact.scorer):
            scores = alike.item_similarity(torch.tensor([code]).to(device_of(self.artifact.scorer))).clone()
        scores[0, code] = HIDDEN
        values, items = (t.cpu() for t in top_k(scores, k))
        [(ids, likeness)] = self._in_ids(TopK(items.where(values > HIDDEN, NOTHING).numpy(), values.numpy()))
        return Neighbours(item, ids, likeness)

    def _list_after(self, code: int, history: Histories, rules: ListRules) -> tuple[TopK, How]:
        """The list of one user whose history is given."""
        scorer, row, past, how = self._after(code, history)
        hide: Hide = "interacted" if rules.hide_seen or rules.hide_shown else "nothing"
        if rules.resting != NOTHING_RESTS:
            raise ConfigError(
                "A history that is given has no times, so nothing can rest by it; leave one out."
            )
        return top_k_lists(scorer, row, past, rules.k, hide=hide, candidates=rules.candidates), how

    def _after(self, code: int, history: Histories) -> tuple[Scorer, NDArray[np.int64], Histories, How]:
        """Who scores a user after this history, which row of it they are, and the histories by row."""
        scorer = self.artifact.scorer
        if isinstance(scorer, HasFoldIn):
            return scorer.fold_in(history), np.zeros(1, np.int64), history, "folded in"
        if not self.knows(np.array([code]))[0]:
            return self._fallback, np.zeros(1, np.int64), history, FALLBACK
        starts = np.zeros(len(self.artifact.user_ids) + 1, dtype=np.int64)
        starts[code + 1 :] = len(history.items)
        return scorer, np.array([code]), Histories(starts, history.items), "model"

    def _histories(
        self, users: Sequence[Id], histories: Sequence[Sequence[Id] | None] | None
    ) -> list[NDArray[np.int64] | None]:
        """The codes of what is known of each history; None where none is given."""
        if histories is not None and len(histories) != len(users):
            raise ConfigError(
                f"Each of the {len(users):,} users should have a history or None; {len(histories):,} came."
            )
        ids = self.artifact.item_ids
        return [
            None if history is None or not len(history) else known_codes(history, ids, "history")
            for history in histories or [None] * len(users)
        ]

    def _item_codes(self, items: Sequence[Id]) -> NDArray[np.int64]:
        codes = self.artifact.item_ids.codes(items)
        for item, code in zip(items, codes, strict=True):
            if code == UNKNOWN:
                raise DataError(
                    f"There is no item {item!r} among the {len(self.artifact.item_ids):,} items of the data "
                    f"(first: {self.artifact.item_ids.ids(np.array([0]))[0]!r}); give one of its ids."
                )
        return codes

    def _hide(self, rules: ListRules) -> Hide:
        if rules.hide_shown:
            return self._shown
        return "interacted" if rules.hide_seen else "nothing"

    def rest_curve(self) -> RestCurve:
        """How much less often an item is clicked when it is shown again, by the run's own log."""
        return estimate_rest(self._log)

    def _rest(self, rules: ListRules) -> Rest | None:
        return None if rules.resting == NOTHING_RESTS else rest_by(self._log, rules.resting, rules.now)

    @cached_property
    def _log(self) -> Interactions:
        """Everything that users were shown, with times."""
        return log_of(
            self._split(
                "This model does not know when users were shown what, so nothing can rest; load the run "
                "folder that it comes from."
            )
        )

    @cached_property
    def _shown(self) -> Histories:
        """Everything that each user was shown, what they have interacted with included."""
        if self.artifact.history.shown is not None:
            return self.artifact.history.shown
        return shown_histories_of(
            self._split(
                "This model does not keep what users were shown, so it cannot be left out; save it with "
                "towpath.save(..., keep_shown=True), or load the run folder that it comes from."
            )
        )

    def _split(self, otherwise: str) -> Split:
        """The split of the run that the model comes from; without a run, `otherwise` says what to do."""
        if self._run is None:
            raise ConfigError(otherwise)
        return self._run.split

    @cached_property
    def _fallback(self) -> Scorer:
        """Each item's count of training events, for whoever the scorer knows nothing of."""
        counts = self.artifact.history.item_counts
        fallback = Popularity(PopularitySettings(), Sizes(len(self.artifact.user_ids), len(counts)))
        fallback.counts.copy_(torch.from_numpy(counts))
        return fallback

    def _in_ids(self, lists: TopK) -> list[tuple[tuple[Id, ...], tuple[float, ...]]]:
        """Ids and scores of each list; a list that ended early is as long as it is."""
        width = lists.items.shape[1]
        ids = self.artifact.item_ids.ids(np.maximum(lists.items, 0).ravel())
        return [
            (tuple(ids[row * width : row * width + length]), tuple(lists.scores[row, :length].tolist()))
            for row, length in enumerate(lists.lengths.tolist())
        ]


def load(folder: str | Path, models: Sequence[type[Scorer]] = (), device: str = "cpu") -> Recommender:
    """The recommender of a run, or of an artifact folder copied out of one, which scores on this device.

    `models` are classes of the caller's own; without one, only registered models are loaded.
    """
    path, place = Path(folder), device_named(device)
    run = Run(path, models) if (path / "run.json").is_file() else None
    artifact = load_artifact(path, models) if run is None else run.artifact
    artifact.scorer.to(place)
    return Recommender(artifact, run)
