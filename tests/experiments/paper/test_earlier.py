"""Results of other versions of the code are used where that is asked for, and only for the same fit."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tiny_paper
from tiny_paper import SMALL, config
from towpath.experiments.paper.earlier import EarlierResults, earlier_results
from towpath.experiments.paper.run import PaperConfig, Plan, fit_all, plan
from towpath.experiments.paper.weights import StoredPairs
from towpath.experiments.result_store import ResultKey, open_store
from towpath.reports.paper_page import read_results, to_json, write_results

PLAIN = replace(SMALL, methods={name: SMALL.methods[name] for name in ("Pop", "MCF")}, pictures=())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with tiny_paper.registered(tmp_path) as registered:
        yield registered


def by(code: str, folder: Path, **settings: object) -> PaperConfig:
    """A run by this version of the code that uses what others have stored."""
    known = earlier_results(open_store(folder / "out", code))
    return replace(config(folder, **settings), code=code, earlier=known)


def states(made: Plan) -> list[str | None]:
    return [job.state for job in made.jobs]


def test_nothing_is_computed_twice_and_the_page_says_which_code_it_was(folder: Path) -> None:
    fit_all(plan(SMALL, by("old", folder)).jobs, 1)
    alone = plan(SMALL, replace(by("new", folder), earlier=EarlierResults()))
    assert states(alone) == [None] * 5  # by default other code is other numbers
    made = plan(SMALL, by("new", folder, seeds=(0, 1, 2)))
    assert states(made).count("stored") == 5
    assert {job.code for job in made.jobs if job.state} == {"old"}
    fit_all(made.jobs, 1)
    assert made.record.codes == {"old": 5, "new": 2}
    results = read_results(made.write(folder / "out"))
    assert results.benchmarks[0].seeds_of("MCF") == [0, 1, 2]
    assert to_json(results)["codes"] == {"old": 5, "new": 2}
    write_results(results, folder / "out" / "tiny")
    assert "Code old (5 fits), new (2 fits)." in (folder / "out" / "tiny" / "results.md").read_text()
    own = plan(SMALL, by("new", folder, seeds=(2,)))
    assert {job.code for job in own.jobs if job.spec.label != "Pop"} == {"new"}  # its own come first


def test_another_setting_seed_or_evaluation_is_another_fit(folder: Path) -> None:
    fit_all(plan(PLAIN, by("old", folder)).jobs, 1)
    assert states(plan(PLAIN, by("new", folder))) == ["stored"] * 3
    changed = plan(PLAIN, by("new", folder, settings={"l2": 0.5}))
    assert [job.spec.label for job in changed.jobs if job.state] == ["Pop"]
    assert states(plan(replace(PLAIN, k=5), by("new", folder))) == [None] * 3


def test_a_setting_that_came_later_keeps_earlier_results_while_nobody_sets_it(folder: Path) -> None:
    made = plan(PLAIN, config(folder))
    job = next(job for job in made.jobs if job.spec.label == "MCF")
    key = json.loads(job.key.text)
    before = json.loads(job.key.text) | {"code": "old"}
    del before["recipe"]["settings"]["item_rate"]
    earlier = EarlierResults({_group(key): [before]}, {"old": 1})
    found = earlier.key_for(job.key, job.spec.recipe)
    assert found is not None
    assert json.loads(found.text) == before
    asked = replace(job.spec.recipe, settings={**job.spec.recipe.settings, "item_rate": 1.0})
    assert earlier.key_for(job.key, asked) is None
    before["recipe"]["settings"]["l2"] = 9.0
    assert earlier.key_for(job.key, job.spec.recipe) is None


def test_of_several_versions_the_one_with_most_results_is_used(folder: Path) -> None:
    job = plan(PLAIN, config(folder)).jobs[-1]
    keys = [json.loads(job.key.text) | {"code": code} for code in ("few", "many")]
    earlier = EarlierResults({_group(keys[0]): keys}, {"few": 3, "many": 30})
    found = earlier.key_for(job.key, job.spec.recipe)
    assert found == ResultKey(json.dumps(keys[1], sort_keys=True))


def test_a_figure_of_weights_needs_them_stored(folder: Path) -> None:
    made = plan(SMALL, by("old", folder))
    fit_all(made.jobs, 1)
    job = next(job for job in made.jobs if job.spec.label == "DT-MCF")
    job.store.path(StoredPairs, job.name).unlink()
    again = plan(SMALL, by("new", folder))
    (missing,) = [one for one in again.jobs if one.state is None]
    assert (missing.spec, missing.code) == (job.spec, "new")  # not under the name of the other code
    assert job.state is None


def test_weights_are_stored_only_where_a_figure_shows_them(folder: Path) -> None:
    tiny_paper.EXPERIMENTS.pop("tiny")
    table = replace(SMALL, pictures=(), claims=())
    made = plan(table, config(folder))
    fit_all(made.jobs, 1)
    assert not list((folder / "out").rglob("*.pairs.parquet"))
    assert states(made) == ["stored"] * 5


def _group(key: dict[str, object]) -> str:
    from towpath.experiments.paper.earlier import _alike

    return _alike(key)
