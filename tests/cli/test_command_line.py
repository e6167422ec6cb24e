"""Options are printed as the words that give them again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.command_line import option_words
from towpath.cli.options import Preparation, Training


@dataclass(frozen=True)
class Options:
    """One of each kind."""

    data_dir: Annotated[Path | None, typer.Option()] = None
    feature: Annotated[list[str] | None, typer.Option()] = None
    columns: Annotated[str, typer.Option("--column", "--columns")] = "all"
    quick: Annotated[bool, typer.Option()] = False
    header: Annotated[bool, typer.Option()] = True
    share: Annotated[float, typer.Option("--share", "-s")] = 0.1


def test_defaults_are_left_out() -> None:
    assert option_words(Options()) == []
    assert option_words(Preparation()) == []


def test_every_kind_of_option_is_given_as_typer_declares_it() -> None:
    options = Options(Path("my data"), ["a=numeric", "b=skip"], "one", True, False, 0.25)
    assert option_words(options) == [
        "--data-dir", "my data", "--feature", "a=numeric", "--feature", "b=skip", "--column", "one",
        "--quick", "--no-header", "--share", "0.25",
    ]  # fmt: skip


def test_what_is_left_out_is_left_out() -> None:
    assert option_words(Training(["l2=1"], 2), leave_out={"set"}) == ["--threads", "2"]
