"""What every search shares: the step-function protocol, hypotheses, states and their rows.

A search sees a model only through

    state = model.start(source)                            one row of state for each row of source
    log_probs, state = model.advance(state, tokens)        (N, V) for the next token, given the last one, (N,)

and the tokens ``model.start_token`` and ``model.end_token``. A model that attends to its source may offer

    weights = model.attention(state)                       (N, L), those of the step that gave this state

A state is an array whose first axis is the row, or a tuple of states. Anything else in it (None, an object
that holds packed weights, say) belongs to all rows and is handed on as it is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rnnlab.ops import ops_for
from rnnlab.types import Array

State = Any

# A search advances no more rows at a time, so that memory is bounded and scores stay in the cache.
ROWS = 512


class StepModel(Protocol):
    """What a model must offer to be searched."""

    start_token: int
    end_token: int

    def start(self, source: Any) -> State:
        """The state before the first token, a row for each row of source."""
        ...

    def advance(self, state: State, tokens: Array) -> tuple[Array, State]:
        """Log-probabilities (N, V) of the token after ``tokens`` (N,), and the state then."""
        ...


class Hypothesis(NamedTuple):
    """A sentence that a search found."""

    tokens: tuple[int, ...]  # without <START> and <END>
    log_prob: float  # of the tokens and, if finished, of <END>, in nats
    score: float  # what hypotheses are ranked by: log_prob, normalised by the length if asked for
    finished: bool  # whether it ended with <END> rather than at the maximum length
    alignment: Array | None = (
        None  # (tokens and, if finished, <END>; L) attention to the source, if asked for
    )


def select(state: State, rows: Array) -> State:
    """The rows of a state, in the order asked for."""
    if isinstance(state, tuple):
        return tuple(select(part, rows) for part in state)
    return state[ops_for(state).asarray(rows)] if hasattr(state, "shape") else state


def num_rows(state: State) -> int:
    """How many rows a state has.

    Raises
    ------
    ValueError
        If there is no array in it.
    """
    rows = _num_rows(state)
    if rows is None:
        raise ValueError("the state has no array in it, expected at least one with a row for each source")
    return rows


def _num_rows(state: State) -> int | None:
    if isinstance(state, tuple):
        return next((rows for part in state if (rows := _num_rows(part)) is not None), None)
    return int(state.shape[0]) if hasattr(state, "shape") else None


def chunks(state: State, size: int) -> Iterator[tuple[Array, State]]:
    """A state in parts of at most ``size`` rows, as equal as can be: which rows, and their state."""
    N = num_rows(state)
    if 0 < N <= size:
        yield np.arange(N), state
    elif N:
        for rows in np.array_split(np.arange(N), math.ceil(N / size)):
            yield rows, select(state, rows)


def placed(values: Array, rows: Array, count: int) -> Array:
    """An array of ``count`` rows, zero but for those that are given."""
    out = np.zeros((count, *values.shape[1:]), values.dtype)
    out[rows] = values
    return out


def check_count(function: str, name: str, value: int, least: int, most: int | None = None) -> int:
    """The value as an int, once it is found to be one in the range.

    Raises
    ------
    TypeError, ValueError
        If it is no integer or out of the range.
    """
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{function}: {name} is {value!r}, expected an integer") from None
    if count < least or (most is not None and count > most):
        expected = f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"{function}: {name} is {count}, expected {expected}")
    return count


def attention_of(function: str, model: StepModel, wanted: bool) -> Callable[[State], Array] | None:
    """The model's method ``attention``, its weights as NumPy arrays, if alignments are wanted, else None.

    Raises
    ------
    ValueError
        If it does not attend.
    """
    if not wanted:
        return None
    if not attends(model):
        raise ValueError(
            f"{function}: return_alignments is True, but this {type(model).__name__} does not attend to its "
            "source"
        )

    def attention(state: State) -> Array:
        weights = model.attention(state)  # type: ignore[attr-defined]
        return ops_for(weights).asnumpy(weights)

    return attention


def attends(model: StepModel) -> bool:
    """Whether a model offers attention: it has the method, and no ``attends_to_source`` that is false."""
    return getattr(model, "attention", None) is not None and getattr(model, "attends_to_source", True)


def check_numbers(function: str, chosen: Array) -> None:
    """Check the log-probabilities of chosen tokens: NaN is the first that a search would choose.

    Raises
    ------
    ValueError
        If one is NaN.
    """
    if np.isnan(chosen).any():
        raise ValueError(f"{function}: the model's log-probabilities hold NaN")
