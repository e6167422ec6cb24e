"""Fits in an experiment tracker: parameters, metrics by epoch, and the model.

with MlflowLogger(experiment="shop") as logger:
    fit = towpath.fit(split, "mf", on_epoch=logger)
    logger.log_fit(fit)
    logger.log_folder(folder)
"""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.training.fit import EpochMetrics, Fit

# A file in the working directory: no server is needed. MLflow no longer takes plain folders.
LOCAL_STORE = "sqlite:///mlflow.db"


class MlflowLogger:
    """One run of MLflow, from `with` to its end; an error inside marks it as failed.

    Called with the row of an epoch, it logs its numbers at that step. `uri` says where: a local SQLite file
    unless given, or the address of a server.
    """

    def __init__(
        self, *, experiment: str = "towpath", run_name: str | None = None, uri: str = LOCAL_STORE
    ) -> None:
        self._mlflow = _import_mlflow()
        self._experiment, self._run_name, self._uri = experiment, run_name, uri

    def __enter__(self) -> "MlflowLogger":
        self._mlflow.set_tracking_uri(self._uri)
        self._mlflow.set_experiment(self._experiment)
        self._mlflow.start_run(run_name=self._run_name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mlflow.end_run(status="FINISHED" if kind is None else "FAILED")

    def __call__(self, row: EpochMetrics) -> None:
        """Log the numbers of one epoch."""
        numbers = {name: value for name, value in row.items() if name != "epoch"}
        self._mlflow.log_metrics(numbers, step=int(row["epoch"]))

    def log_parameters(self, parameters: Mapping[str, Any]) -> None:  # values of any type
        """Log what the fit depends on; settings within a setting get names such as `settings.epochs`."""
        self._mlflow.log_params(flat(parameters))

    def log_recipe(self, recipe: Recipe) -> None:
        """Log model, method, seed and every setting as it was resolved."""
        self.log_parameters(recipe.resolved())

    def log_fit(self, fit: Fit) -> None:
        """Log the recipe of a fit that is done, and how it ended."""
        if isinstance(fit.recipe, Recipe):
            self.log_recipe(fit.recipe)
        self._mlflow.log_metrics({"best_epoch": float(fit.best_epoch)})
        self._mlflow.set_tag("stopped_because", fit.stopped_because)

    def log_folder(self, folder: str | Path, name: str = "model") -> None:
        """Keep a folder, such as the artifact of a run, with the run of MLflow."""
        self._mlflow.log_artifacts(str(folder), artifact_path=name)


def flat(parameters: Mapping[str, Any]) -> dict[str, Any]:  # values of any type
    """Settings in one level.

    >>> flat({"model": "mf", "settings": {"epochs": 5}})
    {'model': 'mf', 'settings.epochs': 5}
    """
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        found |= (
            {f"{name}.{k}": v for k, v in flat(value).items()}
            if isinstance(value, Mapping)
            else {name: value}
        )
    return found


def _import_mlflow() -> Any:  # a module that need not be there
    try:
        import mlflow
    except ImportError:
        raise ConfigError(
            "Tracking needs the library mlflow, which is not installed: pip install 'towpath[tracking]'."
        ) from None
    return mlflow
