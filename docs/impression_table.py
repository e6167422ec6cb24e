"""The page results/table-1-impressions: the paper's comparison on logs that say what was shown.

    python docs/impression_table.py        (or: make reference)

Written from the files in docs/results/impressions, with rows named as in the paper. A file that is not there
leaves its column or table out. A test compares the page with the files.
"""

import csv
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "table-1-impressions"
WIDTH = 116
Row = Mapping[str, str]
# The rows of the page, and what benchmarks.impressions calls them.
ROWS = {
    "MCF": "plain",
    "IPW-MF": "ipw",
    "ExpoMF": "expomf",
    "DT-MCF": "transport",
    "shown pairs": "shown",
    "imitation": "imitation",
    "ESMM": "esmm",
    "ESCM2": "escm2",
    "conservative": "conservative",
}
SMALL = {
    "nothing": "latent-small-exploration-0-taste-0.6",
    "a tenth": "latent-small-exploration-0.1-taste-0.6",
    "half": "latent-small-exploration-0.5-taste-0.6",
    "all": "latent-small-exploration-1-taste-0.6",
}
LARGER = {
    "nothing": "latent-default-exploration-0-taste-0.6",
    "a tenth": "latent-default-exploration-0.1-taste-0.6",
    "half": "latent-default-exploration-0.5-taste-0.6",
    "MovieLens 1M": "semi-ml-1m",
}
TOWERS = {
    "MCF": "mf plain",
    "DT-MCF": "mf transport",
    "NCF": "ncf plain",
    "DT-NCF": "ncf transport",
    "Attn": "attention plain",
    "DT-Attn": "attention transport",
    "D&W": "wide_deep plain",
    "DT-D&W": "wide_deep transport",
}
GAMES = {
    "MCF": "plain",
    "DT-MCF": "transport",
    "DT-MCF, the paper's players, on shown pairs": "game",
    "DT-MCF, the paper's players, on clicks": "game-on-clicks",
}
_KINDS = {
    "nothing": "latent-small-exploration-0-taste-0.6-",
    "half": "latent-small-exploration-0.5-taste-0.6-",
}
_INTRO = """\
The paper learns from clicks alone and takes unseen items as negatives. Here the log says what was shown
and not clicked, and the same base models and rivals learn from it. In simulated worlds the truth is
known: the numbers are the expected clicks on a list of ten, mean and standard deviation over worlds.
Settings of all methods were chosen by validation in other worlds. DT-MCF is the method `transport`, which
on such a log is another algorithm than in the paper ([why](../../transport.md)). AC-MF, DR-MF and CE-MF
were not run on these logs. How all of it was measured, and what did not work: [logs of
impressions](../impressions/results.md)."""


def page() -> str:
    """The whole page."""
    parts = [
        "# Table 1 on logs of impressions",
        "<!-- Written by docs/impression_table.py. -->",
        _wrap(_INTRO),
    ]
    parts += ["## Worlds of 700 users and 400 items, by what the log shows at random", _clicks(SMALL, ROWS)]
    parts += [
        "## Worlds of 1,500 users and 800 items, and worlds made from MovieLens 1M",
        _clicks(LARGER, ROWS),
    ]
    parts += ["## How far DT-MCF is ahead", _wrap(_LEAD), *_leads()]
    parts += ["## Other base models", _wrap(_TOWERS), _clicks(_with("towers"), TOWERS)]
    parts += ["## The paper's own game on such a log", _wrap(_GAMES), _clicks(_with("game"), GAMES)]
    parts += ["## A real log: KuaiRand-Pure", _wrap(_KUAIRAND), _kuairand()]
    return "\n\n".join(part for part in parts if part) + "\n"


_LEAD = """Differences in percent of true clicks, paired by world, with 95 % intervals, by the share of
the log that was shown at random. Poor and good loggers are in [a longer
table](../impressions/lead-small.md)."""
_TOWERS = """Worlds of 700 x 400, by what is shown at random. The heads of `transport` on the model of
each row, and its plain training."""
_GAMES = """Worlds of 700 x 400, by what is shown at random. The game of f, w and g with models as
players, which the paper describes, with the defaults of `mf`; the other rows have searched settings."""
_KUAIRAND = """AUC and NDCG within what was shown, Hit@10 of clicks in the whole catalogue; mean and
standard deviation over seeds. No offline number can say which of the two earns more."""


def read(name: str) -> dict[str, Row]:
    """The rows of a file of impressions by their first cell; none if there is no such file."""
    return {next(iter(row.values())): row for row in rows(name)}


def _clicks(columns: Mapping[str, str], rows: Mapping[str, str]) -> str:
    """True clicks of every row in every kind of world that was computed."""
    found = {title: read(name) for title, name in columns.items()}
    found = {title: table for title, table in found.items() if table}
    head = [
        "method",
        *(f"{title} ({next(iter(table.values()))['worlds']} worlds)" for title, table in found.items()),
    ]
    lines = [[row, *(_cell(table.get(name)) for table in found.values())] for row, name in rows.items()]
    return _table(head, [line for line in lines if any(line[1:])])


def _cell(row: Row | None) -> str:
    return f"{float(row['true clicks']):.2f} ± {float(row['sd']):.2f}" if row else ""


def _with(suffix: str) -> dict[str, str]:
    return {title: f"{name}{suffix}" for title, name in _KINDS.items()}


def _leads() -> Iterator[str]:
    for name, title in (("lead-small", "700 x 400"), ("lead-default", "1,500 x 800")):
        found = rows(name)
        kinds = [kind for kind in ("0", "0.1", "0.5", "1") if any(_is(row, kind, "plain") for row in found)]
        head = [f"DT-MCF over, {title}", *(f"random: {kind}" for kind in kinds)]
        lines = []
        for label, method in ROWS.items():
            own = [row for kind in kinds for row in found if _is(row, kind, method)]
            if own:
                lines.append([label, *(f"{row['%']} ({row['low']} to {row['high']})" for row in own)])
        if lines:
            yield _table(head, lines)


def rows(name: str) -> list[Row]:
    """The rows of a file of impressions; none if there is no such file."""
    path = RESULTS / "impressions" / f"{name}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _is(row: Row, exploration: str, method: str) -> bool:
    return (row["exploration"], row["taste"], row["over"]) == (exploration, "0.6", method)


def _kuairand() -> str:
    found = read("kuairand-pure-mf")
    lines = [
        [label, *(found[name][key] for key in ("auc", "ndcg", "hit"))]
        for label, name in ROWS.items()
        if name in found
    ]
    return _table(["method", "AUC", "NDCG@10", "Hit@10"], lines) if lines else ""


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def _wrap(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def write() -> None:
    """Write the page."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "results.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
