"""The transport game on the command line: its players by name, its epochs, its comparison."""

import json
import re
from pathlib import Path

import pytest

from event_files import write_events
from towpath.serving.artifact import load_artifact

QUICK = ["--set", "epochs=3", "--set", "embedding_dim=4", "--set", "batch_size=512"]


def test_players_by_name(towpath, events: Path, tmp_path: Path) -> None:
    players = ["--f", "mf", "--w", "mf", "--g", "mf"]
    out = tmp_path / "run"
    told = towpath(
        "fit", events, "--method", "transport", *players, *QUICK, "--seed", 1, "--out", out, "--json"
    ).json
    assert (told["model"], told["method"]) == ("mf", "transport")
    assert [told["settings"][name] for name in ("players", "w", "g")] == ["models", "mf", "mf"]
    players = load_artifact(out / "artifact").auxiliary_state
    assert {name.split(".")[0] for name in players} == {"w", "g"}
    assert "stopped_because" in told
    assert towpath("recommend", out, "--user", "u1", "--json").json["fallback"] is False


def test_one_player_is_enough_and_the_other_is_like_f(towpath, events: Path, tmp_path: Path) -> None:
    told = towpath(
        "fit", events, "--method", "transport", "--w", "mf", *QUICK, "--out", tmp_path / "run", "--json"
    ).json
    assert [told["settings"][name] for name in ("players", "w", "g")] == ["models", "mf", ""]
    assert told["settings"]["solver"] == "game"  # where the data have impressions, w would not play otherwise


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--w", "mf"], "the method 'plain' has no player w; add --method transport"),
        (["--g", "mf", "--method", "plain"], "add --method transport, or leave it out."),
        (["--method", "transport", "--w", "ease"], "--w needs a model with parameters to train, such as mf"),
        (["--method", "transport", "--g", "mg"], "There is no model 'mg'; did you mean 'mf'?"),
        (
            ["--method", "transport", "--g", "mf", "--set", "players=margin"],
            "g=mf means players=models, and players=margin says otherwise",
        ),
        (
            ["--method", "transport", "--set", "w=mf", "--set", "solver=library"],
            "w=mf means solver=game, and solver=library says otherwise",
        ),
        (
            ["--method", "transport", "--set", "players=models", "--set", "solver=library"],
            "only the game has players, so players=models needs solver=game",
        ),
        (["--method", "transport", "--w", "mf", "--set", "w=ncf"], "--w mf and --set w=ncf disagree"),
        (["--method", "transport", "--f", "ease"], "The method 'transport' needs a model with parameters"),
        (["--method", "transport", "--set", "floor=9", "--set", "ceiling=5"], "floor (9.0) cannot exceed"),
    ],
)
def test_what_cannot_be_played_is_said_before_anything_is_read(
    asked: list[str], sentence: str, towpath, tmp_path: Path
) -> None:
    assert sentence in towpath("fit", "no-such-file.csv", *asked, "--out", tmp_path / "run").sentence()
    assert list(tmp_path.iterdir()) == []


def test_the_game_is_shown_as_a_table_no_wider_than_a_terminal(towpath, events: Path, tmp_path: Path) -> None:
    answer = towpath("fit", events, "--method", "transport", *QUICK, "--out", tmp_path / "run")
    assert answer.code == 0
    lines = answer.err.splitlines()
    (heading,) = [n for n, line in enumerate(lines) if line.startswith("epoch   loss")]
    # Three epochs of plain training come first; the headings come with the first round of the game.
    assert lines[heading - 2].startswith("epoch   3  loss")
    assert "game" not in lines[heading - 2]
    assert [line.split()[0] for line in lines[heading + 1 :]] == ["4", "5", "6"]
    assert all(len(line) <= 88 for line in lines[heading:])
    last = json.loads((tmp_path / "run" / "history.jsonl").read_text().splitlines()[-1])
    told = lines[-1].split()
    for name, place in (("loss", 1), ("risk", 2), ("weighted_risk", 3), ("gap", 4), ("ess", 5)):
        assert float(told[place]) == pytest.approx(last[name], abs=0.006)
    assert told[6] == f"{last['w_shown']:.2f}/{last['w_hidden']:.2f}"
    assert [float(cell) for cell in told[8:10]] == [
        round(last[name], 4) for name in ("validation_hit", "validation_ndcg")
    ]
    assert "all 6 epochs are done; " in answer.out


def test_a_collapsed_game_stops_with_its_sentence(towpath, events: Path, tmp_path: Path) -> None:
    collapse = ["--set", "min_ess=1", "--set", "learning_rate_w=1", "--set", "epochs=20"]
    asked = ["fit", events, "--method", "transport", *collapse, "--out", tmp_path / "run"]
    sentence = towpath(*asked).sentence()
    collapsed = re.search(r"w collapsed in epoch (\d+):", sentence)
    assert collapsed is not None
    assert int(collapsed[1]) > 6  # after a patience of plain epochs, which count
    assert "raise floor" in sentence
    assert not (tmp_path / "run" / "artifact").exists()


def test_methods_are_named_in_the_help(towpath) -> None:
    from towpath.methods.registry import METHODS

    helped = " ".join(towpath("fit", "--help").out.split())
    assert all(name in helped for name in METHODS)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough items for 100 negatives."""
    return write_events(tmp_path_factory.mktemp("wide") / "events.csv", users=50, items=150)


def compared(wide: Path, *more: object) -> list[object]:
    asked = ["compare", wide, "--model", "mf", "--methods", "plain,transport", *QUICK]
    return [*asked, "--seeds", "100,101,102", "--protocol", "full,sampled", "--json", *more]


def test_compare_methods(towpath, wide: Path) -> None:
    told = towpath(*compared(wide)).json
    rows = {(row["model"], row["method"], row["protocol"], row["metric"]): row for row in told["rows"]}
    assert {key[:3] for key in rows} == {
        ("mf", method, protocol) for method in ("plain", "transport") for protocol in ("full", "sampled")
    }
    assert all(set(row) >= {"mean", "sd"} for row in rows.values())
    for gap in told["differences"]:
        assert set(gap) >= {"a", "b", "protocol", "metric", "mean", "low", "high", "how", "n"}
        assert (gap["a"], gap["b"]) == ("transport", "plain")
        assert gap["low"] <= gap["mean"] <= gap["high"]
        a, b = (rows["mf", gap[side], gap["protocol"], gap["metric"]]["mean"] for side in "ab")
        assert gap["mean"] == pytest.approx(a - b)
    assert {(gap["protocol"], gap["metric"]) for gap in told["differences"]} >= {
        (protocol, metric) for protocol in ("full", "sampled") for metric in ("hit", "ndcg", "rel")
    }


def test_compare_does_not_depend_on_the_number_of_jobs(towpath, wide: Path) -> None:
    assert towpath(*compared(wide, "--jobs", 2)).json == towpath(*compared(wide)).json


def test_a_setting_for_one_method_leaves_the_other_alone(towpath, wide: Path) -> None:
    one = towpath(*compared(wide)).json["rows"]
    # With fixed weights, on the same pairs, transport is plain training.
    fixed = [f"--set=transport.{pair}" for pair in ("floor=1", "ceiling=1", "penalty=2", "hard_negatives=0")]
    two = towpath(*compared(wide, *fixed)).json["rows"]
    means = [
        {(r["method"], r["protocol"], r["metric"]): r["mean"] for r in rows if r["metric"] == "hit"}
        for rows in (one, two)
    ]
    for protocol in ("full", "sampled"):
        assert means[0]["plain", protocol, "hit"] == means[1]["plain", protocol, "hit"]
        assert means[1]["transport", protocol, "hit"] == means[1]["plain", protocol, "hit"]
    sentence = towpath(*compared(wide, "--set", "plain.penalty=2")).sentence()
    assert "There is no setting of mf with plain 'penalty'" in sentence


def test_a_closed_form_model_cannot_be_compared_by_transport(towpath) -> None:
    asked = ["compare", "no-such-file.csv", "--models", "ease", "--methods", "plain,transport"]
    assert "The method 'transport' needs a model with parameters to train" in towpath(*asked).sentence()
