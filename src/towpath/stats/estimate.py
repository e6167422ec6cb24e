"""One number with its interval: what every estimate in the package is handed over as."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A mean value and the interval around it.

    An end is infinite where the method cannot bound that side. `n` counts independent units, so users or
    requests where their rows depend on each other, and not rows.

    >>> Estimate(0.5, 0.4, 0.6, 100, "95 % normal interval").to_json()["interval"]
    [0.4, 0.6]
    """

    mean: float
    low: float
    high: float
    n: int
    how: str  # how the interval was made, such as "95 % gamma interval (Fay and Feuer)"
    level: float = 0.95

    @property
    def width(self) -> float:
        """The length of the interval."""
        return self.high - self.low

    def covers(self, value: float) -> bool:
        """Whether the interval holds this value, ends included."""
        return self.low <= value <= self.high

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The estimate as plain numbers and text; the ends also as one list `interval`."""
        return asdict(self) | {"interval": [self.low, self.high]}
