"""How transport learns from a log of impressions; every option is explained here."""

from typing import Literal

from pydantic import Field

from towpath.models.scorer import Settings

# Impressions that are enough for the members to settle, all passes together.
_ENOUGH, _MOST_EPOCHS, _FEWEST_EPOCHS = 6_000_000, 30, 4
_FEWEST_DRAWS, _MOST_DRAWS = 16, 64


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
    target_distance: float | None = Field(
        None,
        ge=0,
        description="If set, the penalty is learned so that the distance stays below this (rho). On a log of "
        "impressions 0 means lists that are as much like the log as what was shown, 1 like random pairs.",
    )
    list_length: int = Field(10, ge=1, description="How many items a user is shown: the K of top-K.")
    library_l2: tuple[float, ...] = Field(
        (0.02, 0.06),
        min_length=1,
        description="Penalties on the squared lengths of vectors; members with several heads train with "
        "each, those with one head with the smallest.",
    )
    library_epochs: int = Field(
        0,
        ge=0,
        description="Passes over the impressions, while the step size falls to a tenth; as many again on all "
        "impressions where some were held out; 0: 30, and fewer where there are more than 200,000 "
        "impressions, at least 4. The last one is kept.",
    )
    library_rate: float = Field(0.03, gt=0, description="Step size of the members at first.")
    library_negatives: int = Field(
        3,
        ge=1,
        description="How many times as much as an impression its draws from the catalogue count; with models "
        "other than mf, how many are drawn for each.",
    )
    library_draws: int = Field(
        0,
        ge=0,
        description="Items that are drawn from the catalogue for each batch, shared by all of its users "
        "(model mf); 0: a sixteenth of the catalogue, 16 to 64.",
    )
    likeness_rows: Literal["auto", "all"] = Field(
        "auto",
        description="Impressions that are compared with the catalogue. `auto`: where some rows name a policy "
        "and others do not, those that do not; the others, which a model trained on this log has chosen, "
        "teach what was clicked once shown. `all`: all of them.",
    )
    member_dim: int = Field(16, ge=1, description="Length of the vectors of each member.")
    held_out: float = Field(
        0.2, gt=0, lt=1, description="Share of the impressions by which the members are weighed."
    )
    stack_ridge: float = Field(
        10.0,
        gt=0,
        description="Penalty on the squared weights of the members, standardised; the more held-out "
        "impressions of the rarer label there are, the less it weighs.",
    )
    stack_rows: Literal["auto", "all"] = Field(
        "auto",
        description="Held-out impressions by which the members are weighed (model mf). `auto`: all; "
        "where enough of them were shown at random (policy `random`; 100 clicked, 100 not), these have the "
        "last word. `all`: all alike.",
    )
    tower_epochs: int = Field(
        24,
        ge=1,
        description="Passes over the users of a model other than mf, which learns what the library would "
        "show, while the step size falls to a tenth. The last one is kept.",
    )
    tower_rate: float = Field(0.005, gt=0, description="Step size of such a model at first.")
    tower_draws: int = Field(
        128,
        ge=2,
        description="Items on which such a model is compared with the library in each batch; popular ones "
        "are drawn more often, which is corrected for.",
    )

    @property
    def relevance_only(self) -> bool:
        """Whether nothing but the risk on the logged domain is learned."""
        return self.penalty == 0 and self.target_distance is None

    @property
    def priced(self) -> bool:
        """Whether likeness to the log has a price that is set, by itself or by a distance."""
        return self.penalty is not None or self.target_distance is not None

    def draws_for(self, items: int) -> int:
        """Items that are drawn for a batch from a catalogue of so many."""
        return min(items, self.library_draws or min(_MOST_DRAWS, max(_FEWEST_DRAWS, items // 16)))

    def epochs_for(self, impressions: int) -> int:
        """Passes over the log when there are so many impressions."""
        return self.library_epochs or min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, _ENOUGH // max(1, impressions)))
