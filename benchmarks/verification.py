"""What it costs to check every byte of a run before it is used: evaluate and recommend, with and without.

    python -m benchmarks.verification [ml-1m] --data-dir DIR [--repeats 5]

One run is fitted. Then each question is asked in turns with checksums verified, as always, and with that left
out; a question loads the run anew, in one process. The ratio is of the medians of processor time.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from unittest import mock

from benchmarks.peak_memory import TOWPATH, measure
from towpath import checksums, files
from towpath.evaluation.evaluate import evaluate
from towpath.serving.recommender import load
from towpath.serving.run import Run


@contextmanager
def unverified() -> Iterator[None]:
    """A block in which no file is read for its checksum: every digest is the one that is listed."""
    wanted: dict[Path, str] = {}

    def listed(path: Path, algorithm: str = "sha256") -> str:
        if path not in wanted:
            wanted.update(_listed_digests(path.parent))
        return wanted[path]

    with mock.patch.object(files, "file_digest", listed):
        yield


def _listed_digests(folder: Path) -> dict[Path, str]:
    """The digests that the manifest of a folder or the list of a run has; of a part, that of its manifest."""
    if (folder / checksums.MANIFEST).is_file():
        manifest = json.loads((folder / checksums.MANIFEST).read_text())
        found = {folder / name: digest for name, digest in manifest["files"].items()}
        return found | {folder / checksums.MANIFEST: _listed_in(folder.parent)[folder.name]}
    return {folder / name: digest for name, digest in _listed_in(folder).items()}


def _listed_in(run: Path) -> dict[str, str]:
    listed = json.loads((run / files.CHECKSUMS).read_text())["files"]
    return {name: digests[-1] for name, digests in listed.items()}


def ask_recommend(run: Path) -> None:
    """Load the model and recommend to one user."""
    load(run).recommend("1", k=10)


def ask_evaluate(run: Path) -> None:
    """Load model and split, and evaluate the full ranking."""
    found = Run(run)
    evaluate(found.artifact.scorer, found.split, protocol="full")


def seconds(question: Callable[[Path], None], run: Path) -> float:
    """The processor time of one question."""
    began = time.process_time()
    question(run)
    return time.process_time() - began


def compare(question: Callable[[Path], None], run: Path, repeats: int) -> dict[str, float]:
    """The medians with and without, asked in turns, and their ratio."""
    question(run)  # imports and compiled loops
    times: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(repeats):
        times["with"].append(seconds(question, run))
        with unverified():
            times["without"].append(seconds(question, run))
    found = {name: median(values) for name, values in times.items()}
    spread = {f"{name}_range": [min(v), max(v)] for name, v in times.items()}
    return {**found, "ratio": found["with"] / found["without"], **spread}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", default="ml-1m")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        where = ["--data-dir", str(options.data_dir)] if options.data_dir else []
        measure([*TOWPATH, "fit", options.data, *where, "--set", "epochs=1", "--quiet", "--out", str(run)])
        size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
        rows = {
            name: compare(question, run, options.repeats)
            for name, question in (("recommend", ask_recommend), ("evaluate", ask_evaluate))
        }
    print(json.dumps({"data": options.data, "megabytes": size / 1e6, **rows}, indent=1))


if __name__ == "__main__":
    main()
