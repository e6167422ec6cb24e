"""Which scorer an evaluation is about, once it is sure that it speaks of the same users and items."""

from towpath.data.split import Split
from towpath.errors import ConfigError
from towpath.models.scorer import Scorer
from towpath.serving.recommender import Recommender
from towpath.training.fit import Fit


def scorer_to_evaluate(model: Fit | Recommender | Scorer, split: Split, *, outside: bool) -> Scorer:
    """The scorer of a fit or of a recommender, whose ids must be those of the split.

    `outside`: it is evaluated on events that are no part of the split. A model that was trained on everything
    can be evaluated on nothing else.
    """
    if isinstance(model, Scorer):
        return model
    if not outside and _on_everything(model):
        raise ConfigError(
            "The model was trained on all parts of the split, so nothing is left to test it on; evaluate the "
            "fit that it was made from, or give new events with test=."
        )
    if isinstance(model, Fit):
        return model.scorer
    artifact = model.artifact
    for side, mine, theirs in (
        ("users", artifact.user_ids, split.train.user_ids),
        ("items", artifact.item_ids, split.train.item_ids),
    ):
        if mine != theirs:
            raise ConfigError(
                f"The model knows {len(mine):,} {side} and the split has {len(theirs):,}, not the same ones "
                "in the same order; evaluate it on the split that it was trained on."
            )
    return artifact.scorer


def _on_everything(model: Fit | Recommender) -> bool:
    if isinstance(model, Fit):
        return model.on_everything
    about = model.artifact.about
    return "everything" in (about.get("trained_on"), about.get("data", {}).get("trained_on"))
