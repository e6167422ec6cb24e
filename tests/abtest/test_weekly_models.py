from pathlib import Path

import numpy as np
import pytest

from served import SPLIT, save_model
from towpath.abtest.weekly_models import (
    Candidates,
    SharedTask,
    WeeklyModels,
    WeeklyValues,
    expected_clicks,
    served_on,
)
from towpath.serving.artifact import load_artifact
from towpath.stats.estimate import Estimate


def test_expected_clicks_by_hand():
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], dtype=np.float32)
    relevance = np.array([[0.1, 0.2, 0.4], [0.5, 0.3, 0.7]], dtype=np.float32)
    everything = np.ones((2, 3), dtype=bool)
    assert expected_clicks(scores, relevance, everything, 1) == pytest.approx([0.1, 0.7])
    assert expected_clicks(scores, relevance, everything, 2) == pytest.approx([0.3, 1.0])
    left = np.array([[False, True, True], [True, False, False]])
    assert expected_clicks(scores, relevance, left, 1) == pytest.approx([0.2, 0.5])
    assert expected_clicks(scores, relevance, left, 3) == pytest.approx([0.6, 0.5])


def test_the_model_of_a_day_is_the_latest_one_before_it():
    nights = {0: Path("a"), 3: Path("b")}
    assert [served_on(day, nights).name for day in (0, 2, 3, 9)] == ["a", "a", "b", "b"]


def test_better_means_on_both_sets_of_candidates():
    up, same, down = (
        WeeklyValues([1.0, 1.0 + gain], Estimate(gain, gain - 1, gain + 1, 9, "by hand"))
        for gain in (0.5, 0.0, -0.5)
    )
    assert WeeklyModels(up, up).better
    assert not any(WeeklyModels(*two).better for two in ((up, down), (down, up), (up, same), (same, same)))
    assert WeeklyModels(up, down).to_json() == {
        "start": [1.0, 1.5], "end": [1.0, 0.5], "better": False,
        "start_gain": [0.5, -0.5, 1.5], "end_gain": [-0.5, -1.5, 0.5],
    }  # fmt: skip


def test_weeks_are_means_over_days_of_models_on_the_same_candidates(tmp_path):
    folders = [save_model(tmp_path / str(seed), seed=seed) for seed in range(2)]
    shape = SPLIT.train.n_users, SPLIT.train.n_items
    relevance = np.random.default_rng(0).random(shape).astype(np.float32)
    start, end = np.ones((2, *shape), dtype=bool)
    end[:, 0] = False
    users = np.array([1, 4, 7])
    found = SharedTask(relevance, Candidates(start, end), 5).weekly(
        [folders[0]] * 5 + [folders[1]] * 4, users
    )
    values = []
    for folder in folders:
        scorer = load_artifact(folder).scorer
        tables = [table.weight.detach().numpy() for table in (scorer.users, scorer.items)]
        scores = tables[0][users][:, :-1] @ tables[1][:, :-1].T + tables[1][:, -1]
        values.append(
            [expected_clicks(scores, relevance[users], allowed[users], 5) for allowed in (start, end)]
        )
    first = np.average(values, axis=0, weights=[5, 2])  # (tasks, users)
    for task, weekly in enumerate((found.start, found.end)):
        assert weekly.weeks == pytest.approx([first[task].mean(), values[1][task].mean()], rel=1e-5)
        gains = values[1][task] - first[task]
        assert weekly.gain.mean == pytest.approx(gains.mean(), abs=1e-6)
        assert weekly.gain.width == pytest.approx(2 * 1.96 * gains.std(ddof=1) / np.sqrt(3), rel=1e-3)
