"""towpath evaluate: the numbers of a run under a named protocol."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from towpath.cli.options import Device, HowMany, RunFolder
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads

if TYPE_CHECKING:
    from towpath.data.split import Part
    from towpath.evaluation.protocols import EvalProtocol


def evaluate(
    run: RunFolder,
    output: Output,
    protocol: Annotated[str, typer.Option(help="full, sampled or paper: part of every number.")] = "full",
    on: Annotated[str, typer.Option(help="test or validation.")] = "test",
    k: HowMany = 10,
    device: Device = "cpu",
) -> None:
    """Evaluate a run on the part of the data that it was not trained on."""
    use_threads(1)
    from towpath.device import device_named
    from towpath.evaluation.evaluate import evaluate as evaluate_scorer
    from towpath.serving.run import Run

    place, opened = device_named(device), Run(run)
    with output.working(f"Evaluating {run}"):
        result = evaluate_scorer(
            opened.artifact.scorer.to(place),
            opened.split,
            protocol=cast("EvalProtocol", protocol),  # an unknown name is refused there, with a suggestion
            on=cast("Part", on),
            k=k,
        )
    if result.users_left_out:
        output.say(f"{result.users_left_out:,} users have nothing in training or no new item here: left out.")
    numbers = result.metrics()
    output.show(
        {"protocol": protocol, "on": on, "k": k, "users": len(result.users), "metrics": numbers},
        Listing(
            f"{run}: {protocol}, {on}, k = {k}, {len(result.users):,} users",
            ("metric", "mean"),
            numbers.items(),
        ),
    )
