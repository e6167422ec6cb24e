"""towpath fit: from data to a run folder with a model in it."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.epochs import EpochLines
from towpath.cli.options import Data, Preparation, Training, parse_settings
from towpath.cli.output import Interrupted, Listing, Output
from towpath.cli.outside import read_outside
from towpath.cli.prepare import read_data, record_of, split_data, use_threads
from towpath.cli.track import tracker_of
from towpath.errors import ConfigError, unknown_name
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.data.split import Split
    from towpath.methods.recipe import Recipe
    from towpath.serving.run import Plan, Run
    from towpath.tracking import MlflowLogger
    from towpath.training.fit import EpochMetrics, Fit


TABLES = ("auto", "copied", "sharded")


@dataclass(frozen=True)
class FitOptions:
    """What to fit, and where to put it."""

    out: Annotated[Path, typer.Option(metavar="RUN", help="The folder to make.", show_default=False)]
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "--f",
            help="The model, the f of a transport game: popularity, ease, mf, gmf, mlp, ncf, sgns, "
            "wide_deep or attention.",
        ),
    ] = "mf"
    method: Annotated[
        str,
        typer.Option(
            help="How it is trained: plain, transport, ipw, expomf, adversarial, doubly-robust or "
            "causal-embedding; on a log of impressions also shown, imitation, esmm, escm2 or conservative; "
            "with propensities bandit-ips, bandit-snips, poem, norm-poem, bandit-dm or bandit-dr."
        ),
    ] = "plain"
    w: Annotated[
        str | None, typer.Option("--w", metavar="MODEL", help="Transport: the model that weights pairs.")
    ] = None
    g: Annotated[
        str | None,
        typer.Option("--g", metavar="MODEL", help="Transport: the critic; adversarial: the adversary."),
    ] = None
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="Events to validate on, instead of a part of DATA.")
    ] = None
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Events to test on, instead of a part of DATA.")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random numbers.")] = 0
    track: Annotated[
        str | None,
        typer.Option(
            metavar="mlflow", help="Log parameters, metrics by epoch and the model to this tracker."
        ),
    ] = None
    track_uri: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Where the tracker keeps it; sqlite:///mlflow.db unless given."),
    ] = None
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            help="Processes that train together: on this machine, or with --engine spark://… on the workers "
            "of that cluster. 0 sets up the run and leaves it to torchrun.",
        ),
    ] = 1
    tables: Annotated[
        str,
        typer.Option(
            metavar="auto|copied|sharded",
            help="What several workers do with the vectors of users and items: each has a copy, or each has "
            "some of the rows. auto: sharded if copies would not fit in the memory of a worker (--memory).",
        ),
    ] = "auto"
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume the run in this folder; recipe and data must be the same."),
    ] = False


def fit(data: Data, options: FitOptions, training: Training, prepare: Preparation, output: Output) -> None:
    """Train a model and write it, with its split and history, to a run folder."""
    use_threads(training.threads)
    limit_memory(training.memory)
    from towpath.methods.recipe import Recipe
    from towpath.serving.run import open_run, refuse_existing, removed_if_it_fails

    settings = _with_players(parse_settings(training.set), options)
    recipe = Recipe(options.model, options.method, settings, options.seed, training.device)
    if options.workers != 1:
        _refuse_alone(options)
    recipe.resolve()  # a wrong setting is said before the data are read, which may take long
    refuse_existing(options.out, resume=options.resume)
    tracker_of(options.track, options.track_uri, str(options.out))  # so is a tracker that is not there
    try:
        plan = _with_tables(_plan(data, recipe, options, prepare, output), options)
        with removed_if_it_fails(options.out):
            run = open_run(options.out, plan, resume=options.resume)
            if run.finished:
                output.say(f"{run.folder} is finished already; nothing is left to do.")
            else:
                with tracker_of(options.track, options.track_uri, str(options.out)) as tracker:
                    if options.workers == 1 and not run.sharded:
                        _train(run, plan, output, tracker)
                    else:
                        _train_together(run, options, prepare.engine, output)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_go_on(options.out)) from None
    if run.finished:
        _show(run, output)


def _with_players(settings: dict[str, Any], options: FitOptions) -> dict[str, Any]:
    """The settings, with those that --w and --g stand for; values are whatever --set gave."""
    from towpath.methods.registry import method_named
    from towpath.models.registry import refuse_untrainable

    named = {player: name for player in "wg" if (name := getattr(options, player)) is not None}
    if not named:
        return settings
    for player, name in named.items():
        if player not in method_named(options.method).players:
            raise ConfigError(
                f"--{player} names the model of a player next to f, and the method {options.method!r} has no "
                f"player {player}; add --method transport, or leave it out."
            )
        if settings.get(player, name) != name:
            raise ConfigError(
                f"--{player} {name} and --set {player}={settings[player]} disagree; leave one of them out."
            )
        refuse_untrainable(name, f"--{player}")
    return settings | named


def _plan(data: str, recipe: "Recipe", options: FitOptions, prepare: Preparation, output: Output) -> "Plan":
    from towpath.data.features import unseen_values
    from towpath.data.split import is_split, split_with_files
    from towpath.serving.run import Plan

    if is_split(Path(data)):
        return _plan_of_split(Path(data), recipe, options, prepare, output)
    reading = read_data(data, prepare, output)
    record = record_of(reading, prepare)
    files = {part: file for part in ("validation", "test") if (file := getattr(options, part)) is not None}
    outside = {
        part: read_outside(file, reading.interactions, prepare, record, output)
        for part, file in files.items()
    }
    with output.working("Splitting"):
        split = split_with_files(reading.interactions, lambda rows: split_data(rows, prepare), **outside)
    _say_sizes(split, output)
    for sentence in unseen_values(split.train.user_features, split.train.item_features):
        output.say(sentence)
    return Plan(split, recipe.suited_to(split.train), {**record, **files})


def _say_sizes(split: "Split", output: Output) -> None:
    output.say(
        f"{split.description}: {len(split.train):,} training, {len(split.validation):,} validation and "
        f"{len(split.test):,} test rows of {split.train.n_users:,} users and {split.train.n_items:,} items"
    )


def _plan_of_split(
    folder: Path, recipe: "Recipe", options: FitOptions, prepare: Preparation, output: Output
) -> "Plan":
    """The plan for a split that towpath data prepare wrote, which says itself how it was prepared."""
    from towpath.data.split import load_split, preparation_of
    from towpath.serving.run import Plan

    given = [field.name for field in fields(prepare) if getattr(prepare, field.name) != field.default]
    given = [name for name in given if name not in ("data_dir", "engine")]
    given += [part for part in ("validation", "test") if getattr(options, part) is not None]
    if given:
        raise ConfigError(
            f"{folder} is a split already, which --{given[0].replace('_', '-')} cannot change; leave it out, "
            "or give it to towpath data prepare."
        )
    with output.working(f"Reading {folder}"):
        split = load_split(folder)
    _say_sizes(split, output)
    return Plan(split, recipe.suited_to(split.train), preparation_of(folder))


def _train(run: "Run", plan: "Plan", output: Output, tracker: "MlflowLogger | None") -> "Fit":
    done = len(run.history)
    if done:
        output.say(f"Resuming after epoch {done}.")
    with output.working(f"Fitting {plan.recipe.model} by {plan.recipe.method}"):
        lines = EpochLines()

        def watch(row: "EpochMetrics") -> None:
            for line in lines(row):
                output.say(line)
            if tracker is not None:
                tracker(row)

        fitted = run.train(plan, watch=watch)
    if tracker is not None:
        tracker.log_fit(fitted)
        tracker.log_folder(run.folder / "artifact")
    for remark in fitted.scorer.remarks:
        output.say(remark)
    return fitted


def _refuse_alone(options: FitOptions) -> None:
    """Nothing, unless something was asked for that only one process does."""
    from towpath.serving.together import refuse_other_methods

    refuse_other_methods(options.method)
    if options.tables not in TABLES:
        raise unknown_name("way to hold tables", options.tables, TABLES)
    if options.track is not None:
        raise ConfigError("--track follows a fit in this process; leave --workers or --track out.")


def _with_tables(plan: "Plan", options: FitOptions) -> "Plan":
    """The plan with what the workers do with the tables; one process has them all."""
    from towpath.serving.together import refuse_unshared, tables_for

    if options.workers == 1:
        return plan
    refuse_unshared(plan.recipe, plan.split)
    return replace(plan, tables=tables_for(options.tables, plan.recipe, plan.split, options.workers))


def _train_together(run: "Run", options: FitOptions, engine: str, output: Output) -> None:
    """Have the run trained by several processes, or say how to start them."""
    from towpath.data.engine import is_spark
    from towpath.serving.together import train_by_spark, train_here

    if options.workers == 0:
        output.say(f"{run.folder} is set up; start torchrun … -m towpath.serving.together {run.folder}")
        return
    if run.sharded:
        output.say("The rows of users and items are spread over the workers.")
    with output.working(f"Fitting by {options.workers} workers"):
        if is_spark(engine):
            train_by_spark(run.folder, options.workers, engine)
        else:
            train_here(run.folder, options.workers)
    lines = EpochLines()
    for row in run.history:
        for line in lines(row):
            output.say(line)


def _how_to_go_on(folder: Path) -> str:
    if (folder / "run.json").is_file():
        return (
            f"Stopped; to resume after the last complete epoch, run the same command with --resume "
            f"({folder} is kept)."
        )
    return "Stopped before the run was set up; nothing was written."


def _show(run: "Run", output: Output) -> None:
    about = run.artifact.about
    result: dict[str, Any] = {  # any JSON
        "run": str(run.folder),
        "artifact": str(run.folder / "artifact"),
        **{key: about["recipe"][key] for key in ("model", "method", "seed", "settings")},
        **about["sizes"],
        "epochs": len(run.history),
        **{key: about[key] for key in ("best_epoch", "stopped_because", "metrics")},
        "fingerprint": about["data"]["fingerprint"],
        **({"dial": about["dial"]} if "dial" in about else {}),
    }
    # Of what the method watched people have seen the lines; what it comes to is validation.
    facts = {**result, **{k: v for k, v in result["metrics"].items() if k.startswith("validation")}}
    facts |= result.get("dial", {})  # where it stands between its own way (0) and what was shown before (1)
    rows = [(name, value) for name, value in facts.items() if not isinstance(value, dict)]
    output.show(result, Listing(f"{result['model']} by {result['method']}", ("", ""), rows))
