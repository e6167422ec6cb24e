"""One HTML page that needs nothing but itself: no network, no scripts, no other files."""

import errno
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from towpath.errors import ConfigError
from towpath.reports.figures import Figure
from towpath.reports.tables import Table


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs of plain text, and what they talk about."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Page:
    """A title, one paragraph that says what came out, and the sections."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    footer: str = ""


def to_html(page: Page) -> str:
    """The page as one HTML text; everything but the charts is escaped."""
    return _template().render(page=page)


def write_page(page: Page, path: Path) -> Path:
    """The path of the written page; an earlier page stays whole until the new one is complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(to_html(page))
        os.chmod(temporary, 0o644)  # mkstemp makes files that only their owner can read
        os.replace(temporary, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path


def refuse_unwritable(path: Path) -> None:
    """Raises if the page cannot be put there; to be asked before the work that the page is about."""
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir():
        raise _unwritable(path, NotADirectoryError(errno.ENOTDIR, f"{str(nearest)!r} is a file"))
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise _unwritable(path, PermissionError(errno.EACCES, f"{str(nearest)!r} may not be written to"))


def _unwritable(path: Path, error: OSError) -> ConfigError:
    reason = error.strerror or str(error)
    return ConfigError(
        f"The page {str(path)!r} cannot be written: {reason}; choose another place with --out."
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("towpath.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
