"""Hours are those of fits of the same kind on data of about the same size."""

import pytest

from towpath.experiments.paper.columns import MCF, MIXES, OF_PAIRS
from towpath.experiments.paper.forecast import Timings, _kind
from towpath.methods.recipe import Recipe

MILLION = 1_000_000


def seconds(recipe: Recipe, timings: Timings, events: int = MILLION) -> float:
    return timings.seconds_of_kind(recipe.resolved(), events)


def test_timings_of_much_smaller_data_are_not_scaled_up() -> None:
    recipe = MCF["MCF"]
    timings = Timings()
    guess = seconds(recipe, timings)
    timings.of_kind[_kind(recipe.resolved())] = [(10_000, 5.0)]
    assert seconds(recipe, timings) == guess
    assert seconds(recipe, timings, 20_000) == pytest.approx(10.0)
    timings.of_kind[_kind(recipe.resolved())].append((500_000, 40.0))
    assert seconds(recipe, timings) == pytest.approx(80.0)


def test_networks_as_players_and_more_moves_cost_more() -> None:
    plain, pairs = MCF["MCF"], OF_PAIRS["DT-MCF, the paper's players"]
    moves = Recipe(pairs.model, pairs.method, {**pairs.settings, "steps_w": 5})
    costs = [seconds(one, Timings()) for one in (plain, pairs, MIXES["DT-(M/M/N)"], MIXES["DT-(M/N/N)"])]
    assert costs == sorted(costs)
    assert seconds(moves, Timings()) > seconds(pairs, Timings())
    assert len({_kind(one.resolved()) for one in (plain, pairs, moves)}) == 3
