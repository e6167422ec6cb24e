"""SASRec of a peer: the seconds of its epochs, and how well it ranks with its own defaults.

    build/peers/NAME/bin/python benchmarks/peer_sasrec.py NAME FOLDER THREADS epochs|quality [EPOCHS]

Run by the peer's own interpreter. FOLDER holds the arrays that `benchmarks.peers` wrote. `epochs` trains an
epoch (dimension 64, length 50, two blocks, one head, softmax over the catalogue) for every line that it is
sent, and answers with its seconds, wall clock and processor. RecBole learns from every beginning of a history
on its own, so its epoch is that many times longer; a few of its batches are measured and scaled up. `quality`
trains with the peer's defaults, or for EPOCHS, and answers with the test Hit@10 and NDCG@10 over the whole
catalogue, items that were seen hidden.
"""

import json
import logging
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = (
    "1"  # RecBole loads its checkpoints in a way that torch refuses
)
ALIKE = {"dim": 64, "heads": 1, "length": 50}  # both have two blocks by default
BATCHES = 6  # of RecBole's epoch that are measured
Seconds = tuple[float, float]


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    peer, folder, threads, what = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    import torch

    torch.set_num_threads(threads)
    events = dict(np.load(folder / "events.npz"))
    os.chdir(folder)  # both leave logs where they are run
    kind = {"recbole": RecBole, "rectools": RecTools}[peer]
    if what == "epochs":
        timed = kind(events, folder, ALIKE)
        for _ in sys.stdin:
            print("seconds", json.dumps(timed.epoch()), flush=True)
        return
    epochs = {"epochs": int(sys.argv[5])} if len(sys.argv) > 5 else {}
    began = time.process_time()
    model = kind(events, folder, epochs)
    model.train()
    seconds = time.process_time() - began
    ranks = model.ranks()
    found = {
        "hit": float((ranks <= 10).mean()),
        "ndcg": float(np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0).mean()),
    }
    print(json.dumps(found | {"users": len(ranks), "processor_seconds": seconds, "epochs": model.epochs}))


def now() -> Seconds:
    return time.perf_counter(), time.process_time()


def since(began: Seconds, times: float = 1.0) -> list[float]:
    return [times * (end - begin) for begin, end in zip(began, now(), strict=True)]


class RecTools:
    def __init__(self, events: dict[str, Any], folder: Path, chosen: dict[str, int]) -> None:
        from rectools.models import SASRecModel

        names = {"dim": "n_factors", "heads": "n_heads", "length": "session_max_len", "epochs": "epochs"}
        sizes = {names[key]: value for key, value in chosen.items()}
        self.model = SASRecModel(**sizes, dataloader_num_workers=0, verbose=0)
        self.events, self.epochs = events, self.model.epochs

    def dataset(self, part: str) -> Any:
        import pandas as pd
        from rectools import Columns
        from rectools.dataset import Dataset

        users, items = self.events[f"{part}_users"], self.events[f"{part}_items"]
        times = pd.to_datetime(np.arange(len(users)), unit="s")  # rows are in order, train before validation
        return Dataset.construct(
            pd.DataFrame(
                {Columns.User: users, Columns.Item: items, Columns.Weight: 1.0, Columns.Datetime: times}
            )
        )

    def epoch(self) -> list[float]:
        data, began = self.dataset("train"), now()
        self.model.fit_partial(data, min_epochs=1, max_epochs=1)
        return since(began)

    def train(self) -> None:
        self.model.fit(self.dataset("train"))

    def ranks(self) -> Any:
        """The place of each test item in its user's list of ten; 11 where it is not in it."""
        users, items = self.events["test_users"], self.events["test_items"]
        lists = self.model.recommend(users, self.dataset("seen"), k=10, filter_viewed=True)
        wanted = dict(zip(users.tolist(), items.tolist(), strict=True))
        found = lists[lists["item_id"] == lists["user_id"].map(wanted)]
        place = dict(zip(found["user_id"].tolist(), found["rank"].tolist(), strict=True))
        return np.array([place.get(user, 11) for user in users.tolist()])


class RecBole:
    def __init__(self, events: dict[str, Any], folder: Path, chosen: dict[str, int]) -> None:
        from recbole.config import Config
        from recbole.data import create_dataset, data_preparation
        from recbole.utils import get_model, get_trainer, init_seed

        write_atomic_file(events, folder)
        names = {
            "dim": "hidden_size",
            "heads": "n_heads",
            "length": "MAX_ITEM_LIST_LENGTH",
            "epochs": "epochs",
        }
        settings = {
            "data_path": str(folder),
            "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
            "eval_args": {
                "group_by": "user",
                "order": "TO",
                "mode": "full",
                "split": {"LS": "valid_and_test"},
            },
            "metrics": ["Hit", "NDCG"],
            "topk": [10],
            "valid_metric": "Hit@10",
            "train_neg_sample_args": None,  # its loss is the softmax over the catalogue
            "use_gpu": False,
            "show_progress": False,
            "checkpoint_dir": str(folder / "saved"),
            "state": "CRITICAL",
        }
        settings |= {names[key]: value for key, value in chosen.items()}
        config = Config(model="SASRec", dataset="sequences", config_dict=settings)
        init_seed(config["seed"], config["reproducibility"])
        self.data = create_dataset(config)
        self.parts = data_preparation(config, self.data)
        self.model = get_model("SASRec")(config, self.parts[0].dataset)
        self.trainer = get_trainer(config["MODEL_TYPE"], "SASRec")(config, self.model)
        self.events, self.epochs = events, config["epochs"]

    def epoch(self) -> list[float]:
        optimiser, began = self.trainer.optimizer, now()
        self.model.train()
        for number, batch in enumerate(self.parts[0]):
            if number == BATCHES:
                break
            optimiser.zero_grad()
            self.model.calculate_loss(batch).backward()
            optimiser.step()
        return since(began, len(self.parts[0]) / BATCHES)

    def train(self) -> None:
        self.trainer.fit(self.parts[0], self.parts[1], saved=True, show_progress=False)
        self.epochs = len(self.trainer.train_loss_dict)

    def ranks(self) -> Any:
        import torch

        seen: dict[int, list[int]] = {}
        for user, item in zip(
            self.events["seen_users"].tolist(), self.events["seen_items"].tolist(), strict=True
        ):
            seen.setdefault(user, []).append(item)
        codes = self.data.field2token_id["item_id"]
        names = self.data.field2id_token["user_id"]
        self.model.load_state_dict(torch.load(self.trainer.saved_model_file)["state_dict"])
        self.model.eval()
        ranks = []
        with torch.no_grad():
            for batch, *_ in self.parts[2]:
                scores = self.model.full_sort_predict(batch)
                for row, user, target in zip(
                    scores, batch["user_id"].tolist(), batch["item_id"].tolist(), strict=True
                ):
                    own = float(row[target])
                    row[[codes[str(item)] for item in seen[int(names[user])]]] = -torch.inf
                    row[0] = -torch.inf  # padding
                    ranks.append(1 + int((row > own).sum()))
        return np.array(ranks)


def write_atomic_file(events: dict[str, Any], folder: Path) -> None:
    """All events in one file, with their place in time."""
    (folder / "sequences").mkdir(exist_ok=True)
    parts = ("train", "validation", "test")
    columns = [np.concatenate([events[f"{part}_{side}"] for part in parts]) for side in ("users", "items")]
    rows = np.column_stack([*columns, np.arange(len(columns[0]))])
    header = "user_id:token\titem_id:token\ttimestamp:float"
    np.savetxt(folder / "sequences" / "sequences.inter", rows, "%d", "\t", header=header, comments="")


if __name__ == "__main__":
    main()
