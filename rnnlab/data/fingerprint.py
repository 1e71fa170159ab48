"""Fingerprints of data: sizes and hashes that distinguish two data sets without reading all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from rnnlab.types import Array

Fingerprint = dict[str, str]

_SAMPLED_ROWS = 8


def array_hash(*arrays: np.ndarray) -> str:
    """A hash of the values and shapes of arrays, integers as int64 and other numbers as float32."""
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        values = array.astype("<i8" if array.dtype.kind in "iu" else "<f4")
        digest.update(repr(values.shape).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def joined_hash(length: int, parts: Iterable[np.ndarray]) -> str:
    """:func:`array_hash` of the array of integers (length,) that the parts form when concatenated."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(repr((length,)).encode())
    for part in parts:
        digest.update(part.astype("<i8").tobytes())
    return digest.hexdigest()


def sample_hash(rows: Array) -> str:
    """A hash of up to 8 equally spaced rows; of lazy features only these are read."""
    if not len(rows):
        return array_hash(np.zeros(0))
    return array_hash(
        np.asarray(rows[np.unique(np.linspace(0, len(rows) - 1, _SAMPLED_ROWS).astype(np.intp))])
    )


def word_hash(words: Iterable[str]) -> str:
    """A hash of words and their order."""
    return hashlib.blake2b("\n".join(words).encode(), digest_size=8).hexdigest()
