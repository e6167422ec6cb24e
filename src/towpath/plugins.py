"""Models and methods that installed packages register by entry points."""

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from towpath.errors import ConfigError, unknown_name

Class = TypeVar("Class", bound=type)


def registered(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; nothing is imported.

    Two packages that register different things under one name are refused.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise ConfigError(
                f"Two packages register {entry.name!r} in {group} ({other.value} and {entry.value}); "
                "uninstall one of them."
            )
    return found


def find(kind: str, name: str, own: Mapping[str, Any], group: str) -> Any:  # whatever is registered
    """What has this name: Towpath's own, or what an installed package registers; its own come first."""
    if name in own:
        return own[name]
    others = registered(group)
    if name in others:
        return imported(others[name])
    if ":" in name:
        raise ConfigError(
            f"No installed package registers the {kind} {name!r}, and Towpath imports nothing else by name; "
            f"give the {kind} itself, or register it by an entry point in the group {group}."
        )
    raise unknown_name(kind, name, [*own, *others])


def name_of(thing: Any, own: Mapping[str, Any], group: str, default: str) -> str:
    """The name under which something is known to the command line; `default` if nobody registers it."""
    for name, other in own.items():
        if other is thing:
            return name
    package = default.partition(":")[0].partition(".")[0]
    for name, entry in registered(group).items():
        # Only the entry points of its own package can stand for it, so no other one is imported.
        if name not in own and entry.module.partition(".")[0] == package and imported(entry) is thing:
            return name
    return default


def imported(entry: EntryPoint) -> Any:  # whatever is registered
    """What an entry point stands for."""
    try:
        return entry.load()
    except Exception as error:  # whatever the package does when it is imported
        raise ConfigError(
            f"{entry.name!r} of the group {entry.group} cannot be imported from {entry.value} "
            f"({type(error).__name__}: {error}); mend or uninstall the package that registers it."
        ) from error


def class_among(path: str, classes: Sequence[Class]) -> Class | None:
    """The one of these classes that a file names as module:qualname; None if it is none of them."""
    here = [kind for kind in classes if class_path(kind) == path]
    # A class may have moved since, out of a notebook say; its own name is still the same.
    moved = [kind for kind in classes if kind.__qualname__ == path.partition(":")[2]]
    return next(iter(here or moved), None)


def class_path(kind: type) -> str:
    """Where a class is defined: module:qualname."""
    return f"{kind.__module__}:{kind.__qualname__}"
