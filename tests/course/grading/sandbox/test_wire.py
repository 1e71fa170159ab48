"""Values pass through bytes unchanged, and bytes that are no frame are refused."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np
import pytest

from rnnlab.course.grading.sandbox import wire


def sent(value: Any) -> bytes:
    stream = io.BytesIO()
    wire.send(stream, value)
    return stream.getvalue()


def received(frame: bytes) -> Any:
    start, rest = frame[: wire.START], frame[wire.START :]
    assert wire.frame_length(start, 10**9) == len(rest)
    return wire.value_of(start, rest)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6, dtype=">f8")[::2],
        np.zeros((0, 3), np.float32),
        np.array(1.5),
        np.array([True, False]),
        np.arange(3, dtype=np.int16),
        np.array([1 + 2j]),
        np.broadcast_to(np.ones(1), (3, 2)),
        np.array([np.nan, np.inf, -0.0]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays(array: np.ndarray) -> None:
    found = received(sent({"a": array}))["a"]
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(found, array)
    found += found  # the receiver's own memory


def test_nested_values() -> None:
    value = {"a": (1, 2.5, None, "ü", True, wire.Handle(3)), "b": {"c": (np.ones(2), (np.zeros(1),))}}
    found = received(sent(value))
    assert found["a"] == value["a"]
    np.testing.assert_array_equal(found["b"]["c"][0], np.ones(2))
    np.testing.assert_array_equal(found["b"]["c"][1][0], np.zeros(1))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"),
        (np.array([object()]), "array of dtype object"),
        (np.array(["text"]), "array of dtype <U4"),
        ({1, 2}, "set"),
        (10**30, "int"),
        (lambda: 0, "function"),
    ],
)
def test_other_values_send_the_name_of_their_type(value: Any, name: str) -> None:
    assert received(sent((value,))) == (wire.Foreign(name),)


def frame(header: Any, buffer: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<QQ", len(text), len(buffer)) + text + buffer


@pytest.mark.parametrize(
    "bad",
    [
        frame(b"{"),
        frame(b"\xff"),
        frame({"array": ["<f8", [2], 16]}, bytes(8)),
        frame({"array": ["<f8", [2], 8]}, bytes(8)),
        frame({"array": ["<f8", [-1], -8]}, bytes(8)),
        frame({"array": ["|O", [1], 8]}, bytes(8)),
        frame({"array": ["nonsense", [1], 8]}, bytes(8)),
        frame({"array": [[["a", "<f8"]], [1], 8]}, bytes(8)),
        frame({"code": "print()"}),
        frame({"number": "1"}),
        frame({"dict": 3}),
        frame([1, 2]),
        frame({"tuple": [{"a": 1, "b": 2}]}),
        frame(("[" * 100_000).encode()),
    ],
    ids=range(14),
)
def test_bad_frames(bad: bytes) -> None:
    with pytest.raises(wire.BadFrame):
        received(bad)


def test_length_is_limited() -> None:
    with pytest.raises(wire.BadFrame, match="expected 1,000 at most"):
        wire.frame_length(struct.pack("<QQ", 2**60, 1), 1000)
