"""towpath simulate: create a world with known relevance, describe it, run the closed loop in it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.compared import recipes_of
from towpath.cli.groups import spread
from towpath.cli.options import DataOptions, Jobs, Training, names_in, parse_settings
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import read_data, use_threads
from towpath.cli.simulate_serve import serve
from towpath.errors import ConfigError
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.experiments.loop import Arm
    from towpath.experiments.rounds import Round
    from towpath.worlds.world import World

# The arm that shows random lists; the others are methods.
RANDOM = "random"
WorldFolder = Annotated[Path, typer.Argument(metavar="WORLD", help="The folder that simulate create wrote.")]
Rated = Annotated[
    str | None,
    typer.Argument(metavar="[DATA]", help="Rated data to make it from; none: a latent world."),
]


@dataclass(frozen=True)
class CreateOptions:
    """Where the world goes and what makes it."""

    out: Annotated[Path, typer.Option(help="The folder for the world.")]
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the world; repeat for more."),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="One seed gives one world.")] = 0


@dataclass(frozen=True)
class RunOptions:
    """Which recommenders are deployed, and for how many rounds."""

    out: Annotated[
        Path | None,
        typer.Option(help="Store every round in this folder; stored rounds are not computed again."),
    ] = None
    model: Annotated[str, typer.Option(help="The model that all methods train.")] = "mf"
    arms: Annotated[str, typer.Option(help="Methods, and `random` for random lists, with commas.")] = (
        "plain,ipw,transport,random"
    )
    rounds: Annotated[int, typer.Option(min=1, help="How often each arm is trained and deployed.")] = 10
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Length of the lists.")] = 10
    exploration: Annotated[
        float, typer.Option(min=0, max=1, help="Share of every list that is drawn at random.")
    ] = 0.0
    seed: Annotated[int, typer.Option(min=0, help="Seed of fits and clicks.")] = 0
    jobs: Jobs = 1


def create(output: Output, options: CreateOptions, prepare: DataOptions, data: Rated = None) -> None:
    """Make a world: latent from a few numbers, or semi-synthetic from rated data."""
    use_threads(1)
    from towpath.files import kind_of, refuse_unwritable
    from towpath.worlds.store import STORED_AS, save_world

    refuse_unwritable(options.out)
    if options.out.exists() and kind_of(options.out) != STORED_AS.kind:  # an older world is replaced
        raise ConfigError(f"{options.out} already exists and is no world; choose another --out.")
    settings = parse_settings(options.set)
    if data is None:
        world, about = _latent(settings, options.seed)
    else:
        world, about = _semi_synthetic(data, settings, options.seed, prepare, output)
    with output.working(f"Writing {options.out}"):
        described = _described(world, about, options.out)  # one that cannot be described is not written
        save_world(world, options.out, about)
    _show_world(described, output)


def describe(folder: WorldFolder, output: Output) -> None:
    """Say what a world is like: how much was shown, and what the best, the popular and random lists earn."""
    from towpath.worlds.store import load_world

    with output.working(f"Reading {folder}"):
        world, about = load_world(folder)
    _show_world(_described(world, about, folder), output)


def run(folder: WorldFolder, options: RunOptions, training: Training, output: Output) -> None:
    """Deploy, show, draw clicks from true relevance, log, train again: several arms, round by round.

    --set KEY=VALUE holds for all arms; --set ipw.KEY=VALUE for one.
    """
    use_threads(training.threads)
    limit_memory(training.memory)
    from towpath.experiments.loop import LoopSettings, Start, run_loop
    from towpath.experiments.pool import Work
    from towpath.models.registry import parse_settings as parsed
    from towpath.worlds.store import load_world

    arms = _arms(options, parse_settings(training.set), training.device)
    loop = {name: getattr(options, name) for name in ("rounds", "k", "exploration")}
    with output.working(f"Reading {folder}"):
        start = Start(load_world(folder)[0], parsed(LoopSettings, loop), options.seed)
    with output.progress("Running", len(arms) * options.rounds) as step:

        def on_result(one: "Round") -> None:
            step(f"{one.arm}, round {one.number}: {one.relevance:.2f} clicks expected on a list")

        rounds = run_loop(start, arms, Work(options.jobs, options.out, on_result))
    _show_rounds(rounds, options, output)


def _latent(settings: dict[str, Any], seed: int) -> "tuple[World, dict[str, Any]]":  # any JSON
    from towpath.models.registry import parse_settings as parsed
    from towpath.rng import Rng
    from towpath.worlds.latent import LatentWorld, make_latent_world

    kind = parsed(LatentWorld, settings)
    about = {"kind": "latent", "seed": seed, "settings": kind.model_dump()}
    return make_latent_world(kind, Rng(seed)), about


def _semi_synthetic(
    data: str, settings: dict[str, Any], seed: int, prepare: DataOptions, output: Output
) -> "tuple[World, dict[str, Any]]":  # any JSON
    from towpath.models.registry import parse_settings as parsed
    from towpath.rng import Rng
    from towpath.worlds.semi_synthetic import SemiSyntheticWorld, make_semi_synthetic_world

    kind = parsed(SemiSyntheticWorld, settings)
    reading = read_data(data, prepare, output)
    with output.progress("Making a world", 3) as step:
        world = make_semi_synthetic_world(reading.interactions, kind, Rng(seed), step)
    about = {"kind": "semi-synthetic", "seed": seed, "source": data, "settings": kind.model_dump()}
    return world, about


def _arms(options: RunOptions, settings: dict[str, Any], device: str) -> "list[Arm]":
    from towpath.experiments.loop import Arm

    names = names_in(options.arms, "--arms")
    methods = [name for name in names if name != RANDOM]
    recipes = recipes_of(([options.model], methods), settings, {}, device) if methods else {}
    trained = dict(zip(methods, recipes.values(), strict=True))
    return [Arm(name, trained.get(name)) for name in names]


def _described(world: "World", about: dict[str, Any], folder: Path) -> dict[str, Any]:  # any JSON
    """What a world is like, and what lists earn in it."""
    from towpath.data.split import split_leave_last_two

    split = split_leave_last_two(world.log)
    seen, k = (split.train, split.validation), 10
    oracle = {
        "best": float(world.best_relevance(k, *seen).mean()),
        "popularity": float(world.popularity_relevance(k, *seen).mean()),
        "chance": float(world.chance_relevance(k, *seen).mean()),
    }
    return {
        "folder": str(folder),
        **{key: about.get(key) for key in ("kind", "seed")},
        "users": world.log.n_users,
        "items": world.log.n_items,
        "shown": len(world.exposures),
        "clicks": len(world.log),
        "density": world.density(),
        "shown_share": world.shown_share(),
        "click_rate": world.click_rate(),
        **world.overlap(),
        "users_too_short_to_judge": world.log.n_users - len(split.test),
        "rel_at_10": oracle,
        "settings": about.get("settings"),
    }


def _show_world(result: dict[str, Any], output: Output) -> None:  # any JSON
    facts = [(name.replace("_", " "), value) for name, value in result.items() if not isinstance(value, dict)]
    earns = [(f"Rel@10 of the {name} list", value) for name, value in result["rel_at_10"].items()]
    output.show(result, Listing("What this world is like", ("", ""), [*facts, *earns]))


# Headings narrow enough for a terminal of 80 columns; --json has all.
_HEADINGS = {
    "arm": "arm",
    "number": "round",
    "click_through": "click",
    "relevance": "rel",
    "coverage": "cover",
    "popularity": "popul",
    "promised_hit": "promise",
    "true_hit": "true",
}
_MEANING = (
    "click: share of what was shown that was clicked; rel: true clicks to expect on a list; cover: share of "
    "the catalogue shown to anyone; popul: how popular in the first log the shown items were; promise: share "
    "of the hidden clicks of its own log that were in its lists; true: the same if clicks came by relevance "
    "alone"
)


def _show_rounds(rounds: "tuple[Round, ...]", options: RunOptions, output: Output) -> None:
    rows = [asdict(one) for one in rounds]
    cells = [[row[name] for name in _HEADINGS] for row in rows]
    result = {"k": options.k, "seed": options.seed, "rounds": rows}
    output.show(result, Listing(_MEANING, tuple(_HEADINGS.values()), cells))


simulate_app = typer.Typer(help="Simulated worlds with known relevance, and the closed loop in them.")
simulate_app.command("create")(spread(create))
simulate_app.command("run")(spread(run))
simulate_app.command("describe")(spread(describe))
simulate_app.command("serve")(spread(serve))
