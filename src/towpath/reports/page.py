"""One HTML page that needs nothing but itself: no network, no scripts, no other files."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from towpath.files import write_text
from towpath.reports.figures import Figure
from towpath.reports.tables import Table


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs of plain text, and what they talk about."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    commands: tuple[str, ...] = ()  # lines to copy
    points: tuple[str, ...] = ()  # sentences that each stand for themselves


@dataclass(frozen=True)
class Page:
    """A title, one paragraph that says what came out, and the sections; `contents` lists them at the top.

    A `wide` page leaves room for tables of many columns.
    """

    title: str
    lead: str
    sections: tuple[Section, ...]
    footer: str = ""
    contents: bool = False
    wide: bool = False


def to_html(page: Page) -> str:
    """The page as one HTML text; everything but the charts is escaped."""
    return _template().render(page=page)


def write_page(page: Page, path: Path) -> Path:
    """The path of the written page; an earlier page stays whole until the new one is complete."""
    write_text(path, to_html(page))
    return path


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("towpath.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["with_code"] = _with_code
    return environment.get_template("page.html.j2")


def _with_code(text: str) -> Markup:
    """The text, escaped, with what stands in backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))
