"""The reference pages settings.md and commands.md, written from the code, and the tables of the result pages.

    python docs/generated.py        (or: make reference)

Both pages are committed, so that they can be read without building the documentation. A test compares them
with the code; after a change of a setting, a command or an option, run this once and commit the result.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.main import get_command

from towpath.cli.verbs import app_with
from towpath.experiments.loop import LoopSettings
from towpath.methods.registry import METHODS
from towpath.models.registry import MODELS
from towpath.training.settings import TrainingSettings
from towpath.worlds.latent import LatentWorld
from towpath.worlds.semi_synthetic import SemiSyntheticWorld

WIDTH = 116  # characters; some of them take two or three bytes, and pages stay within 120 either way
_NOTE = "<!-- Written by docs/generated.py from the code. Do not edit: run `make reference`. -->"
_SETTINGS_INTRO = """\
These are the keys that `--set KEY=VALUE` takes on the command line and that `towpath.fit(..., KEY=VALUE)`
takes in Python. The list is flat: a key belongs to the model, to the fit loop or to the method. An unknown
key or a value out of range is an error.

Each line gives the key, its default, the values it may have, and what it does."""
_COMMANDS_INTRO = """\
Results go to standard output. Progress and notes go to standard error. The environment variable
`TOWPATH_DATA` replaces `--data-dir`.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | a bug in Towpath, shown with its traceback |
| 2 | the request cannot be carried out; one sentence on standard error says why and what to do |
| 130 | stopped by Ctrl-C |
| 141 | the program that read the output went away |
| 143 | stopped by SIGTERM |"""
# Where a model or a method is explained. One without a line here is explained by its settings alone.
_EXPLAINED = {
    "wide_deep": "Explained on the page [features](features.md).",
    "transport": "Explained on the page [transport](transport.md).",
    **dict.fromkeys(
        (
            "ipw",
            "doubly-robust",
            "expomf",
            "adversarial",
            "causal-embedding",
            "esmm",
            "escm2",
            "conservative",
        ),
        "Explained on the page [baselines](baselines.md).",
    ),
    "headed": "Made by `esmm`, `escm2` and `transport` of another model, on a log of impressions.",
    "shown": "Learns from clicked against shown but not clicked; see [impression logs](impressions.md).",
    "imitation": "Learns from shown against not shown; see [impression logs](impressions.md).",
    "bandit-ips": "Minimises the counterfactual risk of a softmax policy on a log with propensities.",
    "bandit-snips": "The same as bandit-ips, with the self-normalised risk.",
    "poem": "Counterfactual risk with a penalty on its spread.",
    "norm-poem": "The same as poem, with the self-normalised risk.",
    "bandit-dr": "A policy learned from a reward model and weighted residuals.",
    "bandit-dm": "A policy learned from a reward model alone.",
}


def settings_text() -> str:
    """All settings of the fit loop, the models, the methods and the simulation, in Markdown."""
    sections = [("Fit loop: all trained models", "", TrainingSettings)]
    sections += [(f"Model: {name}", _note(name, kind), kind.settings_type) for name, kind in MODELS.items()]
    sections += [(f"Method: {name}", _note(name, kind), kind.settings_type) for name, kind in METHODS.items()]
    worlds = "For `towpath simulate create`; see [simulation](simulation.md)."
    sections += [
        ("Simulation: latent world", worlds, LatentWorld),
        ("Simulation: semi-synthetic world", worlds, SemiSyntheticWorld),
        (
            "Simulation: closed loop",
            "For `towpath simulate run`; see [simulation](simulation.md).",
            LoopSettings,
        ),
    ]
    parts = ["# Settings", _NOTE, _SETTINGS_INTRO]
    for title, note, kind in sections:
        parts += [f"## {title}", *([_wrap(note)] if note else []), settings_list(kind)]
    return "\n\n".join(parts) + "\n"


def settings_list(kind: type[BaseModel]) -> str:
    """The fields of a settings class as a Markdown list."""
    if not kind.model_fields:
        return "No settings of its own."
    return "\n".join(
        _item(f"`{name}`", [f"default `{_shown(field.default)}`", _range(field)], field.description or "")
        for name, field in kind.model_fields.items()
    )


def commands_text() -> str:
    """Every command with its arguments and options, in Markdown."""
    commands = [
        _command(" ".join(path), command)
        for path, command in _commands(("towpath",), get_command(app_with()))
    ]
    return "\n\n".join(["# Command line", _NOTE, _COMMANDS_INTRO, *commands]) + "\n"


def _note(name: str, kind: Any) -> str:  # a type of Scorer, or a Method
    """Where a model or method is explained, and which defaults of the fit loop it changes."""
    changed: Mapping[str, Any] = getattr(
        kind, "suited_training" if isinstance(kind, type) else "training", {}
    )
    differs = f"Changes these defaults of the fit loop: {_listed(changed)}." if changed else ""
    pairwise: Mapping[str, Any] = getattr(kind, "suited_pairwise", {})
    weighed = f"Methods that weigh single pairs use {_listed(pairwise)}." if pairwise else ""
    on_impressions: Mapping[str, Mapping[str, Any]] = getattr(kind, "on_impressions", {})
    there = [
        f"Defaults of `{model}` on a log of impressions: {_listed(settings)}."
        for model, settings in on_impressions.items()
    ]
    return " ".join(filter(None, [_EXPLAINED.get(name, ""), differs, weighed, *there]))


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}={_shown(value)}`" for key, value in values.items())


def _commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from _commands((*path, name), child)
    else:
        yield path, command


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, *(a.metavar or a.name.upper() for a in arguments), "[options]"])
    about = "\n\n".join(_wrap(_escape(part)) for part in (command.help or "").strip().split("\n\n"))
    items = "\n".join(
        _item(_spelling(p), [_default(p)], p.help or "") for p in command.params if p.name != "help"
    )
    return "\n\n".join([f"## {name}", f"    {usage}", about, items])


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{spelling}`" for spelling in parameter.opts)


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    shown = parameter.default
    return "" if shown is None or shown is False or callable(shown) else f"default `{shown}`"


def _range(field: FieldInfo) -> str:
    """The bounds of a number, or the words that an option may be."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [f"{signs[k]} {getattr(m, k)}" for m in field.metadata for k in signs if hasattr(m, k)]
    return ", ".join(bounds)


def _shown(value: Any) -> str:
    return '""' if value == "" else str(value)


def _item(name: str, facts: list[str], text: str) -> str:
    """One entry of a list: the name, what is known about its value, and its text."""
    known = "; ".join(filter(None, facts))
    return _wrap(f"- {name}{f' ({known})' if known else ''}: {_escape(text)}", indent="  ")


def _escape(text: str) -> str:
    """One line of Markdown that shows this text; what stands between backticks is shown as it is anyway."""
    parts = re.sub(r"\s+", " ", text).split("`")
    parts[::2] = [part.replace("*", "\\*").replace("[", "\\[") for part in parts[::2]]
    return "`".join(parts)


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


PAGES = {"settings.md": settings_text, "commands.md": commands_text}

if __name__ == "__main__":
    import claims
    import impression_table
    import published
    import quoted

    import tables

    impression_table.write()
    claims.write()
    published.write()
    tables.fill_pages()
    quoted.fill_pages()
    for name, text in PAGES.items():
        (Path(__file__).parent / name).write_text(text(), encoding="utf-8")
