"""What a server is told when it starts."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.serving.clock import Clock, now
from towpath.serving.exposure_log.store import LogSettings

HOLDOUT = "holdout"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class ArmSettings:
    """An arm of the experiment: its name, the folder of its model, and its weight among the arms."""

    name: str
    folder: str
    weight: float = 1.0


@dataclass(frozen=True)
class Exploration:
    """How lists depart from the best one: `epsilon` or `softmax` above zero, not both."""

    epsilon: float = 0.0
    softmax: float = 0.0  # temperature

    def __post_init__(self) -> None:
        """Both at once would have no propensities that anybody could read."""
        if not 0 <= self.epsilon <= 1:
            raise ConfigError(f"--epsilon must lie between 0 and 1, and {self.epsilon:g} was given.")
        if self.softmax < 0:
            raise ConfigError(f"--softmax is a temperature above 0, and {self.softmax:g} was given.")
        if self.epsilon and self.softmax:
            raise ConfigError("Explore either with --epsilon or with --softmax, not with both.")


@dataclass(frozen=True)
class RestRules:
    """What is not shown again, or discounted, because the same user was shown it; by default nothing."""

    filter_shown: bool = False  # whatever was ever shown
    max_showings: int | None = None  # what was shown so often or more
    discount: bool = False  # what was shown lately, by the time since, as repeats in the log of a run say


NOTHING_RESTS = RestRules()


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    most_k: int = 100
    most_ids: int = 10_000  # in one list of a request
    most_bytes: int = 1_000_000  # of a body
    per_second: float = 0.0  # requests of one client address and worker; 0: no limit


@dataclass(frozen=True)
class Access:
    """Who may ask: files with a token on each line. Without one, everybody who can reach the port."""

    token_file: str | None = None
    admin_token_file: str | None = None


@dataclass(frozen=True)
class ServerSettings:
    """All of it."""

    arms: tuple[ArmSettings, ...]
    log: LogSettings | None  # None: nothing is logged, for measurements alone
    salt: str = "towpath"
    holdout: float = 0.0
    exploration: Exploration = field(default_factory=Exploration)
    rest: RestRules = NOTHING_RESTS
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    retain_days: float = 0.0  # 0: for ever
    workers: int = 1

    def __post_init__(self) -> None:
        """What cannot be is said before anything is loaded."""
        names = [arm.name for arm in self.arms]
        if not names:
            raise ConfigError("A server needs at least one --arm NAME=RUN.")
        twice = next((name for name in names if names.count(name) > 1 or name == HOLDOUT), None)
        if twice is not None:
            raise ConfigError(f"Arms need different names other than {HOLDOUT!r}, and {twice!r} was given.")
        if any(arm.weight < 0 for arm in self.arms) or sum(arm.weight for arm in self.arms) <= 0:
            raise ConfigError("Weights of arms must not be negative, and one must be above zero.")
        if not 0 <= self.holdout < 1:
            raise ConfigError(f"--holdout is a share from 0 to below 1, and {self.holdout:g} was given.")

    @property
    def shares(self) -> dict[str, float]:
        """The share of the users that each arm gets, the holdout last if there is one."""
        total = sum(arm.weight for arm in self.arms)
        shares = {arm.name: (1 - self.holdout) * arm.weight / total for arm in self.arms}
        return shares | ({HOLDOUT: self.holdout} if self.holdout else {})

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """The same for another process."""
        return asdict(self)

    @staticmethod
    def from_json(stored: dict[str, Any]) -> "ServerSettings":
        """What `to_json` gave."""
        kinds = {"exploration": Exploration, "rest": RestRules, "limits": Limits, "access": Access}
        parts: dict[str, Any] = {name: kind(**stored[name]) for name, kind in kinds.items()}
        parts["arms"] = tuple(ArmSettings(**arm) for arm in stored["arms"])
        parts["log"] = None if stored["log"] is None else LogSettings(**stored["log"])
        return ServerSettings(**{**stored, **parts})


@dataclass(frozen=True)
class Place:
    """Which worker this is, and where the workers meet; `seed` is that of exploration."""

    worker: int = 0
    folder: Path | None = None
    seed: int = 0
    clock: Clock = now


@dataclass(frozen=True)
class Tls:
    """Files of the certificate and its key, where the server itself speaks TLS."""

    certificate: str | None = None
    key: str | None = None
