"""towpath tune: the settings with which validation is best."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from towpath.cli.command_line import command_text, option_words
from towpath.cli.options import (
    Data,
    Jobs,
    Preparation,
    Training,
    parse_grid,
    parse_settings,
    seeds_in,
    set_words,
)
from towpath.cli.output import Interrupted, Listing, Output, stopped
from towpath.cli.prepare import read_data, record_of, split_data, use_threads
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.experiments.trials import Trial
    from towpath.experiments.tune import Candidate, Metric, SearchStrategy, Tuned, Tuning

_SHOWN = 10  # candidates that people see; trials.md has them all


@dataclass(frozen=True)
class TuneOptions:
    """What is searched, how, and where results are stored."""

    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the search; run again to resume.")]
    model: Annotated[str, typer.Option(help="The model, as in towpath fit.")] = "mf"
    method: Annotated[str, typer.Option(help="How it is trained, as in towpath fit.")] = "plain"
    search: Annotated[
        str, typer.Option(help="coordinate: one setting after the other; optuna: pip install towpath[tune].")
    ] = "coordinate"
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,VALUE", help="Search this instead of the published grid; repeat for more."
        ),
    ] = None
    trials: Annotated[
        int | None, typer.Option(min=1, help="Most candidates; optuna 40 unless set, coordinate no limit.")
    ] = None
    budget: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            metavar="MINUTES",
            help="Search by successive halving until so many minutes of training and validation are spent.",
        ),
    ] = None
    rounds: Annotated[int, typer.Option(min=1, help="Most rounds over all settings (coordinate).")] = 3
    metric: Annotated[str, typer.Option(help="Maximise hit or ndcg, at 10, on validation, full ranking.")] = (
        "hit"
    )
    seeds: Annotated[str, typer.Option(help="Seeds of every candidate: how many (3) or which (100,101).")] = (
        "1"
    )
    jobs: Jobs = 1


def tune(data: Data, options: TuneOptions, training: Training, prepare: Preparation, output: Output) -> None:
    """Search for the settings with which validation is best; the test part is never looked at.

    --set KEY=VALUE keeps a setting as it is, or says where the search of it starts if --grid names it too.
    """
    use_threads(training.threads)
    limit_memory(training.memory)
    from towpath.experiments.trials import refuse_other_folder, stored_trials

    tuning = _tuning(options, parse_settings(training.set), training.device)
    refuse_other_folder(options.out)
    stored = len(stored_trials(options.out))
    if stored:
        are = "trial is" if stored == 1 else "trials are"
        output.say(f"{stored:,} {are} stored in {options.out}; no trial is repeated.")
    try:
        tuned = _search(data, tuning, options, prepare, output)
    except KeyboardInterrupt:
        raise Interrupted(stopped(options.out)) from None
    prepared = [*option_words(prepare), *option_words(training, leave_out={"set"})]
    commands = _commands(
        tuned, [data, "--model", options.model, "--method", options.method, *prepared], options
    )
    _show(tuned, commands, options, output)


def _tuning(options: TuneOptions, settings: dict[str, Any], device: str) -> "Tuning":
    from towpath.device import device_named
    from towpath.experiments.tune import Tuning
    from towpath.methods.recipe import Recipe

    device_named(device)  # said before any data are read
    return Tuning(
        recipe=Recipe(options.model, options.method, settings, device=device),
        grid=parse_grid(options.grid),
        seeds=seeds_in(options.seeds),
        metric=cast("Metric", options.metric),  # checked there, as the next
        search=cast("SearchStrategy", options.search),
        rounds=options.rounds,
        trials=options.trials,
        budget=options.budget,
    )


def _search(
    data: str, tuning: "Tuning", options: TuneOptions, prepare: Preparation, output: Output
) -> "Tuned":
    from towpath.experiments.pool import Work
    from towpath.experiments.tune import tune

    reading = read_data(data, prepare, output)
    split = split_data(reading.interactions, prepare)
    names = ", ".join(f"{name} ({len(values)})" for name, values in tuning.searched.items())
    output.say(f"Searching {names} for {options.model} by {options.method}")
    with output.progress("Searching", None) as step:

        def on_result(trial: "Trial") -> None:
            step(_line(trial, tuning))

        work = Work(jobs=options.jobs, folder=options.out, on_result=on_result)
        return tune(split, tuning, work=work, origin=record_of(reading, prepare))


def _line(trial: "Trial", tuning: "Tuning") -> str:
    tried = "  ".join(f"{name} {trial.settings[name]}" for name in tuning.searched)
    if trial.failed is not None:
        return f"{tried}, seed {trial.seed}: failed, {trial.failed}"
    score = f"{tuning.metric} {trial.metrics[tuning.metric]:.4f}"
    return f"{tried}, seed {trial.seed}: {score}, {trial.epochs} epochs, {trial.seconds:.1f} s"


def _commands(tuned: "Tuned", words: list[str], options: TuneOptions) -> dict[str, str]:
    """The commands that use the best settings on the same data and split, by verb."""
    settings = set_words(tuned.recipe.settings)
    fit = f"{command_text('towpath', 'fit', *words)} {settings} --out RUN"
    compare = command_text("towpath", "compare", *words, "--tuned", str(options.out))
    return {"fit": fit, "compare": compare}


def _show(tuned: "Tuned", commands: dict[str, str], options: TuneOptions, output: Output) -> None:
    from towpath.files import write_text

    words = set_words(tuned.recipe.settings)
    rows = [_summary(candidate, tuned) for candidate in tuned.ranked]
    about = _title(tuned)
    write_text(options.out / "trials.md", _table(about, rows, tuned).markdown())
    ends = tuned.at_the_end()
    if ends:
        output.say(f"At the end of the grid: {', '.join(ends)}; try values beyond it with --grid.")
    if options.budget is not None:
        output.say(_spent(tuned, options, options.budget))
    title = f"{about}\nBest: {words}\nUse it: {commands['fit']}\n        {commands['compare']}\n"
    result = {
        "folder": str(options.out),
        **tuned.record(),
        "words": words,
        "at_the_end": ends,
        "commands": commands,
        "candidates": rows,
    }
    output.show(result, _short(title, rows[:_SHOWN], tuned))


def _spent(tuned: "Tuned", options: TuneOptions, budget: float) -> str:
    """What became of the budget, and how to go on."""
    spent = tuned.minutes / options.jobs
    said = f"{spent:.1f} minutes of training and validation were spent, for a budget of {budget:g}"
    if spent < budget:
        return f"{said}: the whole grid was tried."
    tried = "; only the start was tried" if len(tuned.candidates) == 1 else ""
    return f"{said}{tried}. To continue the search, run again with a larger --budget."


def _summary(candidate: "Candidate", tuned: "Tuned") -> dict[str, Any]:  # a JSON object
    """A candidate with its means over seeds; None where it could not be trained."""
    means = {metric: candidate.mean(metric) for metric in ("hit", "ndcg")}
    trials = candidate.trials
    return {
        **candidate.values,
        **{metric: value if math.isfinite(value) else None for metric, value in means.items()},
        "epochs": sum(trial.epochs for trial in trials) / max(1, len(trials)),
        "seconds": sum(trial.seconds for trial in trials),
        "cut_short": tuned.is_cut_short(candidate),
        "failed": candidate.failed,
    }


def _title(tuned: "Tuned") -> str:
    recipe, seeds, tried = tuned.recipe, len(tuned.best.trials), len(tuned.candidates)
    each = "one seed" if seeds == 1 else f"{seeds} seeds"
    candidates = "candidate" if tried == 1 else "candidates"
    if cut := sum(tuned.is_cut_short(candidate) for candidate in tuned.candidates):
        candidates = f"{candidates} ({cut:,} cut short)"
    return (
        f"{recipe.model_name} by {recipe.method_name}: {tried:,} {candidates}, {each} each, "
        f"by validation {tuned.tuning.metric}@10 (full)"
    )


def _table(title: str, rows: list[dict[str, Any]], tuned: "Tuned") -> Listing:
    """All candidates with a column for each setting; what went wrong only if something did."""
    rare = ("cut_short", "failed")
    columns = [name for name in rows[0] if name not in rare or any(row[name] for row in rows)]
    # A setting is shown as it is typed: rounded, two of them could look the same.
    typed = tuned.tuning.searched
    cells = [[str(row[name]) if name in typed else row[name] for name in columns] for row in rows]
    return Listing(title, columns, cells)


def _short(title: str, rows: list[dict[str, Any]], tuned: "Tuned") -> Listing:
    """The best candidates, with their settings in one column, narrow enough for a terminal."""
    cells = [
        (
            row["hit"],
            row["ndcg"],
            round(row["epochs"]),
            round(row["seconds"]),
            row["failed"] or _in_words(row, tuned),
        )
        for row in rows
    ]
    return Listing(title, ("hit", "ndcg", "epochs", "seconds", "settings"), cells)


def _in_words(row: dict[str, Any], tuned: "Tuned") -> str:
    """The settings of a candidate, and whether it had all of its epochs."""
    settings = " ".join(f"{name}={row[name]}" for name in tuned.tuning.searched)
    return f"{settings} (cut short)" if row["cut_short"] else settings
