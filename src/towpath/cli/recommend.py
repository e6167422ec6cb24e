"""towpath recommend and similar: lists out of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from towpath.cli.options import Device, HowMany, Memory, RunFolder, names_in
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import set_thread_variables, use_threads
from towpath.errors import ConfigError
from towpath.memory import limit_memory

if TYPE_CHECKING:
    from towpath.ranking.resting import Resting
    from towpath.serving.answers import Recommendation
    from towpath.serving.batch import Audience, Find
    from towpath.serving.catalogue import ListRules
    from towpath.serving.recommender import Recommender

Items = Annotated[
    list[str], typer.Option("--item", help="The item's own id; repeat for more.", show_default=False)
]


@dataclass(frozen=True)
class Whom:
    """For whom, and where the lists go."""

    user: Annotated[list[str] | None, typer.Option("--user", help="The user's own id; repeat for more.")] = (
        None
    )
    users: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A Parquet, CSV or text file of user ids.")
    ] = None
    all: Annotated[bool, typer.Option("--all", help="All users of the model; needs --out.")] = False
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="spark|spark://…", help="Make the lists of --out on the workers of a Spark cluster."
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write lists to lists.parquet or lists.csv: user, item, rank, score."
        ),
    ] = None


@dataclass(frozen=True)
class Which:
    """Which items may be in a list."""

    candidates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of item ids: rank these only.")
    ] = None
    exclude: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of item ids: never recommend these.")
    ] = None
    history: Annotated[
        str | None,
        typer.Option(
            metavar="ID,ID",
            help="What the user has interacted with, oldest first, instead of what the log says.",
        ),
    ] = None
    filter_seen: Annotated[bool, typer.Option(help="Leave out what the user has interacted with.")] = True
    filter_shown: Annotated[
        bool, typer.Option("--filter-shown", help="Leave out everything that the user was shown.")
    ] = False
    max_showings: Annotated[
        int | None, typer.Option(min=1, help="Leave out what the user was shown so often or more.")
    ] = None
    rest: Annotated[
        bool,
        typer.Option(
            "--rest",
            help="Discount what was shown lately, by the time since, as repeats in the run's log say.",
        ),
    ] = False
    now: Annotated[
        int | None, typer.Option(help="For --rest: the moment of the lists in the log's times; its end.")
    ] = None
    memory: Memory = None


def recommend(
    run: RunFolder, whom: Whom, which: Which, output: Output, k: HowMany = 10, device: Device = "cpu"
) -> None:
    """Recommend items that the user has not had yet; unknown users get the most popular ones."""
    _refuse_mixed(whom, which)
    lists = _lean(run, whom, which, k) if device == "cpu" else None
    if lists is not None:
        _show(lists, whom, output)
        return
    use_threads(1)
    limit_memory(which.memory)
    from towpath.data.table_files import refuse_unknown_ending
    from towpath.serving.recommender import load

    if whom.out is not None:
        refuse_unknown_ending(whom.out)
    served = load(run, device=device)
    if whom.out is not None:
        _write(served, whom, which, output, k, _found_by(run, whom.engine))
        return
    answers = served.recommend_many(
        _users(whom),
        k,
        histories=None if which.history is None else [names_in(which.history, "--history")],
        candidates=_ids(which.candidates),
        exclude=_ids(which.exclude) or (),
        filter_seen=which.filter_seen,
        filter_shown=which.filter_shown,
        resting=_resting(served, which),
        now=which.now,
    )
    _say_unknown(served, which, output)
    _show(answers, whom, output)


def _lean(run: Path, whom: Whom, which: Which, k: int) -> "list[Recommendation] | None":
    """The lists for a few users by name, if they can be had without loading torch."""
    if whom.user is None or whom.out is not None or which != Which(filter_seen=which.filter_seen):
        return None
    set_thread_variables(1)
    from towpath.serving.lean import lean_lists

    return lean_lists(run, whom.user, k, filter_seen=which.filter_seen)


def _show(answers: "list[Recommendation]", whom: Whom, output: Output) -> None:
    told = [_told(answer) for answer in answers]
    output.show(
        told[0] if whom.user is not None and len(told) == 1 else {"lists": told},
        *(_shown(answer, output) for answer in answers),
    )


def similar(run: RunFolder, item: Items, output: Output, k: HowMany = 10) -> None:
    """List the items most like one item, or like each of several."""
    use_threads(1)
    from towpath.serving.recommender import load

    answers = load(run).similar(list(item), k)
    told = [{"item": one.item, "items": _listed(one.items, one.scores)} for one in answers]
    output.show(
        told[0] if len(told) == 1 else {"lists": told},
        *(_listing(f"Like item {one['item']}", one["items"]) for one in told),
    )


def _refuse_mixed(whom: Whom, which: Which) -> None:
    """Nothing, unless it is not clear for whom lists are asked."""
    ways = [whom.user is not None, whom.users is not None, whom.all]
    if sum(ways) != 1:
        raise ConfigError(
            "recommend takes one of --user U (once or more), --users FILE and --all, and "
            f"{sum(ways)} of them came."
        )
    if whom.all and whom.out is None:
        raise ConfigError("--all makes very many lists; say where to write them with --out lists.parquet.")
    if whom.engine is not None and whom.out is None:
        raise ConfigError("--engine makes lists for a file; say which with --out lists.parquet.")
    if which.history is not None and (whom.user is None or len(whom.user) != 1 or whom.out is not None):
        raise ConfigError("--history is that of one user; give it with one --user and without --out.")


def _found_by(run: Path, engine: str | None) -> "Find | None":
    """Who makes the lists: the workers of a cluster, or this process (None)."""
    from towpath.data.engine import is_spark

    if engine is None or engine == "duckdb":
        return None
    if not is_spark(engine):
        raise ConfigError(
            f"--engine takes spark or a Spark master such as spark://host:7077 here, and not {engine!r}."
        )
    from towpath.serving.spark_jobs import lists_by_spark

    return lists_by_spark(engine, run)


def _write(
    served: "Recommender", whom: Whom, which: Which, output: Output, k: int, find: "Find | None"
) -> None:
    """Lists to a file, and how many of them there are."""
    from towpath.serving.batch import write_lists

    assert whom.out is not None
    audience = _audience(served, whom, output)
    rules = _rules(served, which, k)
    _say_unknown(served, which, output)
    with output.transfer(f"Lists for {len(audience.codes):,} users") as bar:
        done = write_lists(
            served, audience, rules, whom.out, lambda n: bar(n, len(audience.codes)), find=find
        )
    if done.fallback_users:
        output.say(
            f"{done.fallback_users:,} of {done.users:,} users got the fallback, the most popular items."
        )
    result = {
        "out": str(whom.out),
        "users": done.users,
        "rows": done.rows,
        "k": k,
        "fallback_users": done.fallback_users,
    }
    output.show(result, Listing("Lists", ("", ""), list(result.items())))


def _audience(served: "Recommender", whom: Whom, output: Output) -> "Audience":
    from towpath.serving.batch import audience_of, everyone

    if whom.all:
        return everyone(served)
    users = _users(whom)
    audience = audience_of(served, users)
    unknown = [user for user, code in zip(users, audience.codes.tolist(), strict=True) if code < 0]
    if unknown:
        output.say(
            f"{len(unknown):,} of {len(users):,} users are unknown to the model (first: {unknown[0]!r})."
        )
    return audience


def _users(whom: Whom) -> list[Any]:  # ids of any type
    from towpath.data.id_files import read_id_file

    return list(whom.user) if whom.users is None else read_id_file(whom.users, "user")  # type: ignore[arg-type]  # one of both is there


def _rules(served: "Recommender", which: Which, k: int) -> "ListRules":
    from towpath.serving.catalogue import ListRules, candidate_codes, check_k

    items = served.artifact.item_ids
    check_k(k, len(items))
    allowed = candidate_codes(items, _ids(which.candidates), _ids(which.exclude) or ())
    return ListRules(k, allowed, which.filter_seen, which.filter_shown, _resting(served, which), which.now)


def _resting(served: "Recommender", which: Which) -> "Resting":
    from towpath.ranking.resting import Resting

    curve = served.rest_curve() if which.rest else None
    return Resting(most_showings=which.max_showings, curve=curve)


def _ids(path: Path | None) -> list[Any] | None:  # ids of any type
    from towpath.data.id_files import read_id_file

    return None if path is None else read_id_file(path, "item")


def _say_unknown(served: "Recommender", which: Which, output: Output) -> None:
    """How many of the items that were given are none of the model's."""
    given = {"candidates": _ids(which.candidates), "excluded items": _ids(which.exclude)}
    if which.history is not None:
        given["items of the history"] = names_in(which.history, "--history")
    for what, ids in given.items():
        codes = served.artifact.item_ids.codes(ids or ())
        unknown = [one for one, code in zip(ids or (), codes.tolist(), strict=True) if code < 0]
        if unknown:
            output.say(
                f"{len(unknown):,} of {len(ids or ()):,} {what} are unknown (first: {unknown[0]!r}): ignored."
            )


def _told(answer: "Recommendation") -> dict[str, Any]:  # any JSON
    items = _listed(answer.items, answer.scores)
    return {"user": answer.user, "items": items, "fallback": answer.fallback, "how": answer.how}


def _shown(answer: "Recommendation", output: Output) -> Listing:
    from towpath.serving.answers import FALLBACK

    if answer.fallback:
        output.say(f"The model was not trained on user {answer.user!r}; this is the fallback, {FALLBACK}.")
    remark = {"model": "", FALLBACK: f" (fallback: {FALLBACK})"}.get(answer.how, f" ({answer.how})")
    return _listing(f"For user {answer.user}{remark}", _listed(answer.items, answer.scores))


def _listed(ids: tuple[Any, ...], scores: tuple[float, ...]) -> list[dict[str, Any]]:  # ids of any type
    return [{"id": one, "score": score} for one, score in zip(ids, scores, strict=True)]


def _listing(title: str, items: list[dict[str, Any]]) -> Listing:  # ids of any type
    return Listing(
        title, ("rank", "item", "score"), [(n, str(i["id"]), i["score"]) for n, i in enumerate(items, 1)]
    )
