"""A step of beam search on CuPy, and the sentences along back pointers."""

from __future__ import annotations

import cupy as cp
import numpy as np

from rnnlab.ops.beams import LARGEST, BeamRules, BeamStep, Found, check_step, check_words
from rnnlab.ops.cuda.launch import NULL, THREADS, WARP, check_contiguous, compiled_dtype, launch
from rnnlab.types import Array

_MOST_BLOCKS = 4096
_CANDIDATE = 16  # bytes


def beam_step(
    log_probs: Array,
    before: BeamStep,
    found: Found,
    pointers: Array,
    rules: BeamRules,
    places: Array | None = None,
    penalty: Array | None = None,
) -> BeamStep:
    check_step(log_probs, before, found, pointers, rules, places, penalty)
    log_probs = cp.ascontiguousarray(log_probs)
    penalties = NULL if penalty is None else penalty
    listed = NULL if places is None else places
    check_contiguous(*before[:3], pointers, penalties, listed, *found)
    b, (_, B, K) = len(before.beams if places is None else places), pointers.shape
    S, V = before.totals.shape[1], log_probs.shape[1]
    beams, status = cp.empty(b, np.int64), cp.empty(b, np.int64)
    words, rows, totals = cp.empty((b, K), np.int64), cp.empty((b, K), np.int64), cp.empty((b, K))
    most = cp.empty(b, log_probs.dtype)
    if b:
        threads = min(max(WARP, 1 << max(V - 1, 0).bit_length()), THREADS)
        shared = (
            _CANDIDATE * (threads + K + 2 * S) + 8 * (threads + 2) + log_probs.itemsize * (threads // WARP)
        )
        arguments = (
            log_probs, penalties, listed, before.beams, before.status, before.totals, *found, pointers,
            beams, status, totals, words, rows, most, b, B, S, V, K,
            rules.end_token, rules.length, rules.last, rules.n_best, rules.norm, rules.largest_norm, LARGEST,
        )  # fmt: skip
        launch("beam_step", log_probs.dtype, min(b, _MOST_BLOCKS), threads, arguments, shared)
    return BeamStep(beams, status, totals, words, rows, most)


def beam_words(pointers: Array, beams: Array, lengths: Array, slots: Array) -> tuple[Array, Array]:
    check_words(pointers, beams, lengths, slots)
    check_contiguous(pointers, beams, lengths, slots)
    (T, _, B, K), M = pointers.shape, beams.size
    words, path = cp.empty((M, T), np.int64), cp.empty((M, T + 1), np.int64)
    if M:
        arguments = pointers, beams, lengths, slots, words, path, M, T, B, K
        blocks = min(-(-M // THREADS), _MOST_BLOCKS)
        launch("beam_words", compiled_dtype(), blocks, THREADS, arguments)
    return words, path
