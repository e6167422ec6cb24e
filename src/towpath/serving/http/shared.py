"""What the workers of one server tell each other: which models to serve, and what they have counted.

It lies in a folder that the parent makes at its start and removes at its end. One worker alone needs none.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from towpath.files import write_text
from towpath.serving.http.counters import Counters

_MODELS = "models.json"


class SharedState:
    """One worker's view of the folder."""

    def __init__(self, folder: Path | None, worker: int = 0) -> None:
        self._folder = folder
        self._worker = worker

    def publish(self, counters: Counters) -> None:
        """Tell the others what this worker has counted."""
        if self._folder is not None:
            write_text(self._folder / f"worker-{self._worker}.json", json.dumps(counters.to_json()))

    def others(self) -> list[Counters]:
        """What the others have counted, as they last told."""
        found = []
        for path in sorted(self._folder.glob("worker-*.json")) if self._folder is not None else ():
            if path.name != f"worker-{self._worker}.json":
                with suppress(OSError, ValueError, TypeError):  # it has just been replaced or removed
                    found.append(Counters(**json.loads(path.read_text(encoding="utf-8"))))
        return found

    def swapped(self) -> tuple[int, dict[str, str]]:
        """How many swaps there have been, and the folders of the arms that were swapped."""
        if self._folder is None or not (self._folder / _MODELS).is_file():
            return 0, {}
        stored: dict[str, Any] = json.loads((self._folder / _MODELS).read_text(encoding="utf-8"))
        return stored["generation"], stored["folders"]

    def swap(self, arm: str, folder: str) -> int:
        """Tell the others to serve this arm from another folder: the number of this swap."""
        generation, folders = self.swapped()
        if self._folder is not None:
            stored = {"generation": generation + 1, "folders": {**folders, arm: folder}}
            write_text(self._folder / _MODELS, json.dumps(stored))
        return generation + 1
