"""The whole loop on one machine: fit two arms, serve them, log, test, and train again on the log.

python examples/serve_and_learn.py                 needs the extra `serve`
"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from towpath.cli import main as towpath
from towpath.rng import Rng
from towpath.worlds.store import load_world

PORT = 8765
SERVE = "serve --arm control=popular --arm new=ease --log log --epsilon 0.1 --port"


def ask(path: str, body: Any = None) -> Any:
    """What the server answers."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", data, timeout=30) as answer:
        return json.load(answer)


def wait_until_ready() -> None:
    """Models take a moment to load."""
    for _ in range(600):
        try:
            ask("/ready")
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def visit(user: str, relevance: dict[str, float], draw: np.random.Generator) -> None:
    """Ask for a list, click what is liked, order some of what was clicked."""
    answer = ask("/recommend", {"user": user, "k": 5})
    events = []
    for slot in answer["items"]:
        if draw.random() < relevance[slot["id"]]:
            about = {"request_id": answer["request_id"], "item": slot["id"]}
            key = f"{answer['request_id']}-{slot['position']}"
            events.append({"event_id": f"{key}-click", "kind": "click", **about})
            if draw.random() < 0.3:
                events.append({"event_id": f"{key}-order", "kind": "order", "units": 1, "value": 20, **about})
    if events:
        ask("/outcomes", events)


def main() -> None:
    """Everything in the current folder."""
    for command in (
        "simulate create --out world --set users=100 --set items=100",
        "fit world --model popularity --out popular",
        "fit world --model ease --out ease",
    ):
        assert towpath([*command.split(), "--quiet"]) == 0
    world, _ = load_world(Path("world"))
    users = world.log.user_ids.ids(np.arange(world.log.n_users))
    items = world.log.item_ids.ids(np.arange(world.log.n_items))
    command = Path(sys.executable).with_name("towpath")
    server = subprocess.Popen([command, *SERVE.split(), str(PORT)])
    try:
        wait_until_ready()
        draw = Rng(0).numpy("visits")
        for code, user in list(enumerate(users)) * 8:  # everybody comes eight times
            visit(user, dict(zip(items, world.relevance[code].tolist(), strict=True)), draw)
        for command in (
            "log export log --out shown.parquet",
            "experiment log --out experiment.html",
            "fit shown.parquet --model ease --out next",
        ):
            assert towpath([*command.split(), "--quiet"]) == 0
        print("the new arm now serves", ask("/admin/models", {"arm": "new", "run": "next"})["model_version"])
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
