"""Several processes that train together do what one process does."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from event_files import write_events
from small import small_split
from towpath.models.registry import model_type
from towpath.models.scorer import Context, sizes_of
from towpath.rng import Rng
from towpath.training.batches import Batch, make_batches
from towpath.training.distributed import Workers, leads, workers
from towpath.training.plain import PlainLearner
from towpath.training.settings import TrainingSettings
from towpath.training.task import TrainingTask

RUN = "import sys; from towpath.cli import main; sys.exit(main())"
MODELS = {"mf": {}, "wide_deep": {}, "attention": {"dropout": 0.0, "history_length": 5}}


@pytest.mark.parametrize("weights", ["none", "value"])
@pytest.mark.parametrize("pairs", ["sampled", "catalogue"])
@pytest.mark.parametrize("name", MODELS)
def test_the_losses_of_slices_add_up_to_that_of_the_batch(name: str, pairs: str, weights: str) -> None:
    split, rng = small_split(users=31, items=40), Rng(0)
    train = replace(split.train, values=1 + np.arange(len(split.train), dtype=np.float32) % 5)
    kind = model_type(name)
    scorer = kind(kind.settings_type(**MODELS[name]), sizes_of(train))
    scorer.initialise(train, rng)
    loss = "softmax" if name == "attention" and pairs == "catalogue" else "logistic"
    asked = {"batch_size": 50, "pairs": pairs, "loss": loss, "l2": 0.01, "weights": weights}
    settings = TrainingSettings(**asked, softmax_negatives=20, softmax_items="unseen")
    learner = PlainLearner(TrainingTask(scorer, train, settings, rng))
    for batch in make_batches(train, scorer, settings).epoch(1, rng):
        assert (batch.weights is None) == (weights == "none")
        whole = learner._loss(learner.scorer, batch)
        total, rows = torch.zeros(()), 0
        for rank in range(3):
            mine = Workers(rank, 3).slice(batch)
            total = total + mine.share * learner._loss(learner.scorer, mine.batch)
            rows += len(mine.batch.labels)
        torch.testing.assert_close(total, whole, atol=1e-6, rtol=1e-6)
        assert rows == (len(batch.labels) if mine.batch is not batch else 3 * len(batch.labels))


def test_slices_drop_what_the_whole_batch_drops() -> None:
    train, kind = small_split(users=31, items=40).train, model_type("attention")
    scorer = kind(kind.settings_type(dropout=0.5, history_length=5), sizes_of(train))
    scorer.initialise(train, Rng(0))
    settings = TrainingSettings(batch_size=50)
    batch = next(iter(make_batches(train, scorer, settings).epoch(1, Rng(0))))
    before = {key: tensor.clone() for key, tensor in scorer.state_dict().items()}
    whole, pieces = scorer.score(batch.context, batch.items), []
    for rank in range(3):
        scorer.load_state_dict(before)
        mine = Workers(rank, 3).slice(batch).batch
        pieces.append(scorer.score(mine.context, mine.items))
    torch.testing.assert_close(torch.cat(pieces), whole)


def test_a_batch_with_fewer_rows_than_workers_is_everybodys() -> None:
    split = small_split(users=4, items=20)
    kind = model_type("mf")
    scorer = kind(kind.settings_type(), sizes_of(split.train))
    batch = next(iter(make_batches(split.train, scorer, TrainingSettings(batch_size=2)).epoch(1, Rng(0))))
    mine = Workers(1, 5).slice(batch)
    assert mine.batch is batch
    assert mine.share == 0.2


def test_a_slice_keeps_its_weights() -> None:
    pairs = torch.arange(6).view(6, 1)
    context = Context(pairs[:, 0], torch.empty(6, 0, dtype=torch.long))
    batch = Batch(context, pairs, torch.ones(6, 1), weights=pairs.float())
    for rank in range(2):
        mine = Workers(rank, 2).slice(batch)
        assert mine.batch.weights is not None
        assert torch.equal(mine.batch.weights, batch.weights[mine.rows])
        assert len(mine.batch.weights) == 3


def test_a_process_alone_leads() -> None:
    assert workers() is None
    assert leads()


def fit_words(folder: Path, run: str, *more: str, model: str = "mf") -> list[str]:
    # Of four numbers, attention's norms divide by next to nothing, and rounding grows to some 1e-6.
    dim = 16 if model == "attention" else 4
    words = ["fit", str(folder / "e.csv"), "--model", model, "--set", f"embedding_dim={dim}", *more]
    return [sys.executable, "-c", RUN, *words, "--set", "batch_size=256", "--out", str(folder / run)]


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "history.jsonl").read_text().splitlines()]


GAME = ("--method", "transport", "--set", "warm_epochs=1")
CASES = {
    "plain": (),
    "transport": GAME,
    "transport, sharded": (*GAME, "--tables", "sharded"),
    "after plain training": ("--method", "transport"),
    "after plain training, sharded": ("--method", "transport", "--tables", "sharded"),
    "sampled domain": (*GAME, "--set", "domain=sampled"),
    "lists": (*GAME, "--set", "domain=ranking"),
    "models as players": (*GAME, "--w", "mf", "--g", "mf"),
    "wide_deep": (),
    "attention": ("--set", "history_length=10", "--set", "pairs=sampled", "--set", "loss=logistic"),
    "attention, transport": (*GAME, "--set", "history_length=10"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.cluster] * (case != "plain")) for case in CASES]
)
def test_two_processes_train_as_one_does(tmp_path: Path, case: str) -> None:
    write_events(tmp_path / "e.csv")
    more = ("--set", "epochs=2", "--set", "hard_negatives=1", *CASES[case])
    model = case.split(",")[0] if case.split(",")[0] in MODELS else "mf"
    for run, together in (("one", ()), ("two", ("--workers", "2"))):
        words = fit_words(tmp_path, run, *more, *together, model=model)
        subprocess.run(words, check=True, capture_output=True)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-6)
    one, two = (load_file(tmp_path / run / "artifact" / "model.safetensors") for run in ("one", "two"))
    for key, tensor in one.items():
        # The bias of the keys has no effect on a softmax: its gradient is rounding, which Adam scales up.
        if not key.endswith("inputs.bias"):
            torch.testing.assert_close(two[key], tensor, atol=1e-4, rtol=1e-4)


def ranks_of(run: Path) -> list[int]:
    """The processes that train this run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"towpath.serving.together" in words and b"torch.distributed.run" not in words:
            found += [int(path.parent.name)] * (str(run).encode() in words)
    return found


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize("tables", ["copied", "sharded"])
def test_a_run_whose_worker_is_killed_goes_on_to_the_same_floats(tmp_path: Path, tables: str) -> None:
    write_events(tmp_path / "e.csv")
    more = ("--set", "epochs=30", "--set", "patience=30", "--workers", "2", "--tables", tables)
    subprocess.run(fit_words(tmp_path, "calm", *more), check=True, capture_output=True)
    process = subprocess.Popen(fit_words(tmp_path, "killed", *more), stdout=subprocess.DEVNULL)
    checkpoint = "checkpoint" if tables == "sharded" else "checkpoint.safetensors"
    while not (tmp_path / "killed" / checkpoint).exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(ranks_of(tmp_path / "killed")[-1], signal.SIGKILL)
    assert process.wait() == 0
    calm, killed = (
        load_file(tmp_path / run / "artifact" / "model.safetensors") for run in ("calm", "killed")
    )
    assert all(torch.equal(killed[key], tensor) for key, tensor in calm.items())
    assert losses(tmp_path / "killed") == losses(tmp_path / "calm")
