"""towpath ope: the contract of issue 18, and every kind of bad input."""

import json
import tracemalloc
from pathlib import Path

import duckdb
import numpy as np
import pytest

from bandit_logs import small_world
from event_files import write_events
from towpath.rng import Rng

NAMED = [
    "--item-col", "item_id", "--position-col", "position", "--label-col", "click",
    "--propensity-col", "propensity_score",
]  # fmt: skip
HEADER = "item_id,position,click,propensity_score"


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, another one and an item file, of a world whose truth is known."""
    folder = tmp_path_factory.mktemp("bandit")
    world = small_world(0)
    for name, seed in (("log", 0), ("other", 1)):
        log = world.log(2000, Rng(seed).numpy("log"))
        assert log.propensities is not None
        columns = zip(log.actions, log.positions + 1, log.rewards, log.propensities, strict=True)
        written(folder / f"{name}.csv", HEADER, *(f"i{a},{k},{r:g},{p:.12g}" for a, k, r, p in columns))
    written(folder / "items.csv", "name,item_id", *(f"n{a},i{a}" for a in range(5)))
    return folder


def asked(towpath, folder: Path, *options: object):
    return towpath("ope", folder / "log.csv", *NAMED, "--items", folder / "items.csv", *options)


def test_the_contract(towpath, folder: Path) -> None:
    found = asked(towpath, folder, "--target", "uniform", "--json").json
    assert found["rows"] == 2000
    assert 0 < found["ess_share"] <= 1
    assert set(found["estimates"]) == {
        "ips", "clipped", "snips", "dm", "dr", "sndr", "switch-dr", "dros", "sub-gaussian",
    }  # fmt: skip
    truth = small_world(0).value(np.full((2, 5), 0.2))
    low, high = found["estimates"]["ips"]["intervals"]["betting"]
    assert low < truth < high
    assert found["unsupported_mass"] == pytest.approx(0, abs=0.1)


def test_values_from_the_file_itself(towpath, folder: Path) -> None:
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()[1:]]
    r, p = (np.array([float(row[i]) for row in rows]) for i in (2, 3))
    found = asked(towpath, folder, "--target", "uniform", "--json").json
    assert found["estimates"]["ips"]["value"] == pytest.approx(np.mean(0.2 / p * r), rel=1e-9)
    other = [line.split(",") for line in (folder / "other.csv").read_text().splitlines()[1:]]
    items = [f"i{a}" for a in range(5)]
    count = {(a, k): sum(row[:2] == [a, k] for row in other) for a in items for k in "12"}
    total = {k: sum(n for (_, at), n in count.items() if at == k) for k in "12"}
    w = np.array([count[row[0], row[1]] / total[row[1]] for row in rows]) / p
    found = asked(towpath, folder, "--target", f"shares:{folder / 'other.csv'}", "--json").json
    assert found["estimates"]["snips"]["value"] == pytest.approx((w * r).sum() / w.sum(), rel=1e-9)
    assert found["ess_share"] == pytest.approx(w.sum() ** 2 / (w @ w) / 2000, rel=1e-9)
    assert found["unsupported_mass"] == pytest.approx(1 - w.mean(), rel=1e-9)


def test_intervals_and_tuning_can_be_chosen(towpath, folder: Path) -> None:
    options = ["--target", "uniform", "--interval", "gamma,normal", "--interval", "betting"]
    found = asked(towpath, folder, *options, "--tune", "slope", "--cross-fit", 3, "--json").json
    assert set(found["estimates"]["ips"]["intervals"]) == {"gamma", "normal", "betting"}
    assert found["scales"]["tau"] != 10
    assert "did you mean" in asked(towpath, folder, "--target", "uniform", "--interval", "gama").sentence()
    assert "did you mean" in asked(towpath, folder, "--target", "uniform", "--tune", "slop").sentence()


def test_people_get_a_table_and_machines_only_json(towpath, folder: Path) -> None:
    answer = asked(towpath, folder, "--target", "uniform")
    assert answer.code == 0
    assert all(len(line) <= 100 for line in answer.out.splitlines()[2:])
    assert "switch-dr" in answer.out
    assert json.loads(asked(towpath, folder, "--target", "uniform", "--json").out)


def test_parquet_and_guessed_columns_give_the_same(towpath, folder: Path, tmp_path: Path) -> None:
    duckdb.sql(f"COPY (FROM '{folder / 'log.csv'}') TO '{tmp_path / 'log.parquet'}'")
    plain = asked(towpath, folder, "--target", "uniform", "--json").json
    again = towpath("ope", tmp_path / "log.parquet", "--target", "uniform", "--json").json
    assert again["estimates"]["ips"] == plain["estimates"]["ips"]
    assert any("guessed" in note for note in again["notes"])


def test_a_saved_run_is_a_target(towpath, tmp_path: Path) -> None:
    events = write_events(tmp_path / "events.csv", users=40, items=10, per_user=6)
    assert towpath("fit", events, "--model", "popularity", "--out", tmp_path / "run", "-q").code == 0
    rng = Rng(0).numpy("log")
    rows = [f"u{rng.integers(40)},i{rng.integers(10)},{int(rng.random() < 0.3)},0.1" for _ in range(800)]
    log = written(tmp_path / "log.csv", "user,item,click,propensity", *rows)
    for options in ([], ["--softmax", "0.5"], ["--epsilon", "0.2"], ["--top", "3"]):
        found = towpath("ope", log, "--target", f"run:{tmp_path / 'run'}", *options, "--json").json
        assert abs(found["unsupported_mass"]) < 0.5
        assert 0 <= found["estimates"]["snips"]["value"] <= 1
    short = written(tmp_path / "items.csv", "item", *(f"i{n}" for n in range(9)))
    more = [row for row in rows if row.split(",")[1] != "i9"]
    log = written(tmp_path / "log9.csv", "user,item,click,propensity", *more)
    answer = towpath("ope", log, "--target", f"run:{tmp_path / 'run'}", "--items", short)
    assert "the run knows 1 others (first: 'i9')" in answer.sentence()


def test_a_run_evaluated_on_its_own_training_log_is_warned_about(towpath, tmp_path: Path) -> None:
    """What users have clicked the run does not show again, so it would seem to earn nothing."""
    events = write_events(tmp_path / "events.csv", users=40, items=10, per_user=6)
    assert towpath("fit", events, "--model", "popularity", "--out", tmp_path / "run", "-q").code == 0
    rows = [line.split(",")[:2] for line in events.read_text().splitlines()[1:]]
    log = written(tmp_path / "log.csv", "user,item,click,propensity", *(f"{u},{i},1,0.1" for u, i in rows))
    target = f"run:{tmp_path / 'run'}"
    found = towpath("ope", log, "--target", target, "--epsilon", "0.1", "--json").json
    assert found["warnings"][0].startswith("100% of the clicks of this log are in the run's own history")


def test_slates_are_estimated_by_request(towpath, folder: Path, tmp_path: Path) -> None:
    log = (folder / "log.csv").read_text().splitlines()
    by_position = {k: [line for line in log[1:] if line.split(",")[1] == k] for k in "12"}
    pairs = list(zip(*by_position.values(), strict=False))
    rows = [f"{line},{n}" for n, pair in enumerate(pairs) for line in pair]
    slates = written(tmp_path / "slates.csv", f"{HEADER},request", *rows)
    asked_for = ["ope", slates, "--target", "uniform", *NAMED, "--items", folder / "items.csv"]
    values = {}
    for reading in ("independent", "cascade"):
        told = towpath(*asked_for, "--slate", reading, "--request-col", "request", "--json").json
        values[reading] = told["slates"]["ips"]["value"]
        assert told["slates"]["requests"] == len(pairs)
        low, high = told["slates"]["ips"]["intervals"]["betting"]
        assert 0 <= low <= values[reading] <= high <= 2
        assert set(told["assumptions"]) >= {"gamma", "betting", "normal"}
    # Every slate is whole, so by the independent reading a request earns what its two rows earn.
    assert values["independent"] == pytest.approx(2 * told["estimates"]["ips"]["value"])
    assert values["cascade"] != values["independent"]
    people = towpath(*asked_for, "--slate", "cascade", "--request-col", "request")
    assert "Clicks per request" in people.out
    assert "--request-col" in towpath(*asked_for, "--slate", "cascade").sentence()
    assert "no column 'nope'" in towpath(*asked_for, "--slate", "cascade", "--request-col", "nope").sentence()


def test_estimated_propensities_are_said(towpath, folder: Path) -> None:
    found = asked(towpath, folder, "--target", "uniform", "--estimate-propensities", "--json").json
    assert any("propensities were estimated" in note for note in found["notes"])


GOOD = ["i0,1,0,0.5", "i1,1,1,0.5", "i0,2,1,0.5", "i1,2,0,0.5"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("i0,1,0,0", "'0' in line 6"),
        ("i0,1,0,", "1 of 5 does not (first: line 6"),
        ("i0,1,0,1.5", "'1.5' in line 6"),
        ("i0,1,0,often", "'often' in line 6"),
        ("i0,1,0,1e-299", "'1e-299' in line 6"),
        ("i0,1,2,0.5", "within 0 and 1; 1 of 5 does not (first: '2' in line 6"),
        ("i0,1,-1,0.5", "'-1' in line 6"),
        ("i0,1,,0.5", "A reward"),
        ("i0,1,nan,0.5", "A reward"),
        ("i9,1,0,0.5", "show 1 that are not (first: 'i9')"),
        (",1,0,0.5", "Every row needs the item"),
        ("i0,,0,0.5", "Every row needs the position"),
    ],
)
def test_bad_rows(towpath, tmp_path: Path, row: str, expected: str) -> None:
    log = written(tmp_path / "log.csv", HEADER, *GOOD, row)
    items = written(tmp_path / "items.csv", "item_id", "i0", "i1")
    answer = towpath("ope", log, "--target", "uniform", *NAMED, "--items", items, "--json")
    assert expected in answer.sentence()


def test_one_long_id_does_not_take_its_length_for_every_row(tmp_path: Path) -> None:
    from towpath.bandit.log import read_bandit_log

    rows = [f"i{n % 5},1,0,0.5" for n in range(1_000)]
    log = written(tmp_path / "log.csv", HEADER, *rows, f"{'y' * 50_000},1,0,0.5")
    tracemalloc.start()
    assert len(read_bandit_log(log)) == 1_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 10**7  # an array of texts would have 4 * 50,000 bytes in each row: 200 MB


def test_bad_targets(towpath, tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", HEADER, *GOOD)
    items = written(tmp_path / "items.csv", "item_id", "i0", "i1", "i2")
    run = [log, *NAMED, "--items", items, "--json", "--target"]
    assert "uniform, shares:FILE or run:RUN" in towpath("ope", *run, "best").sentence()
    outside = written(tmp_path / "a.csv", HEADER, "i7,1,0,0.5", "i0,2,0,.5")
    assert "(first: 'i7')" in towpath("ope", *run, f"shares:{outside}").sentence()
    one_place = written(tmp_path / "b.csv", "item_id,position", "i0,1")  # shares need no more columns
    assert "no row at position '2'" in towpath("ope", *run, f"shares:{one_place}").sentence()
    apart = written(tmp_path / "c.csv", HEADER, "i2,1,0,0.5", "i2,2,0,0.5")
    assert "there is no overlap" in towpath("ope", *run, f"shares:{apart}").sentence()
    assert "there is no such folder" in towpath("ope", *run, f"run:{tmp_path / 'no'}").sentence()


def test_bad_files(towpath, tmp_path: Path) -> None:
    log = written(tmp_path / "log.csv", HEADER, *GOOD)
    double = written(tmp_path / "items.csv", "item_id", "i0", "i0")
    sentence = towpath("ope", log, "--target", "uniform", *NAMED, "--items", double).sentence()
    assert "1 of 2 rows repeat an id" in sentence
    bare = written(tmp_path / "bare.csv", "item_id,click", "i0,1", "i1,0")
    assert "--estimate-propensities" in towpath("ope", bare, "--target", "uniform").sentence()
    assert "no column 'nope'" in towpath("ope", log, "--target", "uniform", "--item-col", "nope").sentence()
    empty = written(tmp_path / "empty.csv", HEADER)
    assert "has none" in towpath("ope", empty, "--target", "uniform").sentence()


DATA = Path(__file__).parents[3] / "shared" / "data" / "obd"


@pytest.mark.skipif(not DATA.exists(), reason="obd does not lie in ../shared/data next to the project")
def test_open_bandit_women_rests_on_one_row_and_says_so(towpath) -> None:
    """Values measured before this package by other code (offpolicy.md)."""
    log, items = DATA / "bts/women/women.csv", DATA / "bts/women/item_context.csv"
    found = towpath("ope", log, "--target", "uniform", *NAMED, "--items", items, "--json").json
    assert found["rows"] == 10_000
    assert found["estimates"]["snips"]["value"] == pytest.approx(0.0024, abs=5e-5)
    assert "carries 69% of the weight" in found["warnings"][0]
    assert found["unsupported_mass"] == pytest.approx(1 - 3.134, abs=1e-3)
