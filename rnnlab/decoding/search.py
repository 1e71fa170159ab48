"""What every search shares: the step-function protocol, hypotheses, forbidden tokens.

A search sees a model only through

    state = model.start(source)                            one row of state for each row of source
    log_probs, state = model.advance(state, tokens)        (N, V) for the next token, given the last one, (N,)

and the tokens ``model.start_token`` and ``model.end_token``. A state is an array whose first axis is the row,
None, or a tuple of states.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

Array = Any
State = Any


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
    score: float  # what hypotheses are ranked by: log_prob, divided by a power of the length if asked for
    finished: bool  # whether it ended with <END> rather than at the maximum length


def select(state: State, rows: Array) -> State:
    """The rows of a state, in the order asked for."""
    if state is None:
        return None
    if isinstance(state, tuple):
        return tuple(select(part, rows) for part in state)
    return state[rows]


def num_rows(state: State) -> int:
    """How many rows a state has.

    Raises
    ------
    ValueError
        If there is no array in it.
    """
    if isinstance(state, tuple):
        for part in state:
            if part is not None:
                return num_rows(part)
    elif state is not None:
        return int(state.shape[0])
    raise ValueError("the state has no array in it, expected at least one with a row for each source")


def forbidden(log_probs: Array, tokens: tuple[int, ...]) -> Array:
    """The log-probabilities (N, V) with those of ``tokens`` at minus infinity."""
    if tokens:
        log_probs = log_probs.copy()
        log_probs[:, list(tokens)] = -np.inf
    return log_probs


def checked(function: str, model: StepModel, max_length: int, forbid: Iterable[int]) -> tuple[int, ...]:
    """The forbidden tokens as a tuple, once the arguments of a search are found to be right.

    Raises
    ------
    ValueError
        If the maximum length is below 1, <END> is forbidden, or the model has no <START> or <END>.
    """
    tokens = tuple(int(token) for token in forbid)
    if max_length < 1:
        raise ValueError(f"{function}: max_length is {max_length}, expected at least 1")
    for word, token in (("<START>", model.start_token), ("<END>", model.end_token)):
        if token is None:
            raise ValueError(f"{function}: the model's vocabulary has no {word}, which decoding needs")
    if model.end_token in tokens:
        raise ValueError(f"{function}: forbid holds <END> ({model.end_token}), and nothing could ever end")
    return tokens
