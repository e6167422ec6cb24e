"""What time it is; the only place of the server that looks at a clock."""

import time
from collections.abc import Callable

# Microseconds since 1970, UTC. Simulations bring their own.
Clock = Callable[[], int]


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


def seconds() -> float:
    """Seconds of a clock that only goes forward, for durations."""
    return time.perf_counter()
