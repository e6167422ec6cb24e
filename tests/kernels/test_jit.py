import pytest

pytest.importorskip("numba")

from towpath.kernels.jit import njit


def test_what_cannot_be_stored_is_compiled_anew():
    """numba has no place to store what does not come from a file, as on a system that is read-only."""
    space = {}
    exec("def double(x):\n    return 2 * x\n", space)
    assert njit(cache=True, nogil=True)(space["double"])(21) == 42


def test_other_errors_are_not_hidden(monkeypatch):
    def broken(**_):
        raise RuntimeError("no compiler")

    monkeypatch.setattr("numba.njit", broken)
    with pytest.raises(RuntimeError, match="no compiler"):
        njit(cache=True)(lambda x: x)
