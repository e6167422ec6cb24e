import json

import pytest

SMALL = ("--set", "users=80", "--set", "items=60", "--set", "shown_per_user=20")


@pytest.fixture
def made(towpath, tmp_path):
    assert towpath("simulate", "create", "--out", tmp_path / "w", *SMALL, "--quiet").code == 0
    return tmp_path / "w"


def test_make_and_show_say_the_same(towpath, tmp_path):
    said = towpath("simulate", "create", "--out", tmp_path / "w", *SMALL, "--json").json
    assert said == towpath("simulate", "describe", tmp_path / "w", "--json").json
    assert said["kind"] == "latent"
    assert said["rel_at_10"]["chance"] < said["rel_at_10"]["popularity"] < said["rel_at_10"]["best"]


def test_a_world_is_fitted_like_any_data(towpath, made, tmp_path):
    fitted = towpath(
        "fit",
        made,
        "--method",
        "ipw",
        "--set",
        "propensity=given",
        "--set",
        "epochs=1",
        "--out",
        tmp_path / "r",
        "--json",
    )
    assert fitted.json["method"] == "ipw"


def test_the_loop_shows_every_arm_and_goes_on(towpath, made, tmp_path):
    arms = ("--arms", "plain,random", "--set", "epochs=1", "-k", "5", "--out", tmp_path / "loop")
    first = towpath("simulate", "run", made, *arms, "--rounds", "1", "--json").json
    both = towpath("simulate", "run", made, *arms, "--rounds", "2", "--json").json
    assert [(one["arm"], one["number"]) for one in both["rounds"]] == [
        ("plain", 1), ("plain", 2), ("random", 1), ("random", 2),
    ]  # fmt: skip
    assert both["rounds"][0] == first["rounds"][0]
    table = towpath("simulate", "run", made, *arms, "--rounds", "2").out
    assert max(map(len, table.splitlines()[1:])) <= 100
    assert "promise" in table


def test_a_rated_file_gives_a_world_of_its_size(towpath, tmp_path):
    rows = [f"u{u},i{i},{1 + (u + i) % 5}" for u in range(30) for i in range(25) if (u * 7 + i) % 3]
    (tmp_path / "rated.csv").write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    made = ("simulate", "create", tmp_path / "rated.csv", "--out", tmp_path / "w", "--set", "embedding_dim=2")
    said = towpath(*made, "--set", "clicks=cut-off", "--set", "density=0.1", "--json").json
    assert (said["users"], said["items"], said["clicks"]) == (30, 25, 75)
    assert said["settings"]["clicks"] == "cut-off"


def test_wrong_names_are_sentences(towpath, made, tmp_path):
    assert (
        "did you mean 'users'"
        in towpath("simulate", "create", "--out", tmp_path / "x", "--set", "user=3").sentence()
    )
    assert "There is no method 'plane'" in towpath("simulate", "run", made, "--arms", "plane").sentence()
    assert "There is no saved world" in towpath("simulate", "describe", tmp_path / "none").sentence()
    manifest = json.loads((made / "manifest.json").read_text())
    assert manifest["kind"] == "world"
