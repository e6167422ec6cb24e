"""Who may ask, and how often."""

import hmac
from collections.abc import Callable
from pathlib import Path

from towpath.errors import ConfigError
from towpath.serving.http.messages import Refused

# How long a list of tokens is believed before its file is looked at again.
_SECONDS_BETWEEN_LOOKS = 1.0
# Clients whose rate is remembered; beyond it the oldest are forgotten.
_MOST_CLIENTS = 10_000


class Tokens:
    """The tokens of a file, one on each line, read again when the file changes; all are fine without one."""

    def __init__(self, file: str | None, seconds: Callable[[], float]) -> None:
        self._path = None if file is None else Path(file)
        self._seconds = seconds
        self._looked = float("-inf")
        self._changed = -1
        self._tokens: list[bytes] = []
        if self._path is not None:
            self._tokens = _read(self._path)
            if not self._tokens:
                raise ConfigError(f"{self._path} has no tokens; write one on each line.")

    @property
    def needed(self) -> bool:
        """Whether a token is asked for at all."""
        return self._path is not None

    def check(self, header: bytes | None) -> None:
        """Nothing, unless the header `Authorization: Bearer TOKEN` is missing or wrong."""
        if self._path is None:
            return
        self._look()
        given = (header or b"").removeprefix(b"Bearer ")
        # Every token is compared, each in constant time, so that time says nothing.
        matches = [hmac.compare_digest(given, token) for token in self._tokens]
        if not any(matches):
            what = "This token is not valid here" if given else "This needs a token"
            raise Refused(401, f"{what}: send the header Authorization: Bearer TOKEN.")

    def _look(self) -> None:
        now = self._seconds()
        if self._path is None or now - self._looked < _SECONDS_BETWEEN_LOOKS:
            return
        self._looked = now
        try:
            changed = self._path.stat().st_mtime_ns
            if changed != self._changed:
                self._tokens, self._changed = _read(self._path), changed
        except (OSError, ConfigError):  # being replaced; the old tokens hold until it is there again
            return


def _read(path: Path) -> list[bytes]:
    try:
        return [line.strip() for line in path.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise ConfigError(f"The token file {path} cannot be read: {error.strerror}.") from error


class RateLimit:
    """So many requests a second for each client, with as many saved up as one second has; 0 is no limit."""

    def __init__(self, per_second: float, seconds: Callable[[], float]) -> None:
        self._rate = per_second
        self._seconds = seconds
        self._clients: dict[str, tuple[float, float]] = {}  # what is left, and when that was

    def check(self, client: str) -> None:
        """Nothing, unless this client asks too often."""
        if not self._rate:
            return
        now, most = self._seconds(), max(1.0, self._rate)
        left, then = self._clients.pop(client, (most, now))
        left = min(most, left + (now - then) * self._rate)
        self._clients[client] = (left - 1 if left >= 1 else left, now)
        if len(self._clients) > _MOST_CLIENTS:
            del self._clients[next(iter(self._clients))]
        if left < 1:
            raise Refused(429, f"At most {self._rate:g} requests a second are answered; ask more slowly.")
