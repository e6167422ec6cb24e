"""The lists that a model of a peer shows with the peer's own defaults. Run by the peer's own interpreter.

    build/peers/NAME/bin/python benchmarks/peer_defaults.py recbole|rectools MODEL FOLDER SEED [EPOCHS]

FOLDER holds the arrays that `benchmarks.peers` wrote; `lists.npz` is written next to them: the users of the
test part and the ten best items of each, items that were seen hidden. Nothing is set but the data, the split,
the seed, and what the number of scores at once is, which only costs time. With EPOCHS the peer trains for at
most so many. Answers with a line of JSON: processor seconds of training, and epochs.
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

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # RecBole loads its checkpoints so
K = 10
# The default of RecBole's models of rankings; WideDeep would expect labels in the data.
NEGATIVES = {"distribution": "uniform", "sample_num": 1, "alpha": 1.0, "dynamic": False, "candidate_num": 0}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    peer, model, folder, seed = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    epochs = {"epochs": int(sys.argv[5])} if len(sys.argv) > 5 else {}
    import torch

    torch.set_num_threads(1)
    events = dict(np.load(folder / "events.npz"))
    os.chdir(folder)  # both leave logs where they are run
    began = time.process_time()
    trained = (train_recbole if peer == "recbole" else train_rectools)(model, events, seed, epochs)
    seconds = time.process_time() - began
    users = events["test_users"]
    np.savez("lists.npz", users=users, items=trained["lists"](users))
    print(json.dumps({"seconds": seconds, "epochs": trained["epochs"]}))


def seen_by(events: dict[str, Any]) -> dict[int, list[int]]:
    seen: dict[int, list[int]] = {}
    for user, item in zip(events["seen_users"].tolist(), events["seen_items"].tolist(), strict=True):
        seen.setdefault(user, []).append(item)
    return seen


# -- RecTools -----------------------------------------------------------------------------------------------

# gSASRec (Petrov and Macdonald 2023) is its SASRec with the loss, the negatives and the t of that paper.
GSASREC = {"loss": "gBCE", "n_negatives": 256, "gbce_t": 0.75}


def train_rectools(model: str, events: dict[str, Any], seed: int, epochs: dict[str, int]) -> dict[str, Any]:
    from pytorch_lightning import seed_everything
    from rectools import models

    seed_everything(seed, verbose=False)
    chosen = epochs | (GSASREC if model == "gSASRec" else {})
    trained = models.SASRecModel(**chosen, dataloader_num_workers=0, verbose=0)
    trained.fit(rectools_dataset(events, "train"))

    def lists(users: Any) -> Any:
        table = trained.recommend(users, rectools_dataset(events, "seen"), k=K, filter_viewed=True)
        rows = {user: row for row, user in enumerate(users.tolist())}
        items = np.full((len(users), K), -1)
        items[table["user_id"].map(rows), table["rank"] - 1] = table["item_id"]
        return items

    return {"lists": lists, "epochs": trained.epochs}


def rectools_dataset(events: dict[str, Any], part: str) -> Any:
    import pandas as pd
    from rectools import Columns
    from rectools.dataset import Dataset

    users, items = events[f"{part}_users"], events[f"{part}_items"]
    # Rows are in order of time, validation after train.
    times = pd.to_datetime(np.arange(len(users)), unit="s")
    columns = {Columns.User: users, Columns.Item: items, Columns.Weight: 1.0, Columns.Datetime: times}
    return Dataset.construct(pd.DataFrame(columns))


# -- RecBole ------------------------------------------------------------------------------------------------


def train_recbole(model: str, events: dict[str, Any], seed: int, epochs: dict[str, int]) -> dict[str, Any]:
    import torch
    from recbole.config import Config
    from recbole.data import create_dataset, data_preparation
    from recbole.utils import get_model, get_trainer, init_seed

    sequential = model == "SASRec"
    write_atomic_files(events, sequential)
    chosen = {
        "data_path": str(Path.cwd()),
        "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
        "eval_args": {"group_by": "user", "order": "TO", "mode": "full", "split": {"LS": "valid_and_test"}},
        # As its models of rankings have by default; WideDeep would stop by AUC, which needs labels.
        "metrics": ["Hit", "NDCG", "MRR"],
        "valid_metric": "MRR@10",
        "eval_batch_size": 2**20,
        "seed": seed,
        "use_gpu": False,
        "show_progress": False,
        "checkpoint_dir": "saved",
        "state": "CRITICAL",
    } | epochs
    if (
        sequential
    ):  # RecBole itself asks for this with a softmax over the catalogue, its SASRec's default loss
        chosen |= {"train_neg_sample_args": None}
    else:
        chosen |= {"benchmark_filename": ["train", "validation", "test"], "train_neg_sample_args": NEGATIVES}
    config = Config(model=model, dataset="events", config_dict=chosen)
    init_seed(config["seed"], config["reproducibility"])
    data = create_dataset(config)
    train, validation, test = data_preparation(config, data)
    trained = get_model(model)(config, train.dataset)
    trainer = get_trainer(config["MODEL_TYPE"], model)(config, trained)
    trainer.fit(train, validation, saved=True, show_progress=False)
    trained.load_state_dict(torch.load(trainer.saved_model_file)["state_dict"])
    trained.eval()
    scores = sequence_scores(trained, test) if sequential else pair_scores(trained, data, events)
    return {
        "lists": lambda users: recbole_lists(scores, data, events, users),
        "epochs": len(trainer.train_loss_dict),
    }


def write_atomic_files(events: dict[str, Any], sequential: bool) -> None:
    """One file for each part, or all events in one, with their place in time."""
    folder = Path("events")
    folder.mkdir(exist_ok=True)
    header = "user_id:token\titem_id:token\ttimestamp:float"
    parts = ("train", "validation", "test")
    rows = [np.column_stack([events[f"{part}_users"], events[f"{part}_items"]]) for part in parts]
    files = {"events.inter": np.concatenate(rows)} if sequential else {}
    files |= {f"events.{part}.inter": own for part, own in zip(parts, rows, strict=True)}
    for name, own in files.items():
        table = np.column_stack([own, np.arange(len(own))])
        np.savetxt(folder / name, table, "%d", "\t", header=header, comments="")


def sequence_scores(model: Any, test: Any) -> Any:
    """(users by RecBole's codes, scores of its items) of the test part, a batch at a time."""
    import torch

    with torch.no_grad():
        for batch, *_ in test:
            yield batch["user_id"].numpy(), model.full_sort_predict(batch).view(len(batch), -1).numpy()


def pair_scores(model: Any, data: Any, events: dict[str, Any]) -> Any:
    """The same for models of pairs, a user at a time."""
    import torch
    from recbole.data.interaction import Interaction

    codes, items = data.field2token_id["user_id"], torch.arange(data.item_num)
    with torch.no_grad():
        for user in np.unique(events["test_users"]).tolist():
            code = codes[str(user)]
            pairs = Interaction({"user_id": torch.full_like(items, code), "item_id": items})
            yield np.array([code]), model.predict(pairs).view(1, -1).numpy()


def recbole_lists(scores: Any, data: Any, events: dict[str, Any], users: Any) -> Any:
    seen, items = seen_by(events), np.full((len(users), K), -1)
    item_codes, item_names = data.field2token_id["item_id"], data.field2id_token["item_id"]
    user_names = data.field2id_token["user_id"]
    rows = {user: row for row, user in enumerate(users.tolist())}
    for codes, block in scores:
        for code, own in zip(codes, block, strict=True):
            user = int(user_names[code])
            if user not in rows:
                continue
            own = own.copy()
            own[[0, *(item_codes[str(item)] for item in seen[user] if str(item) in item_codes)]] = -np.inf
            best = np.argsort(-own, kind="stable")[:K]
            items[rows[user]] = [int(item_names[item]) for item in best]
    return items


if __name__ == "__main__":
    main()
