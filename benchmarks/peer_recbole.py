"""What RecBole takes: an epoch, full-ranking evaluation, memory. Run by its own interpreter.

    build/peers/recbole/bin/python benchmarks/peer_recbole.py FOLDER THREADS DIM [BPR|NeuMF|WideDeep]

BPR has vectors of length DIM and is evaluated with several sizes of batch; NeuMF and WideDeep are as RecBole
has them by default, and are measured once: one epoch, one evaluation.

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
NEGATIVES = {"distribution": "uniform", "sample_num": 1, "alpha": 1.0, "dynamic": False, "candidate_num": 0}
# Its default scores one user of a large catalogue at a time; the others as many as are best here.
EVALUATION_BATCHES = (4096, 2**20, 2**22, 2**24)


def main() -> None:
    warnings.simplefilter("ignore")
    folder, threads, dim = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    model = sys.argv[4] if len(sys.argv) > 4 else "BPR"
    import torch

    os.chdir(folder)  # RecBole leaves logs where it is run
    torch.set_num_threads(threads)
    write_atomic_files(folder)
    found = bpr(folder, dim) if model == "BPR" else by_default(folder, model)
    print(json.dumps(found))


def bpr(folder: Path, dim: int) -> dict:
    own = {"embedding_size": dim}
    train, _, trainer = prepare(folder, "BPR", own | {"eval_batch_size": EVALUATION_BATCHES[0]})
    epochs = [epoch_seconds(trainer, train, number) for number in range(EPOCHS)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    evaluations = {
        size: min(evaluation_seconds(folder, "BPR", own | {"eval_batch_size": size}, 2))
        for size in EVALUATION_BATCHES
    }
    return {"epoch_seconds": min(epochs), "evaluation_seconds": evaluations, "peak_megabytes": peak / 1024}


def by_default(folder: Path, model: str) -> dict:
    train, test, trainer = prepare(folder, model, {})
    began = time.process_time()
    epoch, trained = epoch_seconds(trainer, train, 0), time.process_time()
    trainer.eval_collector.data_collect(train)
    ready = time.process_time()
    return {
        "epoch_seconds": epoch,
        "evaluation_seconds": timed_evaluation(trainer, test),
        "epoch_processor_seconds": trained - began,
        "evaluation_processor_seconds": time.process_time() - ready,
    }


def epoch_seconds(trainer, train, number: int) -> float:
    began = time.perf_counter()
    trainer._train_epoch(train, number, show_progress=False)
    return time.perf_counter() - began


def write_atomic_files(folder: Path) -> None:
    data = np.load(folder / "events.npz")
    (folder / "toy").mkdir(exist_ok=True)
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


def prepare(folder: Path, model: str, own: dict) -> tuple:
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
        # Pairs with one negative, as BPR has them by default too.
        "train_neg_sample_args": NEGATIVES,
        "use_gpu": False,
        "show_progress": False,
        "checkpoint_dir": str(folder / "saved"),
        "state": "CRITICAL",
    } | own
    config = Config(model=model, dataset="toy", config_dict=chosen)
    init_seed(config["seed"], config["reproducibility"])
    dataset = create_dataset(config)
    train, _, test = data_preparation(config, dataset)
    trainer = get_trainer(config["MODEL_TYPE"], model)(config, get_model(model)(config, train.dataset))
    return train, test, trainer


def evaluation_seconds(folder: Path, model: str, own: dict, times: int) -> list[float]:
    train, test, trainer = prepare(folder, model, own)
    trainer.eval_collector.data_collect(train)
    return [timed_evaluation(trainer, test) for _ in range(times)]


def timed_evaluation(trainer, test) -> float:
    began = time.perf_counter()
    trainer.evaluate(test, load_best_model=False)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
