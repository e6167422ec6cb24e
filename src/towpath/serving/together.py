"""A run that several processes train; each of them starts with `python -m towpath.serving.together RUN`."""

import os
import re
import subprocess
import sys
from pathlib import Path

from towpath.data.spark_session import spark_session, without_pandas_warning
from towpath.data.split import Split
from towpath.errors import ConfigError, TrainingError
from towpath.memory import available, current_limit
from towpath.methods.recipe import Recipe
from towpath.methods.run import refuse_unshardable
from towpath.models.factorization import FactorizationSettings
from towpath.serving.run import Plan, Run, recipe_of
from towpath.training.distributed import joined
from towpath.transport.learner import plays_game
from towpath.transport.settings import TransportSettings, refuse_soft_sharing

# How often a run goes on from its last complete epoch after a process was lost.
RESTARTS = 3
# Otherwise processes that start again may read the addresses of those that are gone, and fail to find them.
NEW_STORE_EACH_TIME = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


_REASON = re.compile(r"Error: \S")
METHODS = ("plain", "transport")  # those that several processes can share


def refuse_other_methods(method: str) -> None:
    """Nothing, unless the method is one that several processes cannot share."""
    if method not in METHODS:
        raise ConfigError(
            f"Several workers train by the methods {' and '.join(METHODS)}, and {method!r} was given; leave "
            "--workers out."
        )


def refuse_unshared(recipe: Recipe, split: Split) -> None:
    """Nothing, unless the recipe plays or learns from impressions as several processes cannot."""
    settings = recipe.resolve().method
    if not isinstance(settings, TransportSettings):
        return
    refuse_soft_sharing(settings)
    if not plays_game(split.train, settings):
        raise ConfigError(
            "Transport on a log of impressions trains in one process; leave --workers out, or play the game "
            "of f, w and g with --set solver=game."
        )


def tables_for(asked: str, recipe: Recipe, split: Split, workers: int) -> str:
    """Copied or sharded, as asked; `auto`: sharded if copies would not fit in the memory of a worker.

    A worker with a copy holds the tables four times: itself, Adam's two moments and the best epoch. They fit
    if that is at most half of the limit of memory, or, without one, of what this machine has left for each of
    the workers.
    """
    if asked == "sharded":
        refuse_unshardable(recipe)
    if asked != "auto" or recipe.model_name != "mf" or workers == 1:
        return "copied" if asked == "auto" else asked
    settings = recipe.resolve().model
    assert isinstance(settings, FactorizationSettings)
    tables = 4 * (split.train.n_users + split.train.n_items) * (settings.embedding_dim + 1)
    room = current_limit() or available() // max(1, workers)
    if 4 * tables <= room / 2:
        return "copied"
    refuse_unshardable(recipe)
    return "sharded"


def train_run(folder: str) -> None:
    """Train the run in this folder together with the other processes; the first of them writes."""
    run = Run(Path(folder))
    if run.finished:
        return
    with joined():
        run.train(Plan(run.split, recipe_of(run), run.record["data"]))


def train_here(run: Path, workers: int) -> None:
    """Train a run by so many processes on this machine, going on if one of them is lost."""
    words = [
        "--standalone",
        f"--nproc-per-node={workers}",
        f"--max-restarts={RESTARTS}",
        "-m",
        __name__,
        str(run),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words],
        env={**os.environ, **NEW_STORE_EACH_TIME},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        # The last line that gives a reason: torch adds one of its own, which does not.
        last = next((line for line in reversed(done.stderr.splitlines()) if _REASON.search(line)), "not said")
        raise TrainingError(
            f"Training {run} by {workers} workers failed {RESTARTS + 1} times (last: {last.strip()[:200]}); "
            "go on with --resume when that is mended."
        )


def train_by_spark(run: Path, workers: int, engine: str) -> None:
    """Train a run by so many workers of a Spark cluster, going on if one of them is lost."""
    with without_pandas_warning():
        session = spark_session(engine)
        from pyspark.ml.torch.distributor import TorchDistributor

        for left in reversed(range(RESTARTS + 1)):
            session.sparkContext.setJobDescription(f"towpath fit {run}")
            try:
                distributor = TorchDistributor(num_processes=workers, local_mode=False, use_gpu=False)
                distributor.run(train_run, str(run.absolute()))
                return
            except Exception as error:  # whatever a lost worker makes Spark say
                if not left:
                    raise TrainingError(
                        f"Training {run} by {workers} workers failed {RESTARTS + 1} times "
                        f"({str(error).splitlines()[0][:200]}); go on with --resume when that is mended."
                    ) from error


if __name__ == "__main__":
    train_run(sys.argv[1])
