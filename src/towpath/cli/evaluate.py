"""towpath evaluate: the numbers of a run under a named protocol."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from towpath.cli.options import DataOptions, Device, Memory, RunFolder, lengths_in
from towpath.cli.output import Listing, Output
from towpath.cli.outside import read_outside
from towpath.cli.prepare import use_threads
from towpath.errors import ConfigError
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from towpath.data.split import Part, Split
    from towpath.evaluation.evaluate import EvaluationOptions, RankedBlock
    from towpath.evaluation.protocols import EvalProtocol
    from towpath.evaluation.result import Evaluation
    from towpath.serving.run import Run


@dataclass(frozen=True)
class EvaluateOptions:
    """On which events, and how."""

    protocol: Annotated[
        str | None,
        typer.Option(
            help="The protocol: full (the default), sampled, paper, listed, ips or snips.",
            show_default=False,
        ),
    ] = None
    on: Annotated[str, typer.Option(help="test or validation.")] = "test"
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Evaluate on these events instead of the run's own.")
    ] = None
    candidates: Annotated[
        str | None,
        typer.Option(
            metavar="catalogue|listed|FILE",
            help="What is ranked: the whole catalogue (protocol full), the items that the test events have "
            "for the user (listed), or those that a file has for the user.",
        ),
    ] = None
    graded: Annotated[
        bool, typer.Option("--graded", help="listed: a positive counts by its value, not as one.")
    ] = False
    examination: Annotated[
        str | None,
        typer.Option(
            metavar="estimate|1,.7,.5",
            help="ips, snips: the chance that each position is looked at, as estimated from the run's own "
            "impressions or as given.",
        ),
    ] = None
    filter_shown: Annotated[
        bool, typer.Option("--filter-shown", help="Leave out everything that the user was shown before.")
    ] = False
    max_showings: Annotated[
        int | None, typer.Option(min=1, help="Leave out what the user was shown so often or more before.")
    ] = None
    rest: Annotated[
        bool,
        typer.Option("--rest", help="Discount what was shown lately, as repeats in the run's log say."),
    ] = False
    k: Annotated[str, typer.Option("--k", "-k", help="Length of the lists; several with commas.")] = "10"
    memory: Memory = None
    device: Device = "cpu"


def evaluate(run: RunFolder, options: EvaluateOptions, columns: DataOptions, output: Output) -> None:
    """Evaluate a run on events that it was not trained on: its own test part, or a file."""
    use_threads(1)
    limit_memory(options.memory)
    protocol = _protocol(options)
    lengths = lengths_in(options.k)
    from towpath.device import device_named
    from towpath.serving.run import Run

    place, opened = device_named(options.device), Run(run)
    split = _split(opened, options, columns, output)
    opened.artifact.scorer.to(place)
    with output.working(f"Evaluating {run}"):
        result = _evaluate(opened, split, protocol, options, columns, lengths, output)
    if result.users_left_out:
        output.say(f"{result.users_left_out:,} users have nothing in training or no target here: left out.")
    numbers = result.metrics()
    shown: dict[str, Any] = {  # any JSON
        "protocol": result.protocol,
        "on": options.on,
        "k": lengths[0] if len(lengths) == 1 else lengths,
        "users": len(result.users),
        "metrics": numbers,
        "intervals": _intervals(result),
    }
    title = f"{run}: {result.protocol}, {options.on}, k = {options.k}, {len(result.users):,} users"
    output.show(shown, Listing(title, ("metric", "mean"), numbers.items()))


def _protocol(options: EvaluateOptions) -> str:
    """The protocol that the options come to; the name of a file stands for `candidates`."""
    if options.candidates is None:
        return options.protocol or "full"
    if options.protocol is not None:
        raise ConfigError(
            f"--candidates {options.candidates} and --protocol {options.protocol} both say what is ranked; "
            "leave one of them out."
        )
    return {"catalogue": "full", "listed": "listed"}.get(options.candidates, "candidates")


def _split(run: "Run", options: EvaluateOptions, columns: DataOptions, output: Output) -> "Split":
    from towpath.serving.run import refuse_nothing_left

    if options.test is None:
        refuse_nothing_left(run)
        return run.split
    if options.on != "test":
        raise ConfigError("--test FILE is a test part; leave --on out.")
    from towpath.data.outside import with_test

    events = read_outside(options.test, run.split.train, columns, run.record["data"], output)
    return with_test(run.split, events)


def _evaluate(
    run: "Run",
    split: "Split",
    protocol: str,
    options: EvaluateOptions,
    columns: DataOptions,
    lengths: list[int],
    output: Output,
) -> "Evaluation":
    from towpath.evaluation.evaluate import evaluate, evaluate_candidates

    scorer, on = run.artifact.scorer, cast("Part", options.on)  # an unknown name is refused there
    if protocol == "candidates":
        assert options.candidates is not None
        listed = read_outside(options.candidates, split.train, columns, run.record["data"], output)
        return evaluate_candidates(scorer, split, listed, on=on, k=lengths)
    asked = _options(options, split)
    return evaluate(
        scorer,
        split,
        protocol=cast("EvalProtocol", protocol),  # an unknown name is refused there, with a suggestion
        on=on,
        k=lengths,
        options=asked,
        rank=_ranked_by(run, protocol, options, columns, asked),
    )


def _ranked_by(
    run: "Run", protocol: str, options: EvaluateOptions, columns: DataOptions, asked: "EvaluationOptions"
) -> "Callable[[int], Iterable[RankedBlock]] | None":
    """Who ranks: the workers of a cluster, if they can know the events; None: this process."""
    from towpath.data.engine import is_spark

    if not is_spark(columns.engine) or options.test is not None or protocol == "listed":
        return None
    from towpath.serving.spark_jobs import ranks_by_spark

    # An unknown name is refused before anything is ranked.
    what = cast("EvalProtocol", protocol), cast("Part", options.on)
    return ranks_by_spark(columns.engine, run.folder, *what, asked)


def _options(options: EvaluateOptions, split: "Split") -> "EvaluationOptions":
    from towpath.data.repeats import estimate_rest
    from towpath.evaluation.evaluate import EvaluationOptions
    from towpath.evaluation.position_bias import estimate_position_bias, given_position_bias
    from towpath.ranking.resting import Resting

    examination = None
    if options.examination == "estimate":
        examination = estimate_position_bias(split.train).examination
    elif options.examination is not None:
        try:
            numbers = [float(part) for part in options.examination.split(",")]
        except ValueError:
            raise ConfigError(
                f"--examination takes estimate or numbers such as 1,.7,.5, not {options.examination!r}."
            ) from None
        examination = given_position_bias(numbers).examination
    known = (split.train if options.on == "validation" else split.before_test).rows
    curve = estimate_rest(known) if options.rest else None
    resting = Resting(options.filter_shown, options.max_showings, curve)
    return EvaluationOptions(graded=options.graded, examination=examination, resting=resting)


def _intervals(result: "Evaluation") -> dict[str, list[float]]:
    """95 % bootstrap intervals over users of every metric that has a value per user."""
    import numpy as np

    from towpath.rng import Rng
    from towpath.stats.intervals import RatioRows, bootstrap_interval

    intervals = {}
    for name, values in result.per_user.items():
        rows = RatioRows.of_mean(values[~np.isnan(values)])
        estimate = bootstrap_interval(rows, Rng(0).numpy("evaluate", name))
        intervals[name] = [estimate.low, estimate.high]
    return intervals
