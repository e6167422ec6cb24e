"""The bounded part of the fuzzer; `make fuzz` runs the long one."""

from collections import Counter
from pathlib import Path

import pytest
from fuzz.__main__ import one
from fuzz.targets import TARGETS

pytest.importorskip("starlette")
pytest.importorskip("msgspec")
# A few seconds of each; the numbers are those of the long run, so that a failure is repeated by them.
COUNTS = {
    "readers": 20, "runs": 12, "settings": 150, "requests": 200, "tables": 20, "folders": 15, "logs": 20,
    "commands": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_inputs_are_refused_or_read_right(name: str, tmp_path: Path) -> None:
    target = TARGETS[name][0](tmp_path)
    for number in range(COUNTS[name]):
        outcome, detail = one(target, name, number, seed=0)
        assert outcome in ("same", "read", "refused"), f"input {number}: {detail}"
    if hasattr(target, "close"):
        target.close()


def test_the_fuzzer_notices_rows_that_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuzzer that cannot fail shows nothing: here the reader hides a row, and another reader knows it."""
    from fuzz import outcomes, readers

    target = readers.Readers(tmp_path)
    right = readers.read

    def losing(*arguments, **options):
        found = right(*arguments, **options)
        return found.__class__(**{**vars(found), "counts": type(found.counts)(found.counts.rows - 1, 0)})

    monkeypatch.setattr(readers, "read", losing)
    path = target._write("a.csv", readers.BASES["a.csv"])
    with pytest.raises(outcomes.SilentDifferenceError):
        target._read(path, readers.BASES["a.csv"])


def test_finished_pieces_are_kept(tmp_path: Path) -> None:
    from fuzz.__main__ import Found, Kept

    path = tmp_path / "kept.jsonl"
    Kept(path, 0).add("readers", range(250), Found(Counter({"refused": 249, "crash": 1}), ["one"], 3.0))
    again = Kept(path, 0).get("readers", range(250))
    assert again == Found(Counter({"refused": 249, "crash": 1}), ["one"], 3.0)
    assert Kept(path, 1).get("readers", range(250)) is None
    assert Kept(path, 0).get("readers", range(250, 500)) is None


def test_a_borrowed_engine_reads_the_same(tmp_path: Path) -> None:
    from fuzz.lent_engine import lent_engine
    from fuzz.readers import Readers

    target = Readers(tmp_path)
    own = [one(target, "readers", number, seed=1) for number in range(8)]
    with lent_engine():
        assert [one(target, "readers", number, seed=1) for number in range(8)] == own
