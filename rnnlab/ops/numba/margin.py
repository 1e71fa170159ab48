"""The maximum over a set of vectors, and the multi-label margin loss, as kernels."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.arrays import as_indices, zeros
from rnnlab.ops.numba.kernel import kernel, primitive, reduction
from rnnlab.ops.numba.memory import empty
from rnnlab.ops.numba.parallel import share
from rnnlab.types import Array


@primitive
def max_pool(x: Array, values: Array) -> Array:
    """values = the maximum over l of x[:, l]; return the first l that attains it."""
    slots = zeros(values.shape, np.int64)
    _max_pool(x, values, slots)
    return slots


@primitive
def max_pool_gradient(dvalues: Array, slots: Array, dx: Array) -> None:
    """dx[:, l] = dvalues where l = slots, else 0."""
    _max_pool_gradient(dvalues, as_indices(slots), dx)


@primitive
def multilabel_margin(scores: Array, words: Array, scale: float, dscores: Array) -> Array:
    """losses = sum over words j and other columns i of max(0, 1 - (s_j - s_i))."""
    losses = empty(scores.shape[0], scores.dtype)
    _multilabel_margin(scores, as_indices(words), scale, dscores, losses)
    return losses


@kernel(
    "T[:,:,::1], T[:,::1], int64[:,::1]",
    arguments="x (n, L, V); values! (n, V); slots! (n, V) 0..L",
    parallel_from=1 << 17,
)
def _max_pool(part, parts, x, values, slots):
    for row in share(x.shape[0], part, parts):
        most, place = values[row], slots[row]
        for j in range(most.size):
            most[j], place[j] = x[row, 0, j], 0
        for slot in range(1, x.shape[1]):
            candidates = x[row, slot]
            for j in range(most.size):
                value, best = candidates[j], most[j]
                larger = value > best or (value != value and best == best)  # NaN is the largest
                most[j] = value if larger else best
                place[j] = slot if larger else place[j]


@kernel("T[:,::1], int64[:,::1], T[:,:,::1]", parallel_from=1 << 14)
def _max_pool_gradient(part, parts, dvalues, slots, dx):
    for row in share(dx.shape[0], part, parts):
        d, place = dvalues[row], slots[row]
        for slot in range(dx.shape[1]):
            out = dx[row, slot]
            for j in range(out.size):
                out[j] = d[j] if place[j] == slot else out.dtype.type(0)


@kernel(
    "T[:,::1], int64[:,::1], T, T[:,::1], T[::1]",
    arguments="scores (M, V); words (M, K) -1..V; dscores! (M, V); losses! (M,)",
    parallel_from=1 << 14,
)
def _multilabel_margin(part, parts, scores, words, scale, dscores, losses):
    """Until the end d[word] is -1, then -2 minus the number of the word's terms above zero.

    For any other column j, d[j] is the number of its terms above zero.
    """
    for row in share(scores.shape[0], part, parts):
        s, d, present, loss = scores[row], dscores[row], words[row], scores.dtype.type(0)
        for j in range(d.size):
            d[j] = 0
        for k in range(present.size):
            if present[k] >= 0:
                d[present[k]] = -1
        for k in range(present.size):
            word = present[k]
            if word >= 0 and d[word] == -1:  # a repeated word is counted once
                total, count = _terms(s, d, scores.dtype.type(1) - s[word])
                loss += total
                d[word] = -2 - count
        losses[row] = loss
        for j in range(d.size):
            d[j] = scale * (d[j] + 2 if d[j] < 0 else d[j])


@reduction
def _terms(s, d, shift):
    """The sum and the number of the terms above zero of one word; each adds 1 to its column of d."""
    zero, one = s.dtype.type(0), s.dtype.type(1)
    total, count = zero, zero
    for j in range(s.size):
        gap = s[j] + shift
        active = not gap <= zero and d[j] >= zero  # NaN is active, so that it reaches the loss
        total += gap if active else zero
        unit = one if active else zero
        d[j] += unit
        count += unit
    return total, count
