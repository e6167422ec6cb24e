"""The claims of the paper on logs of impressions, for the page of claims and for README."""

from collections.abc import Callable, Iterator, Mapping

import impression_table

_SIZES = {"lead-small": "700 users and 400 items", "lead-default": "1,500 users and 800 items"}
_SHARES = {"0": "nothing", "0.1": "a tenth", "0.5": "half", "1": "all"}
_RIVALS = {
    "plain": "MCF, its base model",
    "ipw": "IPW-MF, which was made against bias",
    "expomf": "ExpoMF, which was made against bias",
    "shown": "learning from the shown pairs alone",
    "esmm": "ESMM, which the paper does not have",
}
_INTRO = """The paper has no such log. Here the log also says what was shown and not clicked, and what
counts are the expected clicks in truth. All rows are in [one table](table-1-impressions/results.md), all
measurements on the page [logs of impressions](impressions/results.md). DT-MCF, by how much it earns more
than others, by what the log showed at random:"""
_WHY = """Why it holds there and not on clicks alone: with impressions, an item that was shown and not
clicked is told from one that nobody saw, so likeness to the log and clicks can be learned apart. The
algorithm is another one than the paper's ([transport](../transport.md))."""


def section(wrap: Callable[..., str]) -> Iterator[str]:
    """What holds where the log says what was shown."""
    yield "## The same claims where the log says what was shown"
    yield wrap(_INTRO)
    lines = [line for over, name in _RIVALS.items() if (line := _lead(over, name))]
    yield "\n".join(wrap(f"- {line}", "  ") for line in lines)
    yield wrap(f"{_WHY} {_game()}")


def _lead(over: str, name: str) -> str:
    """One rival in all kinds of worlds, and how often the interval is above zero."""
    parts, signs = [], []
    for file, size in _SIZES.items():
        rows = [row for row in impression_table.rows(file) if row["over"] == over and row["taste"] == "0.6"]
        spans = [
            f"{_SHARES.get(row['exploration'], row['exploration'])} {row['%']} % ({row['low']} to "
            f"{row['high']})"
            for row in rows
        ]
        signs += [float(row["low"]) > 0 for row in rows]
        parts += [f"in worlds of {size}: {', '.join(spans)}"] if spans else []
    return (
        f"over {name}: {'; '.join(parts)}. Above zero in {sum(signs)} of {len(signs)} kinds." if parts else ""
    )


def _game() -> str:
    """The paper's own game there."""
    found = impression_table.read("latent-small-exploration-0-taste-0.6-game")
    if not {"game", "game-on-clicks", "plain"} <= found.keys():
        return ""
    clicks = {name: f"{float(row['true clicks']):.2f}" for name, row in found.items()}
    return (
        f"The paper's own game, with models as players, earns {clicks['game-on-clicks']} clicks on a list "
        f"of ten if it learns from clicks and {clicks['game']} if it learns from shown pairs; MCF earns "
        f"{clicks['plain']}."
    )


def readme_line() -> str:
    """What README says of logs of impressions."""
    rows = impression_table.read("latent-small-exploration-0-taste-0.6")
    earns = {name: f"{float(row['true clicks']):.2f}" for name, row in rows.items()}
    others = {
        "plain": "plain training",
        "shown": "shown pairs alone",
        "imitation": "imitation of the log",
        "esmm": "ESMM, the best rival,",
    }
    worlds = f"{rows['transport']['worlds']} simulated worlds of which the log covers a tenth"
    clicks = f"**{earns['transport']} true clicks** on a list of ten ({_listed(earns, others)})"
    return f"- On logs of what was shown, in {worlds}, it earns {clicks}. {_rounds()}".rstrip()


def _listed(earns: Mapping[str, str], names: Mapping[str, str]) -> str:
    return ", ".join(f"{text} {earns[name]}" for name, text in names.items() if name in earns)


def _rounds() -> str:
    """What it earns in all rounds of the closed loop."""
    rows = impression_table.read("loop-exploration-0")
    if "transport" not in rows:
        return ""
    earns = {name: row["true clicks"] for name, row in rows.items()}
    others = _listed(earns, {"plain": "plain", "imitation": "imitation"})
    return f"In ten rounds on the log of its own lists it earns {earns['transport']} ({others})."
