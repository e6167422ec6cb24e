"""Verbs with models and methods that an installed package registers."""

from pathlib import Path

import pytest

SETS = ["--set", "epochs=2", "--set", "batch_size=512"]


@pytest.mark.usefixtures("installed")
def test_registered_names_are_fitted_asked_and_compared(towpath, events: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    told = towpath("fit", events, "--model", "mine", "--method", "loud", "--out", run, *SETS, "--json").json
    assert (told["model"], told["method"]) == ("mine", "loud")
    assert len(towpath("recommend", run, "--user", "u3", "-k", 2, "--json").json["items"]) == 2
    names = ["--models", "mine,rare", "--methods", "plain,loud", "--seeds", 1]
    rows = towpath("compare", events, *names, *SETS, "--json").json["rows"]
    assert {row["label"] for row in rows} == {"mine plain", "mine loud", "rare"}


@pytest.mark.usefixtures("installed")
def test_what_nobody_registers_is_refused(towpath, events: Path, tmp_path: Path) -> None:
    said = towpath("fit", events, "--model", "rrare", "--out", tmp_path / "run").sentence()
    assert "There is no model 'rrare'; did you mean 'rare'?" in said
