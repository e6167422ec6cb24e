"""All experiments by name."""

from towpath.errors import unknown_name
from towpath.experiments.paper.experiment import Experiment
from towpath.experiments.paper.figures import FIGURES
from towpath.experiments.paper.tables import TABLES

EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in (*TABLES, *FIGURES)}
ALL = "all"


def experiment_named(name: str) -> Experiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        raise unknown_name("table or figure", name, EXPERIMENTS)
    return EXPERIMENTS[name]
