"""The scripts in examples/ run as they stand and print what a reader would look for."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# A line that each script prints; numbers may differ a little between machines.
SAYS = {
    "own_data.py": r"Hit@10 over the whole catalogue: ease 0\.\d+, popularity 0\.\d+",
    "compare_in_simulation.py": r"transport +0\.\d+ +\d\.\d+",
    "save_and_load.py": r"somebody-new: .+ \(from most popular items\)",
    "serve_and_learn.py": r"(?s)Against control: .+click.+the new arm now serves [0-9a-f]{12}",
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert re.search(SAYS[name], capsys.readouterr().out)


def test_an_own_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},{item},{item}" for user in range(30) for item in range(user % 5, user % 5 + 12)]
    Path("shop.csv").write_text("customer_id,item,time\n" + "\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["own_data.py", "shop.csv"])
    runpy.run_path(str(EXAMPLES / "own_data.py"), run_name="__main__")
    assert "300 training events, 30 test events" in capsys.readouterr().out
