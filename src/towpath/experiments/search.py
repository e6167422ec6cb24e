"""Which settings to try next: search strategies over a grid.

A search is a generator: it yields the next candidates, is sent their scores (higher is better, minus infinity
for what could not be trained), and ends when it is finished. It knows nothing of models or files. Given the
same scores it yields the same candidates, so a search that was killed is run again from its start, with the
scores of finished trials looked up.
"""

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from towpath.errors import ConfigError
from towpath.rng import Rng

if TYPE_CHECKING:
    import optuna

Values = dict[str, Any]  # setting -> value of whatever type the setting has
Grid = Mapping[str, Sequence[Any]]
Search = Generator[list[Values], list[float], None]

# Candidates that Optuna gives at a time: a constant, so that what it gives does not depend on the jobs.
_SUGGESTED_AT_ONCE = 4
# Successive halving: candidates of a bracket, of how many one goes on, and the epochs of the first rungs.
BRACKET, KEPT, RUNGS = 9, 3, (3, 9)


def key_of(values: Any) -> str:  # anything JSON can hold
    """A text that is the same for the same values."""
    return json.dumps(values, sort_keys=True, default=str)


def with_start(grid: Grid, start: Values) -> Grid:
    """The grid with the values of the start in it, numbers in order.

    >>> with_start({"l2": (0.1, 0.01)}, {"l2": 0.05})
    {'l2': (0.01, 0.05, 0.1)}
    """
    widened = {}
    for name, values in grid.items():
        every = list({key_of(value): value for value in (start[name], *values)}.values())
        widened[name] = tuple(sorted(every)) if _are_numbers(every) else tuple(every)
    return widened


def coordinate_wise(grid: Grid, start: Values, *, rounds: int, most: float = math.inf) -> Search:
    """One setting after the other over all its values, the others at their best so far.

    Ends after a round that changed nothing, after so many rounds, or after `most` candidates. A candidate has
    to be better than the best so far, not merely as good.
    """
    known: dict[str, float] = {}
    best = start
    (known[key_of(best)],) = yield [best]
    for _ in range(rounds):
        before = best
        for name, values in grid.items():
            others = [{**best, name: value} for value in values]
            fresh = [other for other in others if key_of(other) not in known]
            fresh = fresh if math.isinf(most) else fresh[: max(0, int(most) - len(known))]
            if fresh:
                scores = yield fresh
                known |= {key_of(other): score for other, score in zip(fresh, scores, strict=True)}
            best = max([best, *others], key=lambda v: known.get(key_of(v), -math.inf))
        if best == before:
            return


def suggested(grid: Grid, start: Values, *, trials: int, seed: int) -> Search:
    """The start, then what Optuna's tree-structured Parzen estimator makes of the scores so far.

    Numbers are given to it by their place in the grid, so that it knows their order.
    """
    optuna = import_optuna()
    entropy = int(Rng(seed).numpy("tune").integers(2**32))
    # The liar keeps candidates of the same batch apart.
    sampler = optuna.samplers.TPESampler(seed=entropy, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({name: _place(grid[name], value) for name, value in start.items()})
    for done in range(0, trials, _SUGGESTED_AT_ONCE):
        suggestions = [study.ask() for _ in range(min(_SUGGESTED_AT_ONCE, trials - done))]
        scores = yield [_values(trial, grid) for trial in suggestions]
        for trial, score in zip(suggestions, scores, strict=True):
            if math.isinf(score):
                # Not as failed: the sampler overlooks those, and would ask for the like again and again.
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                study.tell(trial, score)


def halving(grid: Grid, start: Values, *, epochs: int, seed: int, left: Callable[[], float]) -> Search:
    """Successive halving: many candidates for a few epochs, the best third of them for three times as many.

    The start is trained to its end first. Then brackets of candidates that are drawn from the grid follow,
    until nothing is `left` of the budget or every candidate was drawn. Those that are still in the race at
    the end of a bracket are trained like the start. What is cut short has the setting `epochs`.
    """
    yield [start]
    fresh = _drawn(grid, start, seed)
    while left() > 0:
        race = [values for _, values in zip(range(BRACKET), fresh, strict=False)]
        if not race:
            return
        for limit in (*(rung for rung in RUNGS if rung < epochs), None):
            asked = [values if limit is None else {**values, "epochs": limit} for values in race]
            scores: list[float] = []
            for place in range(0, len(asked), KEPT):
                if left() <= 0:
                    return
                scores += yield asked[place : place + KEPT]
            order = np.argsort(-np.array(scores), kind="stable")
            race = [race[place] for place in order[: max(1, len(race) // KEPT)]]


def _drawn(grid: Grid, start: Values, seed: int) -> Iterator[Values]:
    """Candidates of the grid in random order, each once, without the start."""
    generator = Rng(seed).numpy("tune", "halving")
    seen, every = {key_of(start)}, math.prod(len(values) for values in grid.values())
    while len(seen) < every:
        values = {name: choices[int(generator.integers(len(choices)))] for name, choices in grid.items()}
        if (key := key_of(values)) not in seen:
            seen.add(key)
            yield values


def import_optuna() -> Any:  # the module
    """Optuna, with its log messages off; a ConfigError where it is not installed."""
    try:
        import optuna
    except ImportError:
        raise ConfigError(
            "The search 'optuna' needs the package optuna; install it with pip install 'towpath[tune]', "
            "or use --search coordinate."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would talk on standard error
    return optuna


def _values(trial: "optuna.Trial", grid: Grid) -> Values:
    return {
        name: values[trial.suggest_int(name, 0, len(values) - 1)]
        if _are_numbers(values)
        else trial.suggest_categorical(name, values)
        for name, values in grid.items()
    }


def _place(values: Sequence[Any], value: Any) -> Any:
    """What Optuna calls this value: its place among numbers, else itself."""
    return values.index(value) if _are_numbers(values) else value


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
