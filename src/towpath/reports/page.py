"""One HTML page that needs nothing but itself: no network, no scripts, no other files."""

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


def _unwritable(path: Path, error: OSError) -> ConfigError:
    reason = (error.strerror or str(error)).lower()
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
