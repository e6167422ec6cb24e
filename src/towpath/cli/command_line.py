"""Options as the words of a command, so that a printed command does what was done."""

import shlex
from collections.abc import Collection
from dataclasses import fields
from typing import Any, get_type_hints


def option_words(options: Any, leave_out: Collection[str] = ()) -> list[str]:  # a dataclass of options
    """The options of a group that differ from their defaults, as words of a command.

    Goes over the fields of the dataclass, so a new option is included without a change here.
    """
    hints = get_type_hints(type(options), include_extras=True)
    words: list[str] = []
    for option in fields(options):
        value = getattr(options, option.name)
        if option.name not in leave_out and value != option.default:
            words += _words(_declared(option.name, hints[option.name]), value)
    return words


def command_text(*words: str) -> str:
    """The words as one line for a shell.

    >>> command_text("towpath", "fit", "my events.csv")
    "towpath fit 'my events.csv'"
    """
    return shlex.join(words)


def _words(declared: str, value: Any) -> list[str]:
    on, _, off = declared.partition("/")
    if value is None:
        return []
    if isinstance(value, bool):
        return [on] if value else [off] if off else []
    each = value if isinstance(value, list | tuple) else [value]
    return [word for one in each for word in (on, str(one))]


def _declared(name: str, hint: Any) -> str:
    """The long name of an option, as typer declares it; with its negation for a flag."""
    # In Annotated, typer takes the first of its names for the default value until it reads the option.
    declared = [text for info in hint.__metadata__ for text in (info.default, *(info.param_decls or ()))]
    long = next((text for text in declared if isinstance(text, str) and text.startswith("--")), None)
    dashed = name.replace("_", "-")
    return long or f"--{dashed}/--no-{dashed}"
