"""What RecBole takes: an epoch of BPR, full-ranking evaluation, memory. Run by its own interpreter.

    build/peers/recbole/bin/python benchmarks/peer_recbole.py FOLDER THREADS DIM

FOLDER holds the arrays that `benchmarks.peers` wrote; RecBole's own files go there too. Answers with a
line of JSON, the last one of what it prints.
"""

import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

# RecBole loads its own checkpoints in a way that newer torch refuses.
os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
EPOCHS = 3
# Its default scores one user of a large catalogue at a time; the others as many as are best here.
EVALUATION_BATCHES = (4096, 2**20, 2**22, 2**24)


def main() -> None:
    warnings.simplefilter("ignore")
    folder, threads, dim = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    import torch

    os.chdir(folder)  # RecBole leaves logs where it is run
    torch.set_num_threads(threads)
    write_atomic_files(folder)
    train, _, trainer = prepare(folder, dim, EVALUATION_BATCHES[0])
    epochs = []
    for number in range(EPOCHS):
        began = time.perf_counter()
        trainer._train_epoch(train, number, show_progress=False)
        epochs.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    evaluations = {size: evaluation_seconds(folder, dim, size) for size in EVALUATION_BATCHES}
    found = {"epoch_seconds": min(epochs), "evaluation_seconds": evaluations, "peak_megabytes": peak / 1024}
    print(json.dumps(found))


def write_atomic_files(folder: Path) -> None:
    data = np.load(folder / "events.npz")
    (folder / "toy").mkdir()
    for part in ("train", "validation", "test"):
        rows = np.column_stack([data[f"{part}_users"], data[f"{part}_items"]])
        np.savetxt(
            folder / "toy" / f"toy.{part}.inter",
            rows,
            "%d",
            "\t",
            header="user_id:token\titem_id:token",
            comments="",
        )


def prepare(folder: Path, dim: int, batch: int) -> tuple:
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import get_model, get_trainer, init_seed

    chosen = {
        "data_path": str(folder),
        "benchmark_filename": ["train", "validation", "test"],
        "load_col": {"inter": ["user_id", "item_id"]},
        "eval_args": {"group_by": "user", "order": "RO", "mode": "full", "split": {"LS": "valid_and_test"}},
        "metrics": ["Hit", "NDCG"],
        "topk": [10],
        "valid_metric": "NDCG@10",
        "embedding_size": dim,
        "eval_batch_size": batch,
        "use_gpu": False,
        "show_progress": False,
        "checkpoint_dir": str(folder / "saved"),
        "state": "CRITICAL",
    }
    config = Config(model="BPR", dataset="toy", config_dict=chosen)
    init_seed(config["seed"], config["reproducibility"])
    dataset = create_dataset(config)
    train, _, test = data_preparation(config, dataset)
    model = get_model("BPR")(config, train.dataset)
    trainer = get_trainer(config["MODEL_TYPE"], "BPR")(config, model)
    return train, test, trainer


def evaluation_seconds(folder: Path, dim: int, batch: int) -> float:
    train, test, trainer = prepare(folder, dim, batch)
    trainer.eval_collector.data_collect(train)
    times = []
    for _ in range(2):
        began = time.perf_counter()
        trainer.evaluate(test, load_best_model=False)
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
