"""towpath recommend and similar: lists out of a run."""

from typing import Annotated, Any

import typer

from towpath.cli.options import Device, HowMany, RunFolder
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads

User = Annotated[str, typer.Option(help="The user's own id.", show_default=False)]
Item = Annotated[str, typer.Option(help="The item's own id.", show_default=False)]


def recommend(run: RunFolder, user: User, output: Output, k: HowMany = 10, device: Device = "cpu") -> None:
    """Recommend items that the user has not had yet; unknown users get the most popular ones."""
    use_threads(1)
    from towpath.serving.recommender import FALLBACK, load

    answer = load(run, device=device).recommend(user, k)
    if answer.fallback:
        output.say(f"The model was not trained on user {user!r}; this is the fallback, {FALLBACK}.")
    title = f"For user {user}" + (f" (fallback: {FALLBACK})" if answer.fallback else "")
    items = _listed(answer.items, answer.scores)
    output.show({"user": user, "items": items, "fallback": answer.fallback}, _listing(title, items))


def similar(run: RunFolder, item: Item, output: Output, k: HowMany = 10) -> None:
    """List the items most like one item."""
    use_threads(1)
    from towpath.serving.recommender import load

    answer = load(run).similar(item, k)
    items = _listed(answer.items, answer.scores)
    output.show({"item": item, "items": items}, _listing(f"Like item {item}", items))


def _listed(ids: tuple[Any, ...], scores: tuple[float, ...]) -> list[dict[str, Any]]:  # ids of any type
    return [{"id": one, "score": score} for one, score in zip(ids, scores, strict=True)]


def _listing(title: str, items: list[dict[str, Any]]) -> Listing:  # ids of any type
    return Listing(
        title, ("rank", "item", "score"), [(n, str(i["id"]), i["score"]) for n, i in enumerate(items, 1)]
    )
