import pyarrow.parquet as pq
import pytest

from small_logs import DAY, assigned, click, order, request
from towpath.serving.exposure_log.store import LogSettings, open_store


@pytest.fixture
def log(tmp_path):
    """Two workers' files of an experiment of 200 users over four days."""
    stores = [open_store(LogSettings(str(tmp_path / "log")), worker) for worker in (0, 1)]
    for store in stores:
        store.write([assigned(0, "control", "new")])
    for n in range(400):
        arm = ("control", "new")[n % 2]
        rows = [request(n, f"u{n % 200}", arm, n * DAY // 100), click(f"c{n}", n, "a", n * DAY // 100 + 1)]
        rows += (
            [order(f"o{n}", n, n * DAY // 100 + 2, value=10 + n % 7)] if n % 3 == 0 or arm == "new" else []
        )
        stores[n % 2].write(rows[:1])
        stores[(n + 1) % 2].write(rows[1:])  # outcomes may come to the other worker
    for store in stores:
        store.close()
    return tmp_path / "log"


def test_export_writes_the_training_data(towpath, log, tmp_path):
    told = towpath("log", "export", log, "--out", tmp_path / "out.parquet", "--json").json
    assert told["rows"] == 1_200
    assert told["clicked"] == 400
    assert told["outcomes_without_exposure"] == 0
    assert pq.read_table(tmp_path / "out.parquet")["label"].to_numpy().sum() == 400


def test_experiment_reads_the_log(towpath, log, tmp_path):
    told = towpath("experiment", log, "--json", "--out", tmp_path / "page.html").json
    assert told["arms"] == ["control", "new"]
    assert told["users"] == {"control": 100, "new": 100}
    assert told["srm"]["mismatch"] is False
    assert told["verdict"].startswith("new earns ")
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    one = towpath("experiment", log, "--metric", "click_rate", "--json").json
    assert [m["metric"] for m in one["metrics"]] == ["click_rate"]
    people = towpath("experiment", log)
    assert "Against control: new earns" in people.out


def test_forget_deletes_a_user(towpath, log, tmp_path):
    assert towpath("log", "forget", log, "--user", "u1", "--json").json == {"user": "u1", "requests": 2}
    told = towpath("log", "export", log, "--out", tmp_path / "out.parquet", "--json").json
    assert told["rows"] == 1_194
    assert "u1" not in pq.read_table(tmp_path / "out.parquet")["user"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--since", "yesterday"], "--since takes a date"),
        (["--metric", "gmv"], "did you mean 'gmv_per_visitor'"),
        (["--alpha", "2"], "--alpha must lie between 0 and 1"),
        (["--control", "old"], "no arm 'old'"),
        (["--visit-minutes", "1e300"], "--visit-minutes"),
    ],
)
def test_what_cannot_be_is_said(towpath, log, arguments, said):
    assert said in towpath("experiment", log, *arguments).sentence()


def test_export_does_not_take_a_tilde_for_a_home(towpath, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert towpath("log", "export", log, "--out", "~nobody/x.parquet", "--json").json["rows"] == 1_200
    assert (tmp_path / "~nobody" / "x.parquet").is_file()


def test_a_folder_without_a_log_is_said(towpath, tmp_path):
    assert "no exposure log" in towpath("experiment", tmp_path).sentence()
    assert "no exposure log" in towpath("log", "export", tmp_path, "--out", tmp_path / "x.parquet").sentence()
