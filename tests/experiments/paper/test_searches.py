"""Every column is tuned by as many candidates, and what was found is what the tables use."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_paper
from tiny_paper import TINY, config
from towpath.experiments.paper import searches
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.run import plan
from towpath.experiments.paper.searches import CANDIDATES, TUNED, run_searches, searches_of
from towpath.experiments.search import Grid
from towpath.methods.recipe import Recipe

ALL = searches_of(EXPERIMENTS.values(), Path("out"), None)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with tiny_paper.registered(tmp_path) as registered:
        yield registered


@pytest.mark.parametrize("search", ALL, ids=lambda one: f"{one.location.name}-{one.column}")
def test_every_search_has_as_many_candidates(search: searches.PaperSearch) -> None:
    searched = search.tuning.searched
    assert 1 + sum(len(values) - 1 for values in searched.values()) == CANDIDATES
    for name, values in searched.items():
        for value in values:
            replace(search.recipe, settings={**search.recipe.settings, name: value}).resolve()


def test_base_models_and_baselines_are_searched_on_every_data_set() -> None:
    columns = {(one.location.name, one.column) for one in ALL}
    named = ("MCF", "NCF", "Attn", "IPW-MF", "ExpoMF", "AC-MF", "DT-MCF", "MCF, same hard negatives")
    for data in ("ml-1m", "lastfm-2k", "goodreads"):
        assert {(data, column) for column in named} <= columns
    assert {("ml-1m", "DR-MF"), ("ml-1m", "CE-MF"), ("ml-1m", "D&W")} <= columns
    assert {data for data, _ in columns if "simulation" in data} == set()
    assert ("ml-1m-by-chance", "IPW-MF, true propensities") in columns
    assert len({one.folder for one in ALL}) == len(ALL)


def test_what_was_found_is_used_by_the_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grids: dict[str, Grid] = {"plain": {"l2": (0.5,)}, "transport": {"penalty": (0.0,)}}
    monkeypatch.setattr(searches, "_BY_METHOD", grids)
    players = Recipe("mf", "transport", {**tiny_paper.FAST, "players": "models"})
    wide = replace(TINY, methods={**TINY.methods, "DT-MCF, the paper's players": players})
    found = searches_of([wide], folder / "out", None)
    assert [(one.location.name, one.column) for one in found] == [("tiny", "MCF"), ("tiny", "DT-MCF")]
    assert not any(one.finished for one in found)
    assert list(run_searches(found, 1)) == found
    assert all(one.finished for one in found)
    made = plan(wide, config(folder, tuned=folder / "out" / TUNED)).record
    (l2, _), (penalty, _) = (one.chosen() for one in found)
    for benchmark in ("tiny", "tiny-simulation"):  # which is made from the data that were searched
        settings = {column: recipe["settings"] for column, recipe in made.settings[benchmark].items()}
        assert settings["MCF"]["l2"] == l2["l2"]
        assert settings["DT-MCF"]["penalty"] == penalty["penalty"]
        assert settings["DT-MCF, the paper's players"]["l2"] == l2["l2"]
    assert made.origins["tiny"]["MCF"] == "tuned on this split"
    assert made.origins["tiny"]["DT-MCF, the paper's players"] == "tuned on this split, as its base model"
    assert made.origins["tiny-simulation"]["MCF"] == "tuned on another split"


def test_what_a_sweep_varies_is_not_tuned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "_BY_METHOD", {"transport": {"penalty": (0.0,), "l2": (0.5,)}})
    methods = {"DT-MCF": tiny_paper.SWEEP.recipe}
    swept = replace(tiny_paper.SWEPT, methods=methods, claims=(), sweeps=(tiny_paper.SWEEP,))
    (search,) = searches_of([swept], folder / "out", None)
    search.run()
    settings = plan(swept, config(folder, tuned=folder / "out" / TUNED)).record.settings["tiny"]
    sweep = tiny_paper.SWEEP
    assert [settings[sweep.label(value)]["settings"]["penalty"] for value in sweep.values] == [0.0, 1.0]
    chosen, _ = search.chosen()
    assert {settings[column]["settings"]["l2"] for column in settings} == {chosen["l2"]}
