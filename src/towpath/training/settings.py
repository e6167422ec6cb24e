"""How a model is trained, whatever the method."""

from typing import Literal

from pydantic import Field, model_validator

from towpath.models.scorer import Settings


class TrainingSettings(Settings):
    """Settings of the fit loop."""

    epochs: int = Field(100, ge=1, description="Most passes over the training positives.")
    patience: int = Field(
        5,
        ge=0,
        description="Stop after more than this many epochs without a better validation Hit@10 (full).",
    )
    pairs: Literal["sampled", "catalogue", "shown"] = Field(
        "sampled",
        description="What each step looks at: positives with `sampled` negatives, users with the whole "
        "`catalogue`, every untaken item a negative (best where users times items is not too large), or, in "
        "a log of impressions, what was `shown`, clicked or not.",
    )
    loss: Literal["logistic", "softmax"] = Field(
        "logistic",
        description="`logistic`: each pair on its own, taken or not; `softmax`: the taken item against all "
        "others of the step, the sampled ones or the whole catalogue as `pairs` says.",
    )
    windows: Literal["last", "random", "all"] = Field(
        "random",
        description="What an epoch takes of each history, for models that learn from every step of a "
        "sequence: its `last` history_length steps, as many at a `random` place, or `all` of it, cut up at "
        "random places.",
    )
    batch_size: int = Field(
        0,
        ge=0,
        description="Positives per step of training; 0: as many as make about 240 steps an epoch, "
        "256 to 65536.",
    )
    negatives: int = Field(
        3, ge=1, description="Untaken items of the same user drawn per positive, every batch."
    )
    head_negatives: int = Field(
        0,
        ge=0,
        description="How many of the negatives are drawn from the head of the user's current ranking "
        "instead of the whole catalogue.",
    )
    head: int = Field(
        500, ge=1, description="How many untaken items make up the head of a ranking; refreshed every epoch."
    )
    learning_rate: float = Field(0.003, gt=0, description="Step size of Adam.")
    last_rate: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Where the step size is heading: after all `epochs` it would be this share of "
        "learning_rate, and until then it falls evenly; 1: it stays.",
    )
    l2: float = Field(
        2e-3, ge=0, description="Penalty on the mean squared norm of the vectors of each scored pair."
    )
    clip_norm: float | None = Field(
        None,
        gt=0,
        description="Longest gradient (over all parameters) that is not shortened; none by default.",
    )

    def batch_size_for(self, positives: int) -> int:
        """Positives per step when there are so many in all.

        Small data in large batches would get too few steps an epoch for early stopping to be patient enough;
        large data in small ones would look up the same rows again and again.
        """
        return self.batch_size or min(65_536, max(256, positives // 240))

    def pace(self, epoch: int) -> float:
        """The step size of an epoch (from 1) as a share of learning_rate."""
        return 1 - (1 - self.last_rate) * (epoch - 1) / self.epochs

    @model_validator(mode="after")
    def _head_negatives_are_negatives(self) -> "TrainingSettings":
        if self.head_negatives > self.negatives:
            raise ValueError(
                f"head_negatives ({self.head_negatives}) cannot exceed negatives ({self.negatives})"
            )
        return self
