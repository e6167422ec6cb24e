"""towpath compare: several models or methods on the same split and seeds, as paired differences."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.options import Data, HowMany, Preparation, Training, names_in, parse_settings, seeds_in
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import read_data, split_data, use_threads
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.methods.recipe import Recipe


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, how often, and by which numbers."""

    models: Annotated[
        str, typer.Option("--models", "--model", help="One or more, with commas; the first is the baseline.")
    ] = "mf"
    methods: Annotated[
        str,
        typer.Option("--methods", "--method", help="One or more, with commas; the first is the baseline."),
    ] = "plain"
    seeds: Annotated[str, typer.Option(help="How many (3: seeds 0, 1, 2) or which (100,101).")] = "3"
    protocols: Annotated[
        str, typer.Option("--protocol", "--protocols", help="One or more of full, sampled, paper.")
    ] = "full"
    k: HowMany = 10


def compare(
    data: Data, options: CompareOptions, training: Training, prepare: Preparation, output: Output
) -> None:
    """Compare models or methods: means over seeds, and paired differences with 95 % intervals.

    --set KEY=VALUE holds for all; --set mf.KEY=VALUE for one model or method.
    """
    use_threads(training.threads)
    raise NotImplementedError
