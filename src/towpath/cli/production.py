"""towpath refit and update: a model for production, and the next one when new events have come."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.epochs import EpochLines
from towpath.cli.options import DataOptions, Memory, RunFolder
from towpath.cli.output import Listing, Output
from towpath.cli.outside import options_like
from towpath.cli.prepare import read_data, use_threads
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.data.interactions import Interactions
    from towpath.serving.run import Run
    from towpath.training.fit import EpochMetrics


@dataclass(frozen=True)
class Making:
    """Where the new run goes."""

    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder to make.", show_default=False)]
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with it if it is there: same run, same data.")
    ] = False
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1
    memory: Memory = None


def refit(run: RunFolder, making: Making, output: Output) -> None:
    """Train a run's recipe on all of its events, for the epochs that validation chose."""
    use_threads(making.threads)
    limit_memory(making.memory)
    from towpath.serving.production import refit_run
    from towpath.serving.run import Run, refuse_existing

    refuse_existing(making.out, resume=making.resume)
    old = Run(run)
    with output.working(f"Fitting {run} again on everything"):
        made = refit_run(old, making.out, resume=making.resume, watch=_Lines(output))
    _show(made, output, {})


def update(
    run: RunFolder,
    new: Annotated[str, typer.Argument(metavar="NEW", help="A file, a glob or a folder of new events.")],
    making: Making,
    columns: DataOptions,
    output: Output,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs on the old and the new events.")] = 3,
) -> None:
    """Go on from a run with new events: new users and items join, old ones keep what was learned."""
    use_threads(making.threads)
    limit_memory(making.memory)
    from towpath.serving.production import update_run
    from towpath.serving.run import Run, refuse_existing

    refuse_existing(making.out, resume=making.resume)
    old = Run(run)
    events = _read_new(new, old, columns, output)
    with output.working(f"Going on from {run}"):
        made, added = update_run(
            old, events, making.out, epochs=epochs, resume=making.resume, watch=_Lines(output)
        )
    output.say(added.sentence())
    _show(made, output, {"new_rows": added.rows, "new_users": added.users, "new_items": added.items})


class _Lines:
    """Says a line after each epoch."""

    def __init__(self, output: Output) -> None:
        self._output, self._lines = output, EpochLines()

    def __call__(self, row: "EpochMetrics") -> None:
        for line in self._lines(row):
            self._output.say(line)


def _read_new(file: str, run: "Run", columns: DataOptions, output: Output) -> "Interactions":
    """The new events, read with the run's columns and rules unless the options say otherwise."""
    like = options_like(file, columns, run.record["data"])
    # Features of new users and items come with the new events.
    options = replace(
        like,
        user_features=columns.user_features,
        item_features=columns.item_features,
        feature=_kinds(run, columns),
    )
    events = read_data(file, options, output, complete=False).interactions
    for side, had, given in (
        ("user", run.split.train.user_features, events.user_features),
        ("item", run.split.train.item_features, events.item_features),
    ):
        if had is not None and given is None:
            output.say(
                f"No {side} features came with the new events (--{side}-features): new {side}s have none."
            )
    return events


def _kinds(run: "Run", columns: DataOptions) -> list[str]:
    """What the columns of the new feature files hold: the same as those of the run, but for what is given."""
    train, kinds = run.split.train, dict[str, str]()
    if columns.user_features and train.user_features is not None:
        kinds |= {feature.name: feature.kind for feature in train.user_features.features}
    if columns.item_features and train.item_features is not None:
        kinds |= {feature.name: feature.kind for feature in train.item_features.features}
    given = [*(run.record["data"].get("feature") or ()), *(columns.feature or ())]
    kinds |= {name: kind for name, _, kind in (pair.partition("=") for pair in given) if name in kinds}
    return [f"{name}={kind}" for name, kind in kinds.items()]


def _show(run: "Run", output: Output, more: dict[str, Any]) -> None:  # any JSON
    about = run.artifact.about
    result: dict[str, Any] = {
        "run": str(run.folder),
        "artifact": str(run.folder / "artifact"),
        "model": about["recipe"]["model"],
        "method": about["recipe"]["method"],
        "made_from": about["data"]["made_from"],
        "users": about["sizes"]["users"],
        "items": about["sizes"]["items"],
        "rows": len(run.split.train),
        **more,
        "epochs": len(run.history),
        "stopped_because": about["stopped_because"],
    }
    output.show(result, Listing(f"{result['model']} by {result['method']}", ("", ""), list(result.items())))
