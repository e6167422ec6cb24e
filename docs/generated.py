"""Reference pages that cannot go stale: tables made from the command line and the settings themselves.

In a page, a block `{towpath-commands}` becomes all verbs with their options, and `{towpath-settings}` with
a class such as `towpath.training.settings:TrainingSettings` becomes its fields.
"""

import re
from importlib import import_module
from typing import Literal, get_args, get_origin

from docutils import nodes
from docutils.statemachine import StringList
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def settings_table(kind: type[BaseModel]) -> str:
    """The fields of a settings class as a Markdown table."""
    if not kind.model_fields:
        return "Nothing to set."
    rows = [
        f"| `{name}` | `{field.default}` | {_range(field)} | {_escape(field.description or '')} |"
        for name, field in kind.model_fields.items()
    ]
    return "\n".join(["| setting | default | range | what it does |", "|---|---|---|---|", *rows])


def commands_text() -> str:
    """Every verb of the command line with its arguments and options, in Markdown."""
    from typer.main import get_command

    from towpath.cli.app import app

    return "\n\n".join(
        _verb(" ".join(path), command) for path, command in _verbs(("towpath",), get_command(app))
    )


def _verbs(path: tuple[str, ...], command):
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from _verbs((*path, name), child)
    else:
        yield path, command


def _verb(name: str, command) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, *(a.metavar or a.name.upper() for a in arguments), "[options]"])
    rows = [
        f"| {_spelling(p)} | {_default(p)} | {_escape(p.help or '')} |"
        for p in command.params
        if p.name != "help"
    ]
    table = ["| argument or option | default | what it does |", "|---|---|---|", *rows]
    return "\n\n".join([f"## {name}", f"    {usage}", (command.help or "").strip(), "\n".join(table)])


def _spelling(parameter) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{spelling}`" for spelling in parameter.opts)


def _default(parameter) -> str:
    if parameter.required:
        return "required"
    shown = parameter.default
    return "" if shown is None or shown is False or callable(shown) else f"`{shown}`"


def _range(field: FieldInfo) -> str:
    """The bounds of a number, or the words that an option may be."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [f"{signs[k]} {getattr(m, k)}" for m in field.metadata for k in signs if hasattr(m, k)]
    return ", ".join(bounds)


def _escape(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("*", "\\*")


class _Generated(SphinxDirective):
    has_content = True

    def text(self) -> str:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        lines = StringList(self.text().splitlines(), source=type(self).__name__)
        holder = nodes.section()
        self.state.nested_parse(lines, 0, holder, match_titles=True)
        return holder.children


class Commands(_Generated):
    """All verbs."""

    def text(self) -> str:
        return commands_text()


class SettingsTable(_Generated):
    """The fields of one settings class."""

    def text(self) -> str:
        module, name = self.content[0].strip().split(":")
        return settings_table(getattr(import_module(module), name))


def setup(app: Sphinx) -> dict[str, bool]:
    """Make both blocks known to Sphinx."""
    app.add_directive("towpath-commands", Commands)
    app.add_directive("towpath-settings", SettingsTable)
    return {"parallel_read_safe": True}
