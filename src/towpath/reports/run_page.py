"""The page about one run: what it was made from, how it went, how good it is, what to be careful about."""

from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from towpath.reports.intervals import mean_interval
from towpath.reports.page import Page, Section
from towpath.reports.run_evidence import evidence_section
from towpath.reports.run_facts import POPULARITY, THIS, RunFacts
from towpath.reports.run_lists import lists_section
from towpath.reports.run_results import results_section
from towpath.reports.run_training import training_section
from towpath.reports.run_warnings import warnings_of
from towpath.reports.run_weights import weights_section
from towpath.reports.tables import Cell, Table

UNNAMED = "data without a name"  # of a run that was made in Python from a table
_QUANTILES = {"least": 0.0, "a quarter below": 0.25, "median": 0.5, "a quarter above": 0.75, "most": 1.0}


def run_page(facts: RunFacts) -> Page:
    """All that is known of the run; what is not known has no section but is named."""
    recipe = facts.recipe
    sections = [_careful_section(facts), _data_section(facts), training_section(facts)]
    if facts.evaluated is not None:
        sections.append(results_section(facts.evaluated))
    if facts.recommended is not None:
        sections.append(lists_section(facts.recommended))
    if facts.vouched is not None:
        sections.append(evidence_section(facts.vouched))
    if facts.weights is not None and facts.split is not None:
        sections.append(weights_section(facts.weights, facts.split.train.item_counts))
    if facts.gaps:
        sections.append(_gaps_section(facts))
    return Page(
        title=f"Run {facts.name}: {recipe['model']} trained by {recipe['method']}",
        lead=_lead(facts),
        sections=(*sections, _again_section(facts)),
        footer=f"Made by towpath report from the run {facts.name}. Validation chose, the test part was read "
        "for this page alone.",
        contents=True,
    )


def _lead(facts: RunFacts) -> str:
    recipe, source = facts.recipe, Path(str(facts.data.get("source", UNNAMED)).split(" (")[0]).name
    trained = "is being trained" if facts.outcome is None else "was trained"
    made = f"The model {recipe['model']} {trained} by the method {recipe['method']} on {source}."
    if facts.evaluated is None:
        return f"{made} How good it is could not be said here."
    k, protocol = facts.evaluated.k, facts.evaluated.protocols()[0]
    hits = {
        who: mean_interval(facts.evaluated.of(who, protocol).per_user["hit"], 100)
        for who in facts.evaluated.evaluations
    }
    run = hits[THIS]
    popularity = (
        f" The most popular items alone reach {hits[POPULARITY].mean:.1f} %." if POPULARITY in hits else ""
    )
    return (
        f"{made} {run.mean:.1f} % of the users ({run.low:.1f} to {run.high:.1f}) find an item of "
        f"their test part among the {k} items that it would show them.{popularity}"
    )


def _careful_section(facts: RunFacts) -> Section:
    warnings = warnings_of(facts)
    if warnings:
        return Section("What to be careful about", points=warnings)
    return Section(
        "What to be careful about",
        (
            "Nothing stood out of what is looked for here: weights that collapse, lists of items that the "
            "log hardly knows or that are no better than the most popular ones, training that was cut short, "
            "too few users or events, ids without training events.",
        ),
    )


def _data_section(facts: RunFacts) -> Section:
    tables = [table for table in (_steps_table(facts), _parts_table(facts), _events_table(facts)) if table]
    source, split = facts.data.get("source", UNNAMED), facts.data.get("split", "")
    text = f"Read from {source}, split by {split}."
    if facts.split is not None:
        train = facts.split.train
        pairs = sum(len(part) for part in (train, facts.split.validation, facts.split.test))
        text = (
            f"Read from {source}: {pairs:,} events of {train.n_users:,} users and {train.n_items:,} items, "
            f"{pairs / (train.n_users * train.n_items):.2%} of all pairs. Split: {facts.split.description}."
        )
    return Section("The data", (text,), tuple(tables), points=tuple(facts.data.get("notes", ())))


def _steps_table(facts: RunFacts) -> Table | None:
    rows = tuple((s.name, s.dropped_rows, s.rows, s.users, s.items) for s in facts.steps)
    columns = ("step of cleaning", "dropped", "events left", "users", "items")
    return Table(columns, rows, "What each step dropped and what was left after it.") if rows else None


def _parts_table(facts: RunFacts) -> Table | None:
    if facts.split is None:
        return None
    parts = {"training": facts.split.train, "validation": facts.split.validation, "test": facts.split.test}
    rows = tuple(
        (name, len(p), int((p.histories.lengths > 0).sum()), int((p.item_counts > 0).sum()))
        for name, p in parts.items()
    )
    caption = "Training is learned from, validation chooses the epoch, test is for this page."
    return Table(("part", "events", "users in it", "items in it"), rows, caption)


def _events_table(facts: RunFacts) -> Table | None:
    if facts.split is None:
        return None
    train = facts.split.train
    counts = {"of a user": train.histories.lengths, "of an item": train.item_counts}
    rows: list[tuple[Cell, ...]] = [
        (name, *(float(q) for q in np.quantile(values, list(_QUANTILES.values()))))
        for name, values in counts.items()
    ]
    return Table(("training events", *_QUANTILES), tuple(rows), decimals=0)


def _gaps_section(facts: RunFacts) -> Section:
    return Section(
        "What is missing",
        points=tuple(f"{gap.what[:1].upper()}{gap.what[1:]}: {gap.why}" for gap in facts.gaps),
    )


def _again_section(facts: RunFacts) -> Section:
    versions = ", ".join(f"{name} {number}" for name, number in facts.record.get("versions", {}).items())
    text = (
        "This command makes the run again, to the same floats with the same versions and data. Settings that "
        "it does not name have their defaults; the table has all of them."
    )
    made = f"Made with {versions}. Fingerprint of the split: {facts.data['fingerprint']}."
    return Section("To make it again", (text, made), (_settings_table(facts),), commands=(facts.command,))


def _settings_table(facts: RunFacts) -> Table:
    """All settings, two to a row so that they take half the page."""
    cells = [(name, _shown(value)) for name, value in facts.recipe["settings"].items()]
    half = (len(cells) + 1) // 2
    rows = tuple((*a, *b) for a, b in zip_longest(cells[:half], cells[half:], fillvalue=("", "")))
    return Table(("setting", "value", "setting", "value"), rows, "All settings as they were used.")


def _shown(value: Any) -> str:  # any JSON
    return {None: "none", "": "empty"}.get(value, str(value)) if not isinstance(value, list) else str(value)
