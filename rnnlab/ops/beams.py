"""The arguments and results of the primitives of beam search: partial and finished sentences, and options.

There are B beams with at most K sentences each. A step works on b of the beams, each with S slots for partial
sentences. A log-probability of minus infinity marks an empty slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops.arguments import Declaration, add_seen
from rnnlab.types import Array

__all__ = [
    "GOING",
    "LARGEST",
    "OVER",
    "REFUSED",
    "BeamRules",
    "BeamStep",
    "Found",
    "check_step",
    "check_words",
]

OVER, GOING, REFUSED = 0, 1, 2  # status of a beam: finished, active, or invalid log-probabilities
LARGEST = 1e-2  # the largest log-probability that rounding may cause; larger ones are refused


class BeamStep(NamedTuple):
    """The partial sentences of b beams after a step."""

    beams: Array  # (b,) int64, the number of each beam
    status: Array  # (b,) int64: OVER, GOING, or REFUSED for log-probabilities that are NaN or too large
    totals: Array  # (b, S) float64, the log-probability of each sentence; without a penalty largest first
    words: Array  # (b, S) int64, its last word; 0 in an empty slot
    rows: Array  # (b, S) int64, the row of the log-probabilities that it continues
    largest: Array  # (b,) the largest log-probability found in each beam; NaN if one is NaN


class Found(NamedTuple):
    """The K best finished sentences of each of B beams, best first, and the unfinished ones.

    A sentence is identified by its beam, its length, and its slot after the last word.
    """

    scores: Array  # (B, K) float64, minus infinity where there is none
    totals: Array  # (B, K) float64, log-probabilities
    open_totals: Array  # (B, K) float64, log-probabilities of unfinished sentences when the search ended
    lengths: Array  # (B, K) int64, words
    slots: Array  # (B, K) int64
    counts: Array  # (B,) int64, the number of finished sentences so far
    open_lengths: Array  # (B,) int64


class BeamRules(NamedTuple):
    """The options of one step."""

    end_token: int
    length: int  # words before this step
    last: bool  # whether <END> is the only continuation
    norm: float  # the divisor of the log-probability of a sentence that ends at this step
    largest_norm: float  # the divisor of the longest sentence
    n_best: int  # the search of a beam ends when no sentence can enter the best n_best


_STEP = Declaration(
    "log_probs (R, V); beams (m) int64; status (m) int64; totals (m, S) float64; scores (B, K) float64; "
    "found_totals (B, K) float64; open_totals (B, K) float64; lengths (B, K) int64; slots (B, K) int64; "
    "counts (B) int64; open_lengths (B) int64; pointers (P, B, K) int64; places (b) int64; penalty (b, V)"
)
_WORDS = Declaration("pointers (T, P, B, K) int64; beams (M) int64; lengths (M) int64; slots (M) int64")
_seen: set[tuple[Any, ...]] = set()  # types, shapes and dtypes that fit


def check_step(
    log_probs: Array,
    before: BeamStep,
    found: Found,
    pointers: Array,
    rules: BeamRules,
    places: Array | None,
    penalty: Array | None,
) -> None:
    """Check the arguments of :meth:`~rnnlab.ops.Primitives.beam_step`; indices are not read.

    Raises
    ------
    TypeError, ValueError
        If arrays are of different libraries, a dtype or a shape does not fit, or <END> is not a column.
    """
    arrays = log_probs, before.beams, before.status, before.totals, *found, pointers, places, penalty
    _check("beam_step", _STEP, arrays)
    (R, V), (m, S) = log_probs.shape, before.totals.shape
    if m * S != R:
        raise InputError(f"beam_step: log_probs has {R} rows, expected {m * S}: {m} beams of {S} slots")
    if len(pointers) != 2:
        raise InputError(f"beam_step: pointers has shape {pointers.shape}, expected (2, B, K)")
    b = m if places is None else len(places)
    if penalty is not None and len(penalty) != b:
        raise InputError(f"beam_step: penalty has {len(penalty)} rows, expected one for each of {b} beams")
    if not 0 <= rules.end_token < V:
        raise InputError(f"beam_step: end_token is {rules.end_token}, expected a column of {V}")


def check_words(pointers: Array, beams: Array, lengths: Array, slots: Array) -> None:
    """Check the arguments of :meth:`~rnnlab.ops.Primitives.beam_words`; indices are not read.

    Raises
    ------
    TypeError, ValueError
        If arrays are of different libraries, or a dtype or a shape does not fit.
    """
    _check("beam_words", _WORDS, (pointers, beams, lengths, slots))
    if pointers.shape[1] != 2:
        raise InputError(f"beam_words: pointers has shape {pointers.shape}, expected (T, 2, B, K)")


def _check(function: str, declaration: Declaration, arrays: tuple[Any, ...]) -> None:
    key = function, *((type(a), getattr(a, "shape", None), getattr(a, "dtype", None)) for a in arrays)
    if key in _seen:
        return
    names = [argument.name for argument in declaration.arguments]
    declaration.check(function, dict(zip(names, arrays, strict=True)))
    kinds = {type(array).__module__.partition(".")[0] for array in arrays if array is not None}
    if len(kinds) > 1:
        raise InputTypeError(f"{function}: expected arrays of one library, got {' and '.join(sorted(kinds))}")
    add_seen(_seen, key)
