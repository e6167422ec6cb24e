"""What is told of a run from its folder."""

import json

import numpy as np
import pytest

from small import small_split
from towpath.errors import ArtifactError, ConfigError
from towpath.evaluation.evaluate import evaluate
from towpath.files import list_checksums
from towpath.methods.recipe import Recipe
from towpath.reports.run_facts import LOG, POPULARITY, THIS
from towpath.serving import facts as told
from towpath.serving.run import Plan, Run, open_run

SPLIT = small_split(items=130)


@pytest.fixture
def run(tmp_path) -> Run:
    """A finished run of ease."""
    plan = Plan(SPLIT, Recipe("ease"), {"source": "by hand"})
    opened = open_run(tmp_path / "run", plan, resume=False)
    opened.train(plan)
    return Run(tmp_path / "run")


def rewrite(run: Run, **data) -> Run:
    record = json.loads((run.folder / "run.json").read_text())
    record["data"] |= data
    (run.folder / "run.json").write_text(json.dumps(record))
    list_checksums(run.folder)
    return Run(run.folder)


def test_evaluated_are_the_run_and_popularity_with_paired_differences(run) -> None:
    gaps = told.Gaps()
    models = told.rivals_of(run, run.split, None)
    evaluated = told.assess(models, run.split, 10, gaps)
    assert list(evaluated.evaluations) == [THIS, POPULARITY]
    assert evaluated.protocols() == ["full", "sampled"]
    assert gaps.found == []
    assert evaluated.of(THIS, "full").metrics() == evaluate(run.artifact.scorer, run.split).metrics()
    hit = next(d for d in evaluated.differences if (d.protocol, d.metric) == ("full", "hit"))
    means = [evaluated.of(who, "full").metrics()["hit"] for who in (THIS, POPULARITY)]
    assert hit.b == POPULARITY
    assert hit.mean == pytest.approx(means[0] - means[1])
    assert hit.low <= hit.mean <= hit.high


def test_known_places_are_those_that_hit(run) -> None:
    """With one test item for each user, every hit is one place of ten."""
    found = told.recommend_all(told.rivals_of(run, run.split, None), run.split, 10)
    assert found.known == pytest.approx(evaluate(run.artifact.scorer, run.split).metrics()["hit"] / 10)
    assert list(found.spreads) == [LOG, THIS, POPULARITY]
    assert found.spreads[LOG].places == len(run.split.train)
    assert found.shared[POPULARITY].shape == (60,)


def test_where_there_are_very_many_users_some_are_drawn(run, monkeypatch) -> None:
    monkeypatch.setattr(told, "_MOST_USERS", 25)
    models = told.rivals_of(run, run.split, None)
    one, again = (told.recommend_all(models, run.split, 10) for _ in range(2))
    assert one.users == 25
    assert np.array_equal(one.shared[POPULARITY], again.shared[POPULARITY])


def test_a_split_of_other_data_is_refused(run) -> None:
    assert run.split.fingerprint == SPLIT.fingerprint
    with pytest.raises(ArtifactError, match="belongs to another run"):
        _ = rewrite(run, fingerprint="0" * 64).split


def test_runs_on_other_splits_cannot_be_compared(run, tmp_path) -> None:
    plan = Plan(small_split(items=130, seed=1), Recipe("ease"), {"source": "by hand"})
    other = open_run(tmp_path / "other", plan, resume=False)
    with pytest.raises(ConfigError, match="another split"):
        told.refuse_other_data(run, other)
    told.refuse_other_data(run, run)


def test_a_gap_keeps_the_reason_and_lets_bugs_through() -> None:
    gaps = told.Gaps()
    with gaps.around("the moon"):
        raise ConfigError("It is too far.")
    assert [(gap.what, gap.why) for gap in gaps.found] == [("the moon", "It is too far.")]
    with pytest.raises(ZeroDivisionError), gaps.around("the sun"):
        _ = 1 / 0


def test_a_method_without_w_has_no_weights(run) -> None:
    assert told.weights_of(run, run.split) is None


def test_another_run_is_called_by_its_folder(run) -> None:
    models = told.rivals_of(run, run.split, run)
    assert list(models) == [THIS, POPULARITY, "run"]
