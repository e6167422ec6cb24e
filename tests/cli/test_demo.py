import json

import pytest

from towpath.cli import demo, main
from towpath.experiments import demo as story
from towpath.worlds.latent import LatentWorld


@pytest.fixture
def small(monkeypatch):
    """The same verb in a world small enough for a test."""
    made = story.demonstrate
    monkeypatch.setattr(story, "ROUNDS", 1)
    monkeypatch.setattr(story, "DIAL_WORLD", LatentWorld(users=60, items=40, shown_per_user=20))
    tiny = LatentWorld(users=120, items=120, shown_per_user=30)
    monkeypatch.setattr(story, "demonstrate", lambda settings, seed, **more: made(tiny, seed, **more))


@pytest.mark.usefixtures("small")
def test_demo_prints_a_table_and_writes_the_page(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "d")]) == 0
    out, err = capsys.readouterr()
    assert all(
        name in out
        for name in ("popularity", "shown", "imitation", "plain", "ipw", "transport", "promised Hit")
    )
    assert "index.html" in err
    assert (tmp_path / "d" / "index.html").stat().st_size > 5_000


@pytest.mark.usefixtures("small")
def test_json_is_one_object_and_the_same_for_the_same_seed(tmp_path, capsys):
    answers = []
    for _ in range(2):
        assert main(["demo", "--out", str(tmp_path), "--seed", "3", "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        answers.append(json.loads(out))
    assert answers[0] == answers[1]
    assert answers[0]["true_clicks"]["best possible"] > answers[0]["recommenders"][0]["true_clicks"]
    assert len(answers[0]["recommenders"]) == len(story.recipes())


def test_a_bad_place_is_said_before_anything_is_trained(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "_run", lambda *_: pytest.fail("it began to work"))
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file"), "--quiet"]) == 2
    assert "is not a directory; choose another --out" in capsys.readouterr().err
