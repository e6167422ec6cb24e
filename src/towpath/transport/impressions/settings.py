"""How transport learns from a log of impressions; every option is explained here."""

from typing import Literal

from pydantic import Field

from towpath.models.scorer import Settings


class LibrarySettings(Settings):
    """Settings of transport on impressions."""

    solver: Literal["auto", "library", "game"] = Field(
        "auto",
        description="`library`: heads on one representation, learned from impressions; `game`: f, w and g on "
        "the pairs that `pairs` names; `auto`: the library where the log has impressions, else the game.",
    )
    penalty: float | None = Field(
        None,
        ge=0,
        description="Weight of likeness to the logged domain (lambda); 0: no transport. Unset, on a log of "
        "impressions: chosen by held-out impressions; on clicks alone: 1, the price of the distance between "
        "what is learned from and what is shown.",
    )
    library_l2: tuple[float, ...] = Field(
        (0.02, 0.06),
        min_length=1,
        description="Penalties on the squared lengths of vectors; every kind of member is trained with each.",
    )
    library_epochs: int = Field(
        30, ge=1, description="Passes over the impressions; the step size falls to a tenth, the last is kept."
    )
    library_rate: float = Field(0.01, gt=0, description="Step size of the members at first.")
    library_negatives: int = Field(
        3, ge=1, description="Items of the catalogue that are drawn for each impression, every batch."
    )
    member_dim: int = Field(16, ge=1, description="Length of the vectors of each member.")
    held_out: float = Field(
        1 / 3, gt=0, lt=1, description="Share of the impressions by which the members are weighed."
    )
    stack_ridge: float = Field(
        10.0,
        gt=0,
        description="Penalty on the squared weights of the members, standardised; the more held-out "
        "impressions of the rarer label there are, the less it weighs.",
    )
    tower_epochs: int = Field(
        12,
        ge=1,
        description="Most passes over the impressions of a model other than mf; how many it gets is chosen "
        "by held-out impressions.",
    )
