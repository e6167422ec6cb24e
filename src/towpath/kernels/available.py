"""Whether loops can be compiled: numba is there (the extra `fast`)."""

from importlib.util import find_spec

AVAILABLE = find_spec("numba") is not None
