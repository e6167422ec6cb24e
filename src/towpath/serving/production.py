"""Models for production: trained on everything, and taken on when new events come."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from towpath.data.growing import Added, grow
from towpath.data.interactions import Interactions
from towpath.data.split import Split
from towpath.data.whole import all_for_training, whole_split
from towpath.errors import ConfigError
from towpath.methods.recipe import Recipe
from towpath.methods.run import FixedEpochs, fit
from towpath.models.growth import SideFeatures, take_over
from towpath.serving.run import Plan, Run, open_run, recipe_of, removed_if_it_fails
from towpath.training.fit import EpochMetrics, Fit
from towpath.transport.warm_start import epochs_by_part

Watch = Callable[[EpochMetrics], None] | None


def refit(model: Fit | str | Path, split: Split | None) -> Fit:
    """The recipe of a fit or run, trained on all parts for as many epochs as validation chose."""
    if not isinstance(model, Fit):
        run = Run(Path(model))
        _refuse_whole(run)
        recipe, epochs, split = recipe_of(run), _chosen_epochs(run), split or run.split
    elif not isinstance(model.recipe, Recipe) or split is None:
        raise ConfigError(
            "refit takes a fit that towpath.fit gave together with its split, or the folder of a run."
        )
    else:
        recipe, epochs = model.recipe, epochs_by_part(model.history, model.best_epoch)
    return replace(fit(whole_split(split), recipe, fixed=FixedEpochs(epochs)), on_everything=True)


def refit_run(run: Run, out: Path, *, resume: bool = False, watch: Watch = None) -> Run:
    """A run like this one that was trained on everything, for as many epochs as validation chose."""
    _refuse_whole(run)
    plan = Plan(whole_split(run.split), recipe_of(run), _record(run, "refit"))
    return _trained(out, plan, FixedEpochs(_chosen_epochs(run)), resume, watch)


def update_run(
    run: Run, new: Interactions, out: Path, *, epochs: int, resume: bool = False, watch: Watch = None
) -> tuple[Run, Added]:
    """A run that goes on from this one for some epochs, on all its events and the new ones.

    Users and items that are new get a code behind the others and start where their features put them, at the
    mean of what was learned if they have none; everyone else goes on from their own vectors. A model in
    closed form is solved anew.
    """
    old = whole_split(run.split)
    repeats = run.record["data"].get("repeats", "first")
    train, added = grow(old.train, new, keep_repeats=repeats == "allow")
    split = all_for_training(train, f"{old.description}; {added.rows:,} rows added")
    scorer = run.artifact.scorer
    plan = Plan(
        split, recipe_of(run), {**_record(run, "update"), "added": asdict(added), "update_epochs": epochs}
    )
    features = SideFeatures(train.user_features, train.item_features)
    # What a game ended with goes on with the game, without plain epochs before it.
    parts = (0, epochs) if len(_chosen_epochs(run)) > 1 else (epochs,)
    fixed = FixedEpochs(parts, lambda fresh: take_over(scorer, fresh, features))
    return _trained(out, plan, fixed, resume, watch), added


def _trained(out: Path, plan: Plan, fixed: FixedEpochs, resume: bool, watch: Watch) -> Run:
    with removed_if_it_fails(out):
        made = open_run(out, plan, resume=resume)
        if not made.finished:
            made.train(plan, watch, fixed)
    return made


def _chosen_epochs(run: Run) -> tuple[int, ...]:
    """The epochs of each part of training that validation chose."""
    return epochs_by_part(run.history, int(run.artifact.about["best_epoch"]))


def _record(run: Run, how: str) -> dict[str, Any]:  # any JSON
    """What the new run says about its data: all that the old one said, and how it was made from it."""
    said = {key: value for key, value in run.record["data"].items() if key != "fingerprint"}
    return {**said, "trained_on": "everything", "made_from": str(run.folder), "made_by": how}


def _refuse_whole(run: Run) -> None:
    """Nothing, unless the run has learned from everything and its epochs were not chosen by validation."""
    if run.record["data"].get("trained_on") == "everything":
        raise ConfigError(
            f"{run.folder} was trained on all of its events already; refit the run that it was made from, "
            f"{run.record['data'].get('made_from')}."
        )
