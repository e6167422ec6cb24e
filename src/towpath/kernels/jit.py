"""numba's `njit` that also works where compiled loops can be stored nowhere."""

from collections.abc import Callable
from typing import Any

import numba


def njit(*, cache: bool, **options: Any) -> Callable[[Any], Any]:  # a function, and the same compiled
    """Compile when called first. Stored loops are read back; on a read-only system each process compiles."""

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(cache=cache, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return numba.njit(**options)(function)

    return decorate
