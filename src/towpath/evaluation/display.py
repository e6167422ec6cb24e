"""Tables for notebooks, which show an object by its `_repr_html_`."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A small HTML table; texts are escaped, fractions have four places.

    >>> html_table("a < b", ["n"], [[0.5]])
    '<table><caption>a &lt; b</caption><tr><th>n</th></tr><tr><td>0.5000</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))
