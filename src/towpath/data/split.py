"""Training, validation and test parts of one table of interactions."""

from dataclasses import dataclass
from typing import Literal

from towpath.data.interactions import Interactions

Part = Literal["validation", "test"]


@dataclass(frozen=True)
class Split:
    """Three parts that share vocabularies and add up to the whole."""

    train: Interactions
    validation: Interactions
    test: Interactions
    description: str  # how it was made, e.g. "leave-last-two-out"; part of the fingerprint

    def part(self, name: Part) -> Interactions:
        """The part that is judged on."""
        return self.validation if name == "validation" else self.test
