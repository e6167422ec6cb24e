"""All verbs in one place; the module of one is imported when it is asked for."""

from importlib import import_module

import typer

from towpath.cli.groups import spread

GROUPS = ("data", "simulate", "paper", "log")
# Verbs in the order of the help, and the module that each is in.
VERBS = {
    "demo": "demo",
    "fit": "fit",
    "evaluate": "evaluate",
    "compare": "compare",
    "sweep": "sweep",
    "tune": "tune",
    "report": "report",
    "refit": "production",
    "update": "production",
    "export": "export",
    "recommend": "recommend",
    "similar": "recommend",
    "diagnose": "diagnose",
    "ope": "ope",
    "serve": "serve",
    "experiment": "experiment",
}


def app_with(name: str | None = None) -> typer.Typer:
    """The command line with this verb or group alone; with all of them if there is none of this name.

    Importing all takes longer than a small command.
    """
    app = typer.Typer(
        name="towpath", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )
    for group in (name,) if name in GROUPS else () if name in VERBS else GROUPS:
        app.add_typer(getattr(import_module(f"towpath.cli.{group}"), f"{group}_app"), name=group)
    for verb in (name,) if name in VERBS else () if name in GROUPS else VERBS:
        app.command()(spread(getattr(import_module(f"towpath.cli.{VERBS[verb]}"), verb)))
    app.callback(invoke_without_command=True)(towpath)
    return app


def towpath(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
) -> None:
    """Train, evaluate and compare recommenders from event logs."""
    if version:
        from towpath import __version__

        typer.echo(f"towpath {__version__}")
        raise typer.Exit
