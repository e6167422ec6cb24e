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
    from towpath.reports.demo_page import demo_page, difference_table, loop_table, summary_table
    from towpath.reports.page import write_page

    page = options.out / "index.html"
    refuse_unwritable(page)
    told = _run(options.seed, output)
    write_page(demo_page(told), page)
    tables = summary_table(told), difference_table(told), loop_table(told)
    titles = _title(told), tables[1].caption, _LOOP_TITLE
    output.show(
        _result(told, page),
        *(Listing(title, table.columns, _cells(table)) for title, table in zip(titles, tables, strict=True)),
    )
    output.say(f"The page is {page}")


_LOOP_TITLE = "Closed loop: each is deployed, then trained again on the log of its own lists:"


def _run(seed: int, output: Output) -> "Demonstration":
    from towpath.experiments.demo import demonstrate, steps
    from towpath.worlds.latent import LatentWorld

    with output.progress("Demo", steps()) as step:
        return demonstrate(LatentWorld(), seed, watch=step)


def _cells(table: "Table") -> list[list[object]]:
    """The table's cells with intervals as text; the listing sets numbers itself."""
    from towpath.reports.tables import Interval, show

    return [[show(c, table.decimals) if isinstance(c, Interval) else c for c in row] for row in table.rows]


def _title(told: "Demonstration") -> str:
    world, oracle = told.world, told.oracle()
    return (
        f"The log has shown {world.shown_share():.1%} of all pairs of user and item.\n"
        f"True clicks on a list of ten: best possible {oracle['best possible']:.2f}, "
        f"random choice {oracle['random choice']:.2f}."
    )


def _result(told: "Demonstration", page: Path) -> dict[str, Any]:  # any JSON
    recommenders = [
        {
            "name": trial.name,
            "full": {name: trial.mean(name) for name in ("hit", "ndcg", "coverage", "popularity")},
            "sampled": {name: trial.mean(name, "sampled") for name in ("hit", "ndcg")},
            "true_clicks": trial.mean("rel"),
            "never_tried": 1 - trial.tried_share,
        }
        for trial in told.ranked("rel")
    ]
    oracle = told.oracle()
    return {
        "users": told.settings.users,
        "items": told.settings.items,
        "clicks": len(told.world.log),
        "tried_share": told.world.shown_share(),
        "k": told.trials[0].full[0].k,
        # "blind choice" is the key's name before 0.2, which scripts read.
        "true_clicks": oracle | {"blind choice": oracle["random choice"]},
        "recommenders": recommenders,
        "rounds": [asdict(one) for one in told.rounds],
        "page": str(page),
    }
