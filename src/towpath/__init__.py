"""Recommenders that learn from the log of an earlier recommender and are evaluated on what they will show.

>>> import towpath
>>> data = towpath.read("events.csv")                    # doctest: +SKIP
>>> split = towpath.split(data)                          # doctest: +SKIP
>>> model = towpath.fit(split, "mf", embedding_dim=32)   # doctest: +SKIP
>>> towpath.evaluate(model, split).metrics()["hit"]      # doctest: +SKIP

Each function mirrors a verb of the command line. Heavy libraries are imported when one is called.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from towpath.data.cleaning import Cleaning
    from towpath.data.columns import Columns
    from towpath.data.feature_kinds import FeatureFiles
    from towpath.data.frames import DataFrame
    from towpath.data.interactions import Interactions
    from towpath.data.meaning import Positive
    from towpath.data.sources import Encode, Reading
    from towpath.data.split import Part, Split
    from towpath.diagnostics.diagnose import Diagnosis
    from towpath.evaluation.comparison import Comparison
    from towpath.evaluation.evaluate import EvaluationOptions
    from towpath.evaluation.protocols import EvalProtocol
    from towpath.evaluation.result import Evaluation
    from towpath.experiments.tune import Tuned
    from towpath.memory import memory_limit
    from towpath.methods.method import Method
    from towpath.methods.recipe import Recipe
    from towpath.models.scorer import Scorer
    from towpath.serving.recommender import Recommender
    from towpath.training.fit import EpochMetrics, Fit

    __version__: str

__all__ = [
    "Cleaning", "Columns", "Comparison", "Diagnosis", "Evaluation", "EvaluationOptions", "FeatureFiles",
    "Fit", "Interactions", "Positive", "Reading", "Recipe", "Recommender", "Split", "Tuned", "__version__",
    "compare", "diagnose", "evaluate", "fit", "load", "memory_limit", "prepare", "read", "recommender",
    "refit", "save", "split", "tune",
]  # fmt: skip

SplitStrategy = Literal["leave-last-two", "time", "random"]
SPLIT_STRATEGIES = get_args(SplitStrategy)  # of splitting

# Where the types of the public functions and the limit of memory live; imported when first asked for.
_HOMES = {
    "Cleaning": "towpath.data.cleaning",
    "Columns": "towpath.data.columns",
    "Comparison": "towpath.evaluation.comparison",
    "Diagnosis": "towpath.diagnostics.diagnose",
    "Evaluation": "towpath.evaluation.result",
    "EvaluationOptions": "towpath.evaluation.evaluate",
    "FeatureFiles": "towpath.data.feature_kinds",
    "Fit": "towpath.training.fit",
    "Interactions": "towpath.data.interactions",
    "Positive": "towpath.data.meaning",
    "Reading": "towpath.data.sources",
    "Recipe": "towpath.methods.recipe",
    "Recommender": "towpath.serving.recommender",
    "Split": "towpath.data.split",
    "Tuned": "towpath.experiments.tune",
    "memory_limit": "towpath.memory",
}


def __getattr__(name: str) -> Any:  # a class of one of the modules above, or the version
    if name == "__version__":
        return import_module("importlib.metadata").version("towpath")
    if name not in _HOMES:
        raise AttributeError(f"module 'towpath' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def read(
    data: "str | Path | DataFrame",
    *,
    data_dir: str | Path | None = None,
    columns: "Columns | None" = None,
    positive: "str | Positive | None" = None,
    cleaning: "Cleaning | None" = None,
    features: "FeatureFiles | None" = None,
    engine: str = "duckdb",
) -> "Reading":
    """The events of a built-in dataset, file, glob, folder or data frame, with what was guessed and dropped.

    `positive` says which rows are positives where no column of labels does: a rule on the value such as
    ">=4", or `Positive(events=("cart", "purchase"))`. `.interactions` are the positives; where the log says
    what else was shown, their `.impressions` hold all of it. The `engine` reads and cleans: duckdb, spark
    (which also knows addresses such as s3a://…) or the address of a Spark master. The result is the same.
    """
    given = {"columns": columns, "cleaning": cleaning, "features": features, "data_dir": data_dir}
    return _read(data, {**given, "positive": positive, "engine": engine})


def _read(
    data: "str | Path | DataFrame", given: Mapping[str, Any], encode: "Encode | None" = None
) -> "Reading":
    """What is read with these arguments; those that are None are left to their defaults."""
    from towpath.data.meaning import Positive
    from towpath.data.sources import read

    arguments = {name: value for name, value in given.items() if value is not None}
    if "data_dir" in arguments:
        arguments["data_dir"] = Path(arguments["data_dir"])
    if isinstance(arguments.get("positive"), str):
        arguments["positive"] = Positive(arguments["positive"])
    return read(data, **arguments) if encode is None else read(data, **arguments, encode=encode)


def split(
    data: "Reading | Interactions",
    how: SplitStrategy = "leave-last-two",
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
    seed: int = 0,
    engine: str = "duckdb",
) -> "Split":
    """Training, validation and test parts; shares and seed matter to the splits that use them."""
    from towpath.data import split as splits
    from towpath.errors import unknown_name
    from towpath.rng import Rng

    rows = _events_of(data)
    if how == "leave-last-two":
        return splits.split_leave_last_two(rows, engine=engine)
    shares = {"validation_share": validation_share, "test_share": test_share}
    if how == "time":
        return splits.split_by_time(rows, **shares, engine=engine)
    if how == "random":
        return splits.split_at_random(rows, **shares, rng=Rng(seed), engine=engine)
    raise unknown_name("split", how, SPLIT_STRATEGIES)


def prepare(
    data: "str | Path | DataFrame",
    folder: str | Path,
    how: SplitStrategy = "leave-last-two",
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
    seed: int = 0,
    **reading: Any,
) -> "Split":
    """The split of data that may be larger than memory, made by the engine alone and kept in this folder.

    `reading` are the arguments of `read`, such as `engine="spark"`. The command `towpath fit` takes the
    folder, and so does `load_split` of `towpath.data.split`; large columns are then maps of files.
    """
    from functools import partial

    from towpath.data.prepared import SplitPlan, prepare
    from towpath.rng import Rng

    plan = SplitPlan(how, validation_share, test_share, Rng(seed))
    _, made = prepare(
        Path(folder),
        plan,
        partial(_read, data, reading),
        lambda found: {"source": found.source, "roles": dict(found.roles)},
    )
    return made


def fit(
    split: "Split",
    model: "str | type[Scorer]" = "mf",
    method: "str | Method[Any]" = "plain",
    seed: int = 0,
    device: str = "cpu",
    on_epoch: "Callable[[EpochMetrics], None] | None" = None,
    **settings: Any,
) -> "Fit":
    """A trained model; `settings` are those of the model, the fit loop and the method, as in --set.

    `on_epoch` is called with the numbers of every epoch, such as a `towpath.tracking.MlflowLogger`.
    Model and method are names, or a class that extends Scorer and a Method of your own.
    """
    from towpath.methods.recipe import Recipe
    from towpath.methods.run import fit

    recipe = Recipe(model, method, settings, seed, device).suited_to(split.train)
    return fit(split, recipe, watch=on_epoch)


def evaluate(
    model: "Fit | Recommender | Scorer",
    split: "Split",
    *,
    protocol: "EvalProtocol" = "full",
    on: "Part" = "test",
    k: int | Sequence[int] = 10,
    test: "Reading | Interactions | None" = None,
    candidates: "Reading | Interactions | None" = None,
    options: "EvaluationOptions | None" = None,
    device: str | None = None,
) -> "Evaluation":
    """Per-user values of every metric under a named protocol; `.metrics()` takes the means.

    `test` are events from outside to evaluate on instead of the split's own part; rows of users and items
    that do not occur in training are left out. With `candidates`, each user's targets are ranked among the
    items that it has for the user, whatever the protocol. `options` are what some protocols need besides:
    values as gains, the chances that positions are looked at. With a device the model is moved there first;
    otherwise it is evaluated where it is. The model is a fit, what `load` gives, or a scorer.
    """
    from towpath.data.outside import align, with_test
    from towpath.device import device_named
    from towpath.evaluation.evaluate import EvaluationOptions, evaluate, evaluate_candidates
    from towpath.serving.evaluated import scorer_to_evaluate

    scorer = scorer_to_evaluate(model, split, outside=test is not None)
    if device is not None:
        scorer.to(device_named(device))
    if test is not None:
        split = with_test(split, align(_events_of(test), split.train)[0])
    if candidates is not None:
        listed = align(_events_of(candidates), split.train)[0]
        return evaluate_candidates(scorer, split, listed, on=on, k=k)
    return evaluate(scorer, split, protocol=protocol, on=on, k=k, options=options or EvaluationOptions())


def _events_of(data: "Reading | Interactions") -> "Interactions":
    from towpath.data.sources import Reading

    return data.interactions if isinstance(data, Reading) else data


def compare(
    split: "Split",
    recipes: "Mapping[str, Recipe]",
    *,
    seeds: Sequence[int] = (0, 1, 2),
    protocols: "Sequence[EvalProtocol]" = ("full",),
    k: int = 10,
) -> "Comparison":
    """Means over seeds, and differences to the first recipe, paired by user and seed, with 95 % intervals."""
    from towpath.experiments.compare import compare_fits
    from towpath.experiments.run_result import EvaluationConfig

    return compare_fits(split, recipes, seeds=seeds, evaluation=EvaluationConfig(protocols=protocols, k=k))


def tune(
    split: "Split",
    recipe: "Recipe",
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: Sequence[int] = (0,),
    folder: str | Path | None = None,
) -> "Tuned":
    """The settings with which validation is best, searched one after the other; `.recipe` has them.

    Without a grid the published one of the model and the method is searched. With a folder every trial is
    kept there as soon as it is done, and the same call again goes on.
    """
    from towpath.experiments.pool import Work
    from towpath.experiments.tune import Tuning, tune

    kept = None if folder is None else Path(folder)
    return tune(split, Tuning(recipe, grid or {}, seeds), work=Work(folder=kept))


def diagnose(model: "Fit | Scorer", split: "Split", *, k: int = 10) -> "Diagnosis":
    """How much of what the model would show the held-out part of the log has seen, and what follows."""
    from towpath.diagnostics.diagnose import diagnose
    from towpath.training.fit import Fit

    return diagnose(model.scorer if isinstance(model, Fit) else model, split, k=k)


def refit(model: "Fit | str | Path", split: "Split | None" = None) -> "Fit":
    """The same recipe trained on all parts of the split, for the epochs that validation chose.

    The model is a fit, with the split that it was made from, or a run folder. A test part that came from a
    file is not trained on. Save it or recommend from it with the same split.
    """
    from towpath.serving.production import refit

    return refit(model, split)


def recommender(model: "Fit", split: "Split") -> "Recommender":
    """Recommendations out of a fit, without saving it."""
    from towpath.serving.artifact import artifact_of
    from towpath.serving.recommender import Recommender

    return Recommender(artifact_of(model, split, keep_shown=True))


def save(model: "Fit", split: "Split", folder: str | Path, *, keep_shown: bool = False) -> None:
    """An artifact folder that `load` and the command line can serve from, without the training data.

    With `keep_shown` it also holds what users were shown, for recommending with `filter_shown=True`.
    """
    from towpath.serving.artifact import artifact_of, save_artifact

    save_artifact(artifact_of(model, split, keep_shown=keep_shown), Path(folder))


def load(folder: str | Path, *, models: "Sequence[type[Scorer]]" = (), device: str = "cpu") -> "Recommender":
    """The recommender of a run or artifact folder, once every byte of it has been checked.

    Its model must be registered, or be one of the classes `models`; a folder's word alone imports nothing.
    It may have been trained on another device than it scores on.
    """
    from towpath.serving.recommender import load

    return load(folder, models, device)
