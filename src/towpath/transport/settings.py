"""How the game is played; every option is explained here."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from towpath.errors import ConfigError
from towpath.models.model_setting import PlayerSetting
from towpath.training.settings import TrainingSettings
from towpath.transport.impressions.settings import LibrarySettings
from towpath.transport.objective import Measure
from towpath.transport.reco import Relaxation

Players = Literal["margin", "models"]
Reweight = Literal["unlabelled", "all"]
Domain = Literal["sampled", "exact", "ranking"]
Schedule = Literal["flat", "nested", "simultaneous"]
Lipschitz = Literal["max-norm", "gradient-penalty", "frozen", "none"]
WarmEpochs = Literal["auto"] | Annotated[int, Field(ge=0)]


class TransportSettings(LibrarySettings):
    """Settings of transportation-regularised training."""

    players: Players = Field(
        "margin",
        description="What w and g see in the game: `margin`, a pair's score minus that of the last item its "
        "user would be shown (the critic is then exact); `models`, the pair itself, through "
        "models of their own. Naming w or g means `models`, and `models` means the game.",
    )
    w: PlayerSetting = Field(
        "", description="Model that plays w: a name or, in Python, a class; empty: the same as f."
    )
    g: PlayerSetting = Field(
        "", description="Model that plays g: a name or, in Python, a class; empty: the same as f."
    )
    reweight: Reweight = Field(
        "unlabelled",
        description="Which pairs w reweights: `unlabelled` ones only, since what a user has interacted "
        "with is not shown again, or `all`.",
    )
    measure: Measure = Field(
        "normalised",
        description="`normalised` measures, or the paper's raw sums (`literal`), whose game degenerates.",
    )

    penalty_rate: float = Field(0.05, gt=0, description="Step of the penalty when target_distance is set.")

    floor: float = Field(0.7, ge=0, description="Smallest weight; keeps every pair in the game.")
    ceiling: float = Field(1.5, gt=0, description="Largest weight.")
    min_ess: float = Field(
        0.02,
        ge=0,
        le=1,
        description="Training stops if the effective sample size, as a share of the pairs, falls below this.",
    )

    domain: Domain = Field(
        "exact",
        description="What f would show: pairs among the training tuples that beat `pool` sampled unseen "
        "items (`sampled`) or the user's true threshold over the catalogue (`exact`), or pairs drawn from "
        "f's own lists (`ranking`).",
    )
    pool: int = Field(100, ge=1, description="Unseen items a pair is ranked against when domain=sampled.")
    relaxation: Relaxation = Field("hard", description="Gradient of being shown: none (`hard`) or `soft`.")
    temperature: float = Field(1.0, gt=0, description="Width of the soft threshold, in units of the score.")
    relaxed_share: float = Field(
        0.1,
        ge=0,
        description="Largest gradient through a relaxed threshold, as a share of the gradient of the risk.",
    )

    schedule: Schedule = Field(
        "flat",
        description="`flat`: steps_g moves of g, steps_w of w, one of f; `nested`: steps_g moves of g before "
        "each move of w; `simultaneous`: all three from the same position (Algorithm 1).",
    )
    steps_w: int = Field(1, ge=1, description="Moves of w per move of f.")
    steps_g: int = Field(1, ge=1, description="Moves of g per move of f, or per move of w if nested.")
    fresh: bool = Field(
        True, description="Whether further moves of w and g use fresh batches instead of f's own."
    )
    warm_epochs: WarmEpochs = Field(
        "auto",
        description="Plain epochs of f before the game begins. `auto`: the method `plain` with its own "
        "defaults, until it would stop; then the game goes on from its best epoch, with at most `epochs` "
        "more and the same patience.",
    )
    learning_rate_w: float = Field(0.02, gt=0, description="Step size of w.")
    learning_rate_g: float = Field(0.02, gt=0, description="Step size of g (players=models).")

    lipschitz: Lipschitz = Field(
        "max-norm",
        description="How a critic model is kept Lipschitz: rows of its tables no longer than row_norm "
        "(`max-norm`), a `gradient-penalty`, cones on the `frozen` "
        "vectors that f has after the warm start, or not at all (`none`: only its range is bounded).",
    )
    row_norm: float = Field(2.0, gt=0, description="Longest row of a critic's embedding tables.")
    critic_range: float = Field(8.0, gt=0, description="Bound on |g|; without it the penalty has no scale.")

    @model_validator(mode="after")
    def _fits_together(self) -> "TransportSettings":
        if self.players == "models" and self.solver == "library":
            raise ValueError("only the game has players, so players=models needs solver=game, not library")
        if self.floor > self.ceiling:
            raise ValueError(f"floor ({self.floor}) cannot exceed ceiling ({self.ceiling})")
        if self.domain == "ranking" and self.relaxation != "hard":
            raise ValueError(
                "domain=ranking draws pairs from f's lists, which has no gradient; use relaxation=hard"
            )
        if self.domain == "sampled" and self.list_length > self.pool:
            raise ValueError(f"list_length ({self.list_length}) cannot exceed pool ({self.pool})")
        return self


def refuse_no_game(training: TrainingSettings, settings: TransportSettings) -> None:
    """Nothing, unless the warm start takes all epochs; with `auto` the game has epochs of its own."""
    if settings.warm_epochs != "auto" and settings.warm_epochs >= training.epochs:
        raise ConfigError(
            f"After warm_epochs = {settings.warm_epochs} of epochs = {training.epochs} there is none left "
            "for the game; lower warm_epochs, or use method 'plain'."
        )


def refuse_soft_sharing(settings: TransportSettings) -> None:
    """Nothing, unless f takes gradients through what it would show, which several processes cannot share."""
    if settings.relaxation != "hard":
        raise ConfigError(
            f"Several workers play with relaxation=hard, and {settings.relaxation} was given; leave it out, "
            "or leave --workers out."
        )
