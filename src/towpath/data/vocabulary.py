"""The user's own ids on one side, dense codes 0..n-1 on the other."""

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# An id of whatever type the data had: integers, strings, dates, UUIDs ...
Id = Any  # ids are opaque: they come from the user's file and go back unchanged

UNKNOWN = -1
# Digits that mean one 64-bit number to everybody.
_PLAIN_INTEGER = "0|-?[1-9][0-9]{0,17}"


class Vocabulary:
    """A fixed list of distinct ids; an id's code is its place in the list.

    >>> v = Vocabulary(pa.array(["ann", "bob"]))
    >>> v.codes(["bob", "eve"]), v.ids(np.array([1, 0]))
    (array([ 1, -1]), ['bob', 'ann'])
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        # UUIDs are an Arrow extension type, which cannot be searched; the bytes beneath can.
        self._stored = values.storage if isinstance(values, pa.ExtensionArray) else values

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.values.equals(other.values)

    __hash__ = None  # type: ignore[assignment]  # compared by content, so not hashable

    def ids(self, codes: NDArray[Any]) -> list[Id]:
        """The ids of these codes, as plain Python values."""
        return self.values.take(pa.array(np.asarray(codes, dtype=np.int64))).to_pylist()

    def codes(self, ids: Iterable[Id]) -> NDArray[np.int64]:
        """The codes of these ids; UNKNOWN (-1) for an id that is not in the list.

        An id written as text ("42", as on a command line) finds the number 42 and the other way round.
        """
        import pyarrow.compute as pc  # here and below: it takes as long as all the rest of a small command

        found = pc.index_in(pa.array([self._as_stored(i) for i in ids], self._stored.type), self._stored)
        return found.fill_null(UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)

    def code(self, one: Id) -> int:
        """The code of one id, or UNKNOWN."""
        if not isinstance(one, str) or isinstance(self.values, pa.ExtensionArray):
            return int(self.codes([one])[0])
        if one and (pa.types.is_string(self._stored.type) or pa.types.is_large_string(self._stored.type)):
            return self._code_of_text(one.encode())
        if pa.types.is_signed_integer(self._stored.type) and re.fullmatch(_PLAIN_INTEGER, one):
            places = np.flatnonzero(self._stored.to_numpy() == int(one))
            return int(places[0]) if len(places) else UNKNOWN
        return self._code_by_cast(one)

    def _code_of_text(self, text: bytes) -> int:
        """The code of a text that is not empty: byte by byte from its end, where ids differ soonest."""
        offsets, content = self._texts()
        places = np.flatnonzero(np.diff(offsets) == len(text))
        for byte in range(len(text) - 1, -1, -1):
            places = places[content[offsets[places] + byte] == text[byte]]
        return int(places[0]) if len(places) else UNKNOWN

    def _texts(self) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        """Where each text begins, and behind the last one the end, and the bytes of all."""
        _, offsets, content = self._stored.buffers()
        kind = np.int64 if pa.types.is_large_string(self._stored.type) else np.int32
        starts = np.frombuffer(offsets or bytes(8), kind)[self._stored.offset :][: len(self) + 1]
        return starts, np.frombuffer(content or b"", np.uint8)

    def _code_by_cast(self, one: str) -> int:
        import pyarrow.compute as pc

        try:
            found = pc.index_in(_text(one).cast(self._stored.type), self._stored)[0].as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return UNKNOWN
        return UNKNOWN if found is None else int(found)

    def id(self, code: int) -> Id:
        """The id of one code, as a plain Python value."""
        return self.values[code].as_py()

    def match(self, other: "Vocabulary") -> NDArray[np.int64]:
        """The code here of every id of another list, UNKNOWN where there is none: (len(other),)."""
        if other.values.type != self.values.type:
            return self.codes(other.values.to_pylist())
        import pyarrow.compute as pc

        found = pc.index_in(other._stored, self._stored)
        return found.fill_null(UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)

    def hashable(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The ids as lengths and bytes, equal for equal ids however Arrow lays them out."""
        stored = self._stored
        binary = pa.types.is_binary(stored.type) or pa.types.is_fixed_size_binary(stored.type)
        written = stored.cast(pa.large_binary() if binary else pa.large_string())
        offsets = np.frombuffer(written.buffers()[1], np.int64)[written.offset :][: len(written) + 1]
        content = np.frombuffer(written.buffers()[2] or b"", np.uint8)
        return np.diff(offsets), content[offsets[0] : offsets[-1]]

    def _as_stored(self, value: Id) -> Id:
        """The value in the stored type of the ids; None (never a member) where it has no such form."""
        try:
            if isinstance(self.values, pa.ExtensionArray):
                return UUID(str(value)).bytes
            if pa.types.is_string(self.values.type) or pa.types.is_large_string(self.values.type):
                return str(value)
            if isinstance(value, str):
                return pa.scalar(value).cast(self.values.type).as_py()
            return pa.scalar(value, self.values.type).as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError):
            return None


def _text(text: str) -> pa.StringArray:
    """An array of this one text, from its bytes: arrays made of Python values load pandas if it is there."""
    content = text.encode()
    offsets = np.array([0, len(content)], dtype=np.int32)
    return pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(content))
