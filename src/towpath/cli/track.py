"""The tracker that --track asks for."""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from towpath.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from towpath.tracking import MlflowLogger


def tracker_of(
    name: str | None, uri: str | None, run_name: str
) -> "AbstractContextManager[MlflowLogger | None]":
    """A tracker to be entered; nothing where none is asked for."""
    if name is None:
        if uri is not None:
            raise ConfigError(
                "--track-uri says where a tracker keeps its runs; name one with --track mlflow."
            )
        return nullcontext()
    if name != "mlflow":
        raise unknown_name("tracker", name, ("mlflow",))
    from towpath.tracking import LOCAL_STORE, MlflowLogger

    return MlflowLogger(run_name=run_name, uri=uri or LOCAL_STORE)
