"""towpath log: the exposure log of a server as training data, and the deletion of a user from it."""

from pathlib import Path
from typing import Annotated

import typer

from towpath.cli.experiment import LogPlace
from towpath.cli.groups import spread
from towpath.cli.output import Listing, Output

Out = Annotated[
    Path, typer.Option(metavar="FILE.parquet", help="The file to write; as CSV if it ends in .csv.")
]
User = Annotated[str, typer.Option(help="The user's own id.", show_default=False)]


def export(log: LogPlace, out: Out, output: Output) -> None:
    """Write every item that was shown, with clicks and orders, as a file that towpath fit reads."""
    from towpath.data.table_files import refuse_unknown_ending
    from towpath.serving.exposure_log.export import export_log
    from towpath.serving.exposure_log.read import read_log

    refuse_unknown_ending(out)
    with output.working(f"Reading {log}"):
        found = export_log(read_log(log), out)
    told = {"file": str(out), **vars(found)}
    rows = [(name.replace("_", " "), value) for name, value in told.items()]
    output.show(told, Listing("Exported", ("", ""), rows))
    if found.outcomes_without_exposure:
        output.say(
            f"Clicks and orders without a row, because their request is not in the log or did not show the "
            f"item: {found.outcomes_without_exposure:,}."
        )


def forget(log: LogPlace, user: User, output: Output) -> None:
    """Delete all that the log has of a user: requests, slates, clicks and orders."""
    from towpath.serving.exposure_log.read import files_of
    from towpath.serving.exposure_log.sqlite import delete_user
    from towpath.serving.exposure_log.store import LogSettings

    if LogSettings(log).in_postgresql:
        from towpath.serving.exposure_log.postgresql import delete_user_in_postgresql

        deleted = delete_user_in_postgresql(log, user)
    else:
        deleted = delete_user(files_of(Path(log)), user)
    output.show({"user": user, "requests": deleted}, Listing("Deleted", ("requests",), [(deleted,)]))


log_app = typer.Typer(help="The exposure log of a server.")
log_app.command("export")(spread(export))
log_app.command("forget")(spread(forget))
