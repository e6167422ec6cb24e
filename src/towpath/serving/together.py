"""A run that several processes train; each of them starts with `python -m towpath.serving.together RUN`."""

import subprocess
import sys
from pathlib import Path

from towpath.data.spark_session import spark_session, without_pandas_warning
from towpath.errors import ConfigError, TrainingError
from towpath.serving.run import Plan, Run, recipe_of
from towpath.training.distributed import joined

# How often a run goes on from its last complete epoch after a process was lost.
RESTARTS = 3


def refuse_other_methods(method: str) -> None:
    """Nothing, unless the method is one that several processes cannot share."""
    if method != "plain":
        raise ConfigError(
            f"Several workers train by the method plain, and {method!r} was given; leave --workers out."
        )


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
        [sys.executable, "-m", "torch.distributed.run", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = next(
            (line for line in reversed(done.stderr.splitlines()) if "Error: " in line), "no reason said"
        )
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
