"""How a model is trained, whatever the method."""

from typing import Literal

from pydantic import Field, model_validator

from towpath.models.scorer import Settings


class TrainingSettings(Settings):
    """Settings of the fit loop."""

    epochs: int = Field(100, ge=1, description="Maximum number of passes over the training positives.")
    patience: int = Field(
        5,
        ge=0,
        description="Stop after more than this many epochs without a better validation Hit@10 (full).",
    )
    pairs: Literal["sampled", "catalogue", "shown"] = Field(
        "sampled",
        description="What each step scores: positives with `sampled` negatives, users with the whole "
        "`catalogue`, with all items without an interaction as negatives (for small catalogues), or, in a "
        "log of impressions, what was `shown`, clicked or not.",
    )
    loss: Literal["logistic", "softmax"] = Field(
        "logistic",
        description="`logistic`: each pair on its own; `softmax`: the positive item against all "
        "others of the step, the sampled ones or the whole catalogue as `pairs` says.",
    )
    weights: Literal["none", "value"] = Field(
        "none",
        description="How much each positive counts: all the same (`none`), or by its `value` (a rating, a "
        "count, --event-weight), divided by their mean: a value of 3 counts as three events of value 1.",
    )
    softmax_dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Numbers in which the softmax over the catalogue multiplies matrices, for models that "
        "train on sequences. `bfloat16` is faster on processors that can (AVX-512 BF16, AMX), "
        "much slower on others, and rounds to three digits.",
    )
    softmax_negatives: int = Field(
        0,
        ge=0,
        description="With how many items the softmax over the catalogue compares each positive, for models "
        "that train on sequences: drawn once for each batch, popular ones more often, which is corrected "
        "for (sampled softmax with logQ correction). 0, or more than there are: all.",
    )
    softmax_items: Literal["all", "unseen"] = Field(
        "all",
        description="What the softmax over the catalogue compares a positive with, for models that train on "
        "sequences: `all` items, or those that are `unseen`, that is, not in the window up to that step. "
        "Lists hide what a user has interacted with, so a model need not learn to rank it low.",
    )
    windows: Literal["last", "random", "all"] = Field(
        "random",
        description="Which part of each history an epoch uses, for models that train on every step of a "
        "sequence: its `last` history_length steps, as many from a `random` position, or "
        "`all` of it, cut at random positions.",
    )
    batch_size: int = Field(
        0,
        ge=0,
        description="Positives per training step; 0: such that an epoch has about 240 steps, between "
        "256 and 65536.",
    )
    negatives: int = Field(
        3,
        ge=1,
        description="Items without an interaction that are drawn for each positive, anew for every batch.",
    )
    hard_negatives: int = Field(
        0,
        ge=0,
        description="How many of the negatives are drawn from the top of the user's current ranking "
        "instead of the whole catalogue.",
    )
    hard_negative_depth: int = Field(
        500,
        ge=1,
        description="From how many of the user's best-ranked items hard negatives are drawn.",
    )
    learning_rate: float = Field(0.003, gt=0, description="Step size of Adam.")
    final_lr_factor: float = Field(
        1.0,
        ge=0,
        le=1,
        description="The learning rate after all `epochs`, as a share of learning_rate; it decreases "
        "linearly; 1: constant.",
    )
    l2: float = Field(
        2e-3, ge=0, description="Penalty on the mean squared norm of the vectors of each scored pair."
    )
    clip_norm: float | None = Field(
        None,
        gt=0,
        description="Largest norm of the gradient over all parameters; a larger gradient is scaled "
        "down. None: no limit.",
    )

    def batch_size_for(self, positives: int) -> int:
        """Positives per step when there are so many in all.

        Small data in large batches would get too few steps an epoch for early stopping to be patient enough;
        large data in small ones would look up the same rows again and again.
        """
        return self.batch_size or min(65_536, max(256, positives // 240))

    def lr_scale(self, epoch: int) -> float:
        """The step size of an epoch (from 1) as a share of learning_rate."""
        return 1 - (1 - self.final_lr_factor) * (epoch - 1) / self.epochs

    @model_validator(mode="after")
    def _hard_negatives_are_negatives(self) -> "TrainingSettings":
        if self.hard_negatives > self.negatives:
            raise ValueError(
                f"hard_negatives ({self.hard_negatives}) cannot exceed negatives ({self.negatives})"
            )
        return self
