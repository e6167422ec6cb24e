"""Where item vectors start, and what is said when a table does not fit."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from small import small_split
from towpath.errors import ArtifactError, ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.item_table import start_vectors
from towpath.models.registry import build
from towpath.models.scorer import Sizes
from towpath.rng import Rng
from towpath.serving.artifact import artifact_of, save_artifact
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

SPLIT = small_split()
TRAIN = SPLIT.train
SIZES = Sizes(TRAIN.n_users, TRAIN.n_items)
IDS = TRAIN.item_ids.values.to_pylist()


def vectors(rows: int = 40, width: int = 4) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, width)).astype(np.float32)


def written(path: Path, ids: list, numbers: np.ndarray) -> str:
    columns = {f"x{n}": numbers[:, n] for n in range(numbers.shape[1])}
    pq.write_table(pa.table({"id": ids, **columns}), path)
    return str(path)


def test_a_random_start_has_the_asked_size_and_follows_the_seed() -> None:
    first, again, other = (start_vectors(TRAIN, Rng(s), 50, "random", 0.2).vectors for s in (0, 0, 1))
    assert float(first.std()) == pytest.approx(0.2, rel=0.05)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_table_is_found_by_id_and_scaled_as_a_whole(tmp_path: Path) -> None:
    numbers = vectors()
    backwards = written(tmp_path / "t.parquet", IDS[::-1], numbers[::-1])
    start = start_vectors(TRAIN, Rng(0), 4, backwards, 0.1)
    assert start.remarks == ()
    assert float(start.vectors.square().mean().sqrt()) == pytest.approx(0.1)
    factor = start.vectors[0, 0] / numbers[0, 0]
    torch.testing.assert_close(start.vectors, torch.from_numpy(numbers) * factor)


def test_a_column_of_lists_is_a_table_too(tmp_path: Path) -> None:
    numbers = vectors()
    pq.write_table(pa.table({"item": IDS, "vector": numbers.tolist()}), tmp_path / "l.parquet")
    flat = start_vectors(TRAIN, Rng(0), 4, written(tmp_path / "t.parquet", IDS, numbers))
    lists = start_vectors(TRAIN, Rng(0), 4, str(tmp_path / "l.parquet"))
    torch.testing.assert_close(flat.vectors, lists.vectors)


def test_items_that_the_table_lacks_start_at_random_and_are_counted(tmp_path: Path) -> None:
    source = written(tmp_path / "t.parquet", [*IDS[:30], "elsewhere"], vectors(31))
    start = start_vectors(TRAIN, Rng(0), 4, source)
    [remark] = start.remarks
    assert remark.startswith("10 of 40 items are not in the table")
    assert "'i30'" in remark
    drawn = start_vectors(TRAIN, Rng(0), 4, "random").vectors
    assert torch.equal(start.vectors[30:], drawn[30:])
    assert not torch.equal(start.vectors[:30], drawn[:30])


@pytest.mark.parametrize("model", ["mf", "gmf", "mlp", "ncf"])
def test_models_take_the_table_and_say_what_it_lacks(model: str, tmp_path: Path) -> None:
    source = written(tmp_path / "t.parquet", IDS[:39], vectors(39))
    scorer = build(model, {"embedding_dim": 4, "item_start": source, "init_std": 0.3}, SIZES)
    scorer.initialise(TRAIN, Rng(0))
    assert len(scorer.remarks) == 1
    expected = start_vectors(TRAIN, Rng(0), 4, source, 0.3).vectors[:39]
    tables = [value[:, :4] for key, value in scorer.state_dict().items() if key.endswith("items.weight")]
    assert len(tables) == (2 if model == "ncf" else 1)
    for table in tables:
        torch.testing.assert_close(table[:39], expected)


def test_a_run_of_sgns_is_a_table(tmp_path: Path) -> None:
    done = fit(SPLIT, Recipe("sgns", settings={"embedding_dim": 4}))
    save_artifact(artifact_of(done, SPLIT), tmp_path / "run" / "artifact")
    (tmp_path / "run" / "run.json").write_text("{}")
    of_run, of_artifact = (
        start_vectors(TRAIN, Rng(0), 4, str(path), 0.1).vectors
        for path in (tmp_path / "run", tmp_path / "run" / "artifact")
    )
    assert torch.equal(of_run, of_artifact)
    unscaled = done.scorer.state_dict()["vectors"]
    torch.testing.assert_close(of_run / of_run.norm(), unscaled / unscaled.norm())


def test_sgns_on_the_spot_is_what_a_run_of_it_gives(tmp_path: Path) -> None:
    done = fit(SPLIT, Recipe("sgns", settings={"embedding_dim": 4}))
    save_artifact(artifact_of(done, SPLIT), tmp_path / "a")
    stored = start_vectors(TRAIN, Rng(0), 4, str(tmp_path / "a")).vectors
    torch.testing.assert_close(start_vectors(TRAIN, Rng(0), 4, "sgns").vectors, stored)


def test_a_lower_rate_keeps_the_start(tmp_path: Path) -> None:
    source = written(tmp_path / "t.parquet", IDS, vectors())

    def moved(rate: float) -> float:
        scorer = build("ncf", {"embedding_dim": 4, "item_start": source, "item_rate": rate}, SIZES)
        scorer.initialise(TRAIN, Rng(0))
        PlainLearner(TrainingTask(scorer, TRAIN, TrainingSettings(batch_size=64), Rng(0))).epoch(1)
        after = scorer.state_dict()["gmf.tables.items.weight"]
        return float((after - start_vectors(TRAIN, Rng(0), 4, source).vectors).norm())

    assert moved(0.0) == 0
    assert 0 < moved(0.1) < 0.5 * moved(1.0)


def test_what_does_not_fit_is_said_in_a_sentence(tmp_path: Path) -> None:
    wide = written(tmp_path / "wide.parquet", IDS, vectors(width=7))
    twice = written(tmp_path / "twice.parquet", [*IDS[:39], IDS[0]], vectors())
    strange = written(tmp_path / "strange.parquet", [f"z{n}" for n in range(40)], vectors())
    broken = vectors()
    broken[3, 1] = np.nan
    holes = written(tmp_path / "holes.parquet", IDS, broken)
    pq.write_table(pa.table({"id": IDS, "genre": ["drama"] * 40}), tmp_path / "words.parquet")
    pq.write_table(pa.table({"id": IDS, "v": [[1.0]] * 39 + [[1.0, 2.0]]}), tmp_path / "ragged.parquet")
    (tmp_path / "text.csv").write_text("id,x\n1,2\n")
    for source, sentence in [
        (wide, "have 7 numbers each and the model's have 4"),
        (twice, "1 rows whose 'id' occurs before"),
        (strange, "None of the 40 items of the data is in the table"),
        (holes, r"1 of the 40 vectors .*first: item 'i3'"),
        (str(tmp_path / "words.parquet"), "its other columns are 'genre'"),
        (str(tmp_path / "ragged.parquet"), "lists of the same length"),
        (str(tmp_path / "nowhere"), "there is nothing at"),
    ]:
        with pytest.raises(ConfigError, match=sentence):
            start_vectors(TRAIN, Rng(0), 4, source)
    with pytest.raises(ArtifactError, match="cannot be read as Parquet"):
        start_vectors(TRAIN, Rng(0), 4, str(tmp_path / "text.csv"))


def test_only_sgns_artifacts_are_tables(tmp_path: Path) -> None:
    save_artifact(artifact_of(fit(SPLIT, Recipe("popularity")), SPLIT), tmp_path / "a")
    with pytest.raises(ConfigError, match="holds popularity"):
        start_vectors(TRAIN, Rng(0), 4, str(tmp_path / "a"))


def test_two_starts_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="both say where items start"):
        build("mf", {"start": "ease", "item_start": "sgns"}, SIZES)
