"""towpath demo: the whole story in under a minute, on data that the package makes itself."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads

if TYPE_CHECKING:
    from towpath.experiments.demo import Demonstration
    from towpath.reports.tables import Table


@dataclass(frozen=True)
class DemoOptions:
    """Where the page goes and which world is made."""

    out: Annotated[Path, typer.Option(help="The folder for the page, index.html.")] = Path("demo")
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random numbers.")] = 0


def demo(options: DemoOptions, output: Output) -> None:
    """Simulate a world, train on its log, and compare offline metrics with the truth."""
    # One thread: on tables this small more threads wait for each other longer than they work.
    use_threads(1)
    from towpath.files import refuse_unwritable
    from towpath.reports.demo_page import (
        demo_page,
        difference_table,
        loop_table,
        overlap_table,
        summary_table,
    )
    from towpath.reports.page import write_page

    page = options.out / "index.html"
    refuse_unwritable(page)
    shown = _run(options.seed, output)
    write_page(demo_page(shown), page)
    tables = summary_table(shown), difference_table(shown), loop_table(shown), overlap_table(shown)
    titles = _title(shown), tables[1].full_caption, _LOOP_TITLE, _OVERLAP_TITLE
    output.show(
        _result(shown, page),
        *(Listing(title, table.columns, _cells(table)) for title, table in zip(titles, tables, strict=True)),
    )
    output.say(f"The page is {page}")


_OVERLAP_TITLE = "True clicks on a list of ten, by the share of the log that was drawn at random:"
_LOOP_TITLE = "Closed loop: each is deployed, then trained again on the log of its own lists:"


def _run(seed: int, output: Output) -> "Demonstration":
    from towpath.experiments.demo import WORLD, demonstrate, steps

    with output.progress("Demo", steps()) as step:
        return demonstrate(WORLD, seed, on_progress=step)


def _cells(table: "Table") -> list[list[object]]:
    """The table's cells with intervals as text; the listing sets numbers itself."""
    from towpath.reports.tables import estimate_in, show

    return [[show(c, table.decimals) if estimate_in(c) else c for c in row] for row in table.rows]


def _title(shown: "Demonstration") -> str:
    world, oracle = shown.world, shown.oracle()
    return (
        f"The log has shown {world.shown_share():.1%} of all pairs of user and item.\n"
        f"True clicks on a list of ten: best possible {oracle['best possible']:.2f}, "
        f"random choice {oracle['random choice']:.2f}."
    )


def _result(shown: "Demonstration", page: Path) -> dict[str, Any]:  # any JSON
    recommenders = [
        {
            "name": result.name,
            "full": {name: result.mean(name) for name in ("hit", "ndcg", "coverage", "popularity")},
            "sampled": {name: result.mean(name, "sampled") for name in ("hit", "ndcg")},
            "true_clicks": result.mean("rel"),
            "never_tried": 1 - result.tried_share,
        }
        for result in shown.ranked("rel")
    ]
    oracle = shown.oracle()
    return {
        "users": shown.settings.users,
        "items": shown.settings.items,
        "clicks": len(shown.world.log),
        "tried_share": shown.world.shown_share(),
        "k": shown.results[0].full[0].k,
        # "blind choice" is the key's name before 0.2, which scripts read.
        "true_clicks": oracle | {"blind choice": oracle["random choice"]},
        "recommenders": recommenders,
        "rounds": [asdict(one) for one in shown.rounds],
        "overlap": [{"exploration": one.exploration, "true_clicks": one.clicks} for one in shown.overlap],
        "page": str(page),
    }
