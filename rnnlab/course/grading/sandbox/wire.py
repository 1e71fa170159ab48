"""Values as bytes: numbers, strings and NumPy arrays, and tuples, lists and dicts of them; never code.

A frame is the length of its header, the length of its arrays, the header in JSON, and the arrays' bytes.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np

_KINDS = "biufc"  # kinds of dtypes: booleans and numbers
_LENGTHS = struct.Struct("<QQ")


class Handle(NamedTuple):
    """The number of a cache that stays in the student's process."""

    number: int


class Foreign(NamedTuple):
    """The type of a value that is not sent."""

    type_name: str


class BadFrame(ValueError):
    """The bytes are not a frame."""


def send(stream: BinaryIO, value: Any) -> None:
    """Write a value."""
    arrays: list[bytes] = []
    header = json.dumps(_encoded(value, arrays)).encode()
    stream.write(_LENGTHS.pack(len(header), sum(map(len, arrays))))
    stream.write(header)
    for array in arrays:
        stream.write(array)
    stream.flush()


def frame_length(start: bytes, limit: int) -> int:
    """The number of bytes that follow the first 16 of a frame.

    Raises
    ------
    BadFrame
        If it is more than ``limit``.
    """
    length = sum(_LENGTHS.unpack(start))
    if length > limit:
        raise BadFrame(f"{length:,} bytes, expected {limit:,} at most")
    return length


def value_of(start: bytes, rest: bytes) -> Any:
    """The value of a frame, from its first 16 bytes and the others.

    Raises
    ------
    BadFrame
        If the bytes are not what :func:`send` writes.
    """
    header, _ = _LENGTHS.unpack(start)
    try:
        return _decoded(json.loads(rest[:header]), memoryview(rest)[header:])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise BadFrame(f"{type(error).__name__}: {error}") from None


START = _LENGTHS.size  # the number of bytes before the header


def _encoded(value: Any, arrays: list[bytes]) -> Any:
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    if isinstance(value, Handle):
        return {"handle": value.number}
    if isinstance(value, Foreign):
        return {"foreign": value.type_name}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _KINDS:
        array = np.asarray(value)
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
        arrays.append(native.tobytes())
        return {"array": [native.dtype.str, list(array.shape), len(arrays[-1])]}
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        exact = type(value) in (bool, float) or abs(value) < 2**63
        return {"number": value} if exact else {"foreign": "int"}
    if isinstance(value, dict):
        return {"dict": [[str(key), _encoded(each, arrays)] for key, each in value.items()]}
    if isinstance(value, tuple | list):
        return {"list" if isinstance(value, list) else "tuple": [_encoded(each, arrays) for each in value]}
    is_array = isinstance(value, np.ndarray | np.generic)
    return {"foreign": f"array of dtype {value.dtype}" if is_array else type(value).__name__}


def _decoded(tree: Any, buffer: memoryview) -> Any:
    place = 0

    def decode(node: Any) -> Any:
        nonlocal place
        if node is None or isinstance(node, str):
            return node
        ((kind, content),) = node.items()
        if kind == "number":
            if not isinstance(content, bool | int | float):
                raise ValueError("not a number")
            return content
        if kind == "handle":
            return Handle(int(content))
        if kind == "foreign":
            return Foreign(str(content))
        if kind == "dict":
            return {str(key): decode(each) for key, each in content}
        if kind == "tuple":
            return tuple(decode(each) for each in content)
        if kind == "list":
            return [decode(each) for each in content]
        if kind != "array":
            raise ValueError(f"unknown kind {kind!r}")
        name, shape, length = content
        dtype = np.dtype(name)
        if dtype.kind not in _KINDS or min(shape, default=0) < 0:
            raise ValueError("not an array of numbers")
        if math.prod(shape) * dtype.itemsize != length or place + length > len(buffer):
            raise ValueError("an array without its bytes")
        array = np.frombuffer(buffer[place : place + length], dtype).reshape(shape).copy()
        place += length
        return array

    return decode(tree)
