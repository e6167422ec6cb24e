"""A model as the server uses it: ids to codes by dictionaries, scores by one matrix-vector product.

The lists are those of `Recommender`. Where two scores are so close that the order of additions decides, the
scorer itself is asked.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from towpath.checksums import MANIFEST, file_digest
from towpath.data.vocabulary import UNKNOWN, Id, Vocabulary
from towpath.errors import ArtifactError, ConfigError
from towpath.kernels.available import AVAILABLE
from towpath.kernels.catalogue import rank_catalogue, usable
from towpath.models.capabilities import with_item_similarity
from towpath.models.factorization import Factorization
from towpath.models.fold_in import HasFoldIn, RidgeFoldIn
from towpath.models.scorer import Context
from towpath.ranking.top_k import top_k
from towpath.serving.artifact import Artifact, load_artifact, log_of
from towpath.serving.catalogue import pack
from towpath.serving.http.exploration import Slate
from towpath.serving.http.rest import ModelRest
from towpath.serving.http.settings import NOTHING_RESTS, RestRules
from towpath.serving.lean import NEAR
from towpath.serving.run import Run

Floats = NDArray[np.float32]
Codes = NDArray[np.int32]


@dataclass
class Ids:
    """The ids of one side: from text to code, and from code to what JSON shows."""

    vocabulary: Vocabulary
    codes: dict[str, int] = field(init=False)
    shown: list[Id] = field(init=False)  # text or integers
    texts: list[str] = field(init=False)
    written: list[str] = field(init=False)  # the texts as JSON

    def __post_init__(self) -> None:
        """Look all ids up once, so that requests need not."""
        values = self.vocabulary.ids(np.arange(len(self.vocabulary)))
        self.texts = [str(value) for value in values]
        self.written = [json.dumps(text) for text in self.texts]
        whole = bool(values) and isinstance(values[0], int)
        self.shown = values if whole else self.texts
        self.codes = {text: code for code, text in enumerate(self.texts)}
        kind = self.vocabulary.values.type
        self._is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)

    def code(self, text: str) -> int:
        """The code of an id, or UNKNOWN."""
        found = self.codes.get(text)
        if found is not None or self._is_text:
            return UNKNOWN if found is None else found
        return self.vocabulary.code(text)  # another way to write the same number or date

    def known(self, texts: Iterable[str]) -> list[int]:
        """The codes of those ids that are known."""
        return [code for code in map(self.code, texts) if code != UNKNOWN]


@dataclass(frozen=True)
class Asker:
    """The user of one request, as the model sees them."""

    code: int  # of the user as training knew them; UNKNOWN: nothing but the history is known
    history: Codes  # of what they have had, oldest first


class ServedModel:
    """Answers from one artifact."""

    def __init__(self, artifact: Artifact, version: str, rest: ModelRest | None = None) -> None:
        self.version, self._rest = version, rest
        self.users, self.items = Ids(artifact.user_ids), Ids(artifact.item_ids)
        self._scorer = artifact.scorer.eval()
        self._past = artifact.history
        self._popular = artifact.history.item_counts.astype(np.float32)
        self._every = torch.arange(len(self.items.texts))[None, :]
        self._folds_in = isinstance(self._scorer, HasFoldIn)
        self._tables = _tables_of(artifact)
        self._unit = _unit_of(artifact)
        if AVAILABLE:  # compiled now, not at the first request
            self.best(self._popular.copy(), 1)
            if self._tables is not None and len(self.users.texts):
                self._ranked_by_product(self._tables.users[0], np.empty(0, np.int32), 1)

    def asker(self, user: str, given: Sequence[str], seen: Collection[str]) -> Asker:
        """The user, with the history that the request gives, else that of the training data; then `seen`.

        Whoever brings a history is folded in by it, as `Recommender` does, and so are strangers by what they
        have clicked here. A history of items that the model does not know counts as none.
        """
        code = self.users.code(user)
        if code != UNKNOWN and not self._past.trained[code]:
            code = UNKNOWN
        brought = self.items.known(given) if given else []
        history = np.array(brought, dtype=np.int32) if brought else self._trained_history(user)
        if seen:
            known = set(history.tolist())
            later = [item for item in self.items.known(seen) if item not in known]
            history = np.append(history, np.array(later, dtype=np.int32))
        return Asker(UNKNOWN if brought and self._folds_in else code, history)

    def _trained_history(self, user: str) -> Codes:
        """The codes of the items that the training data have of this user, oldest first."""
        code, past = self.users.code(user), self._past.histories
        if code == UNKNOWN:
            return past.items[:0]
        return past.items[past.starts[code] : past.starts[code + 1]]

    def ranked(self, who: Asker, k: int) -> tuple[Floats, Slate, bool]:
        """Scores (items,), to be written to, the best k, and whether they are popularity.

        What is in the history is hidden. Popularity is for those of whom nothing is known.
        """
        fallback = who.code == UNKNOWN and not (self._folds_in and len(who.history))
        if self._tables is not None and not fallback:
            return *self._ranked_by_product(self._tables.row_of(who), who.history, k), False
        scores = self._popular.copy() if fallback else self.exact_scores(who)
        hide(scores, who.history)
        return scores, self.best(scores, k), fallback

    def _ranked_by_product(self, vector: Floats, history: Codes, k: int) -> tuple[Floats, Slate]:
        assert self._tables is not None
        items, biases = self._tables.items, self._tables.biases
        k = min(k, len(biases))
        if usable(k):
            scores, found, places = rank_catalogue(vector, items, biases, history, k)
            return scores, _slate(places, found)
        scores = vector[:-1] @ items
        scores += biases
        scores += vector[-1]
        hide(scores, history)
        return scores, self.best(scores, k)

    def exact_scores(self, who: Asker) -> Floats:
        """The same by the scorer, as `Recommender` has them: (items,)."""
        scorer, longest = self._scorer, self._scorer.history_length
        if who.code == UNKNOWN and isinstance(scorer, HasFoldIn):
            scorer = scorer.fold_in(pack([who.history]))
        last = who.history[len(who.history) - min(longest, len(who.history)) :].astype(np.int64)
        context = Context(torch.tensor([max(who.code, 0)]), torch.from_numpy(last[None]))
        with torch.inference_mode():
            return np.array(scorer.score(context, self._every)[0].numpy(), dtype=np.float32)

    def rest(
        self, scores: Floats, user: str, shown: Mapping[str, Sequence[int]], now: int, *, counts: bool
    ) -> bool:
        """Let rest, in scores (items,), what this user was shown; whether there is such a rule.

        shown: the times at which this server has shown them each item.
        """
        if self._rest is None:
            return False
        codes = ((self.items.code(item), times) for item, times in shown.items())
        later = {code: times for code, times in codes if code != UNKNOWN}
        self._rest.apply(scores, self.users.code(user), later, now, counts=counts)
        return True

    def similar(self, item: int) -> Floats:
        """How alike every item is to this one: (items,), minus infinity for itself."""
        with torch.inference_mode():
            if self._unit is not None:
                scores = (self._unit[item : item + 1] @ self._unit.T)[0]
            else:
                scores = with_item_similarity(self._scorer).item_similarity(torch.tensor([item]))[0]
            found = np.array(scores.numpy(), dtype=np.float32)
        found[item] = -np.inf
        return found

    def best(self, scores: Floats, k: int) -> Slate:
        """The k best of these scores, fewer if fewer may be shown; among equal ones the lower code first."""
        k = min(k, len(scores))
        if usable(k):
            from towpath.kernels import compiled

            values, columns = np.empty((1, k), np.float32), np.empty((1, k), np.int64)
            compiled.few_best_of_rows(0, 1, scores[None], values, columns)
            items, found = columns[0].tolist(), values[0].tolist()
        else:
            best, places = top_k(torch.from_numpy(scores)[None], k)
            items, found = places[0].tolist(), best[0].tolist()
        return _slate(items, found)

    def in_doubt(self, best: Slate) -> bool:
        """Whether the scorer must be asked for the order: two neighbours in this list are too close."""
        if self._tables is None or not best.scores:
            return False
        before, near = np.inf, NEAR * max(1.0, abs(best.scores[0]))
        for score in best.scores:
            if before - score <= near:
                return True
            before = score
        return False


def hide(scores: Floats, items: Codes) -> None:
    """Give these items a score below all others."""
    scores[items] = -np.inf


def _slate(items: list[int], scores: list[float]) -> Slate:
    """The slate of the best items, without those at the end that are hidden."""
    while scores and scores[-1] == -np.inf:
        items.pop(), scores.pop()
    return Slate(items, scores, [1.0] * len(items))


def load_model(folder: str | Path, rules: RestRules = NOTHING_RESTS) -> ServedModel:
    """The model of a run or an artifact folder; its version is the beginning of its manifest's checksum."""
    path = Path(folder)
    run = Run(path) if (path / "run.json").is_file() else None
    artifact = load_artifact(path) if run is None else run.artifact
    rest = None
    if rules != NOTHING_RESTS:
        if run is None:
            raise ConfigError(
                f"{path} does not know when users were shown what, so nothing can rest; serve the folder of "
                "the run that it comes from, or leave out --filter-shown, --max-showings and --rest."
            )
        rest = ModelRest(log_of(run.split), rules)
    manifest = (path if run is None else path / "artifact") / MANIFEST
    return ServedModel(artifact, file_digest(manifest)[:12], rest)


@dataclass(frozen=True)
class Tables:
    """A factorisation as one matrix-vector product needs it; all arrays float32."""

    users: Floats  # (users, d + 1) the last column a bias
    items: Floats  # (d, items)
    biases: Floats  # (items,)
    fold_in: RidgeFoldIn

    def row_of(self, who: Asker) -> Floats:
        """The vector and the bias of a user: (d + 1,)."""
        if who.code != UNKNOWN:
            return self.users[who.code]
        with torch.inference_mode():
            return self.fold_in.vectors(pack([who.history]))[0].numpy()


def _tables_of(artifact: Artifact) -> Tables | None:
    """The tables of a factorisation; None for other models."""
    scorer = artifact.scorer
    if not isinstance(scorer, Factorization):
        return None
    users, items = (table.weight.detach().numpy() for table in (scorer.users, scorer.items))
    bias = items[:, -1] + scorer.bias.detach().numpy()
    if not (np.isfinite(users).all() and np.isfinite(items).all()):
        raise ArtifactError(
            "The model has vectors that are not numbers; training broke down, so fit it again."
        )
    return Tables(users, np.ascontiguousarray(items[:, :-1].T), bias, scorer.ridge_fold_in())


def _unit_of(artifact: Artifact) -> torch.Tensor | None:
    """The item vectors of a factorisation at length one."""
    scorer = artifact.scorer
    if not isinstance(scorer, Factorization):
        return None
    with torch.no_grad():
        return torch.nn.functional.normalize(scorer.items.weight[:, :-1], dim=1)
