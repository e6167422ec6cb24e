"""Tables for papers: plain LaTeX that needs no package."""

from towpath.reports.tables import Table

_MARKS = {1: r"\textbf", 2: r"\underline"}
_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "×": r"$\times$",
    "−": "$-$",
}  # fmt: skip


def to_latex(table: Table) -> str:
    r"""The table as a `table` float with its caption; the best is bold, the second best underlined.

    >>> print(to_latex(Table(("model", "hit"), (("mf & co", 0.25),), "Hit@10 in %.", decimals=2)))
    \begin{table}[htb]
      \centering
      \begin{tabular}{lr}
        \hline
        model & hit \\
        \hline
        mf \& co & 0.25 \\
        \hline
      \end{tabular}
      \caption{Hit@10 in \%.}
    \end{table}
    """
    columns = "".join("r" if right else "l" for right in table.numeric())
    lines = [_line([escaped(name) for name in table.columns]), r"\hline"]
    for texts, places in zip(table.shown(), table.places(), strict=True):
        lines.append(_line([_marked(escaped(t), place) for t, place in zip(texts, places, strict=True)]))
    body = "\n".join(f"    {line}" for line in [r"\hline", *lines, r"\hline"])
    parts = [r"\begin{table}[htb]", r"  \centering", rf"  \begin{{tabular}}{{{columns}}}", body]
    parts += [r"  \end{tabular}", rf"  \caption{{{escaped(table.full_caption)}}}", r"\end{table}"]
    return "\n".join(parts)


def escaped(text: str) -> str:
    """The text with every character that LaTeX would take for a command made harmless."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _line(cells: list[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _marked(text: str, place: int) -> str:
    return f"{_MARKS[place]}{{{text}}}" if place in _MARKS else text
