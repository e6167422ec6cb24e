"""towpath report: one page about a run, from its own files."""

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.options import HowMany, Preparation, RunFolder, set_words
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import read_data, split_data, use_threads

if TYPE_CHECKING:
    from towpath.reports.run_facts import RunFacts
    from towpath.serving.facts import Gaps
    from towpath.serving.run import Run


@dataclass(frozen=True)
class ReportOptions:
    """Where the page goes and what it looks at besides the run."""

    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page; report.html in RUN by default.", show_default=False),
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Another run on the same split to compare with, such as plain training."
        ),
    ] = None
    data_dir: Annotated[
        Path | None, typer.Option(envvar="TOWPATH_DATA", help="Where local copies of built-in datasets lie.")
    ] = None
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Read the data again to see if they have changed.")
    ] = True
    k: HowMany = 10


def report(run: RunFolder, options: ReportOptions, output: Output) -> None:
    """Write a page about a run: data, training, metrics, weights, lists, warnings, how to make it again."""
    use_threads(1)
    from towpath.files import refuse_unwritable
    from towpath.reports.page import write_page
    from towpath.reports.run_page import run_page
    from towpath.serving.facts import refuse_other_data
    from towpath.serving.run import Run

    opened = Run(run)
    against = None if options.against is None else Run(options.against)
    if against is not None:
        refuse_other_data(opened, against)
        _ = against.artifact  # one that has not finished is said before the work begins
    page = options.out or run / "report.html"
    refuse_unwritable(page)
    facts = _gather(opened, against, options, output)
    write_page(run_page(facts), page)
    _show(facts, page, output)


def _gather(run: "Run", against: "Run | None", options: ReportOptions, output: Output) -> "RunFacts":
    """All facts that can be found; the others are listed with the reason."""
    from towpath.reports.run_facts import RunFacts
    from towpath.serving import facts as told

    gaps = told.Gaps()
    known: dict[str, Any] = {"history": [], "steps": told.steps_of(run), "command": _command(run)}  # RunFacts
    with gaps.around("the course of training"):
        known["history"] = run.history
    if options.check:
        known |= _checked(run, options, gaps, output)
    with gaps.around("the parts of the data, and all that is computed from them"):
        known["split"] = run.split
    with gaps.around("how good the model is and what it recommends"):
        known["outcome"] = told.outcome_of(run)
        known |= _evaluated(run, against, options.k, gaps, output) if "split" in known else {}
    return RunFacts(name=run.folder.resolve().name, record=run.record, gaps=tuple(gaps.found), **known)


def _evaluated(
    run: "Run", against: "Run | None", k: int, gaps: "Gaps", output: Output
) -> dict[str, Any]:  # parts of RunFacts
    """What takes the model and the split."""
    from towpath.serving import facts as told

    known: dict[str, Any] = {}
    models = told.rivals_of(run, run.split, against)
    with output.working(f"Evaluating {run.folder}"):
        known["evaluated"] = told.assess(models, run.split, k, gaps)
    with output.working("Making everyone's lists"), gaps.around("what it recommends"):
        known["recommended"] = told.recommend_all(models, run.split, k)
    with output.working("Looking at the evidence"), gaps.around("what the log has seen of its lists"):
        known["vouched"] = told.vouch_for_models(models, run.split, k)
    with output.working("Looking at the weights"), gaps.around("the weights"):
        known["weights"] = told.weights_of(run, run.split)
    return known


def _checked(run: "Run", options: ReportOptions, gaps: "Gaps", output: Output) -> dict[str, Any]:
    """What reading the data again tells: what cleaning drops, and whether they are still the same."""
    found: dict[str, Any] = {}  # parts of RunFacts
    with gaps.around("whether the data are still the same"):
        prepare = _preparation(run, options.data_dir)
        with output.working(f"Reading {_source(run)} again"):
            reading = read_data(_source(run), prepare, Output(quiet=True))
            fingerprint = split_data(reading.interactions, prepare).fingerprint
        if fingerprint == run.record["data"]["fingerprint"]:
            return {"steps": reading.steps}
        found["changed"] = (
            f"The data at {reading.source} are not what this run was trained on, or this version reads them "
            f"otherwise: they now have {len(reading.interactions):,} events and the fingerprint "
            f"{fingerprint[:12]}…. Everything here is about the data as they were then."
        )
    return found


def _source(run: "Run") -> str:
    """What was given to towpath fit as DATA; of a built-in dataset the record has the file as well."""
    from towpath.data.builtin_datasets import BUILTIN_DATASETS

    source = str(run.record["data"].get("source", ""))
    name = source.split(" (")[0]
    return name if name in BUILTIN_DATASETS else source


def _preparation(run: "Run", data_dir: Path | None) -> Preparation:
    """The options about data that the run was made with."""
    names = {f.name for f in fields(Preparation)} - {"data_dir"}
    asked = {name: value for name, value in run.record["data"].items() if name in names}
    return Preparation(data_dir=data_dir, **asked)


def _command(run: "Run") -> str:
    """The towpath fit that makes the run again."""
    recipe, asked = run.record["recipe"], run.record["data"]
    words = ["towpath", "fit", _source(run), "--model", recipe["model"], "--method", recipe["method"]]
    for option in fields(Preparation):
        value = asked.get(option.name, option.default)
        if option.name != "data_dir" and value != option.default:
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{option.name.replace('_', '-')}", str(one)]
    words += ["--seed", str(recipe["seed"]), "--out", str(run.folder)]
    return " ".join([shlex.join(words), set_words(_changed_settings(recipe))]).strip()


def _changed_settings(recipe: dict[str, Any]) -> dict[str, Any]:
    """The settings that are not the defaults of this version; all of them if it has no such recipe."""
    from towpath.errors import TowpathError
    from towpath.methods.recipe import Recipe

    try:
        defaults = Recipe(recipe["model"], recipe["method"]).resolved()["settings"]
    except TowpathError:
        defaults = {}
    return {k: v for k, v in recipe["settings"].items() if k not in defaults or defaults[k] != v}


def _show(facts: "RunFacts", page: Path, output: Output) -> None:
    from towpath.reports.run_evidence import vouched_text
    from towpath.reports.run_warnings import warnings_of

    warnings = warnings_of(facts)
    evaluations = facts.evaluated.evaluations if facts.evaluated else {}
    metrics = {who: {one.protocol: one.metrics() for one in found} for who, found in evaluations.items()}
    missing = [f"{gap.what}: {gap.why}" for gap in facts.gaps]
    rows = [(who, p, m["hit"], m["ndcg"]) for who, by in metrics.items() for p, m in by.items()]
    tables = [Listing(f"{facts.name}: test", ("", "protocol", "Hit", "NDCG"), rows)] if rows else []
    seen = {"evidence": None if facts.vouched is None else facts.vouched.to_json()}
    found = {"page": str(page), "metrics": metrics, "warnings": warnings, "missing": missing} | seen
    output.show(found, *tables)
    if facts.vouched is not None:
        output.say(vouched_text(facts.vouched))
    for sentence in (*warnings, *missing):
        output.say(sentence)
    output.say(f"The page is {page}")
