"""Seeded ways to damage bytes and JSON values."""

import json
from typing import Any

import numpy as np

Rng = np.random.Generator

TOKENS = (
    b"\r", b"\n", b"\r\n", b'"', b'""', b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"nan", b"-inf", b"1e999",
    b"1e30", b"18446744073709551616", b"-1", b"", b",", b";", b"\t", b"::", b"{", b"}", b"[" * 3000,
    b"'; DROP TABLE x; --", b"\xed\xa0\x80", b"\xf0\x9f\x8e\x89", b"<script>alert(1)</script>",
    b"2020-02-30", b"\x1b[2J", b"null", b" ",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**70, 10**400, 1e308, -0.5, float("nan"), float("inf"), "", "../x",
    "/etc/passwd", "x" * 5000, "\0", "☃", [], {}, [[[[]]]], {"a": {"b": {}}}, "mf", "0" * 64, 1e-320,
)  # fmt: skip


def damaged(data: bytes, rng: Rng) -> bytes:
    """The bytes after one to four mutations."""
    for _ in range(int(rng.integers(1, 5))):
        data = _MUTATIONS[rng.integers(len(_MUTATIONS))](data, rng)
    return data


def _place(data: bytes, rng: Rng) -> int:
    return int(rng.integers(len(data) + 1))


def _flip(data: bytes, rng: Rng) -> bytes:
    if not data:
        return data
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def _overwrite(data: bytes, rng: Rng) -> bytes:
    start, length = _place(data, rng), int(rng.integers(1, 40))
    filler = (b"\0" * length, b"\xff" * length, rng.bytes(length))[rng.integers(3)]
    return data[:start] + filler + data[start + length :]


def _delete(data: bytes, rng: Rng) -> bytes:
    start = _place(data, rng)
    return data[:start] + data[start + int(rng.integers(1, 60)) :]


def _repeat(data: bytes, rng: Rng) -> bytes:
    start, length = _place(data, rng), int(rng.integers(1, 200))
    return data[:start] + data[start : start + length] * int(rng.integers(2, 5)) + data[start + length :]


def _cut(data: bytes, rng: Rng) -> bytes:
    return data[: _place(data, rng)]


def _insert(data: bytes, rng: Rng) -> bytes:
    start = _place(data, rng)
    return data[:start] + TOKENS[rng.integers(len(TOKENS))] + data[start:]


def _replace_field(data: bytes, rng: Rng) -> bytes:
    """Another field in place of one between two separators."""
    for separator in (b",", b"\t", b"::", b": "):
        parts = data.split(separator)
        if len(parts) > 2:
            parts[rng.integers(1, len(parts))] = TOKENS[rng.integers(len(TOKENS))]
            return separator.join(parts)
    return data


def _swap(data: bytes, rng: Rng) -> bytes:
    one, two = sorted((_place(data, rng), _place(data, rng)))
    return data[two:] + data[one:two] + data[:one]


_MUTATIONS = (_flip, _overwrite, _delete, _repeat, _cut, _insert, _insert, _replace_field, _swap)


def changed(value: Any, rng: Rng) -> Any:
    """A JSON value with one part of it replaced, removed or added."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = list(value)[rng.integers(len(value))]
        how = rng.random()
        if how < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if how < 0.15:
            return {**value, str(rng.integers(100)): anything(rng)}
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = int(rng.integers(len(value)))
        return [*value[:place], changed(value[place], rng), *value[place + 1 :]]
    return anything(rng)


def anything(rng: Rng) -> Any:
    """One of the values that break things."""
    return VALUES[rng.integers(len(VALUES))]


def deep(rng: Rng) -> bytes:
    """JSON that is nested deeper than any parser likes."""
    return (b'{"a":', b"[")[rng.integers(2)] * int(rng.integers(900, 60_000))


def as_json(value: Any, rng: Rng) -> bytes:
    """The value as text, now and then damaged."""
    if rng.random() < 0.03:
        return deep(rng)
    text = json.dumps(value).encode()
    return damaged(text, rng) if rng.random() < 0.25 else text
