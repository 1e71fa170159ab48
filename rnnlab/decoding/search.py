"""Code that all searches share: the protocol of a step function, hypotheses, and checks.

A search uses only these members of a model:

    state = model.start(source)                            one row of state for each row of source
    log_probs, state = model.advance(state, tokens)        (N, V) for the next token, given the last one, (N,)

and the tokens ``model.start_token`` and ``model.end_token``. The argument ``tokens`` is a NumPy array, or one
of the library of the log-probabilities. A model that attends to its source may offer

    weights = model.attention(state)                       (N, L), those of the step that gave this state

:mod:`rnnlab.decoding.state_rows` describes states.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from rnnlab.decoding.state_rows import DecodingState
from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import ops_for
from rnnlab.ops.beams import LARGEST
from rnnlab.types import Array

Function = TypeVar("Function", bound=Callable[..., Any])


class StepModel(Protocol):
    """The members of a model that a search needs. A model may give the arguments other names."""

    start_token: int
    end_token: int

    def start(self, source: Any, /) -> DecodingState:
        """The state before the first token, with a row for each row of source."""
        ...

    def advance(self, state: DecodingState, tokens: Array, /) -> tuple[Array, DecodingState]:
        """Log-probabilities (N, V) of the token after ``tokens`` (N,), and the state after ``tokens``.

        The first tokens are a NumPy array. On a GPU, all later ones of a beam search are CuPy arrays.
        """
        ...


def check_step_model(function: str, name: str, model: Any) -> None:
    """Check that a model has the members of :class:`StepModel`; ``name`` is the argument.

    Raises
    ------
    TypeError
        If it lacks one.
    """
    missing = [
        member for member in ("start", "advance", "start_token", "end_token") if not hasattr(model, member)
    ]
    if missing:
        hint = "; for several models make an Ensemble of them" if isinstance(model, list | tuple) else ""
        raise InputTypeError(
            f"{function}: {name} is a {type(model).__name__} without {', '.join(missing)}, expected a model "
            f"that writes sentences{hint}"
        )


def advanced(
    function: str, model: StepModel, state: DecodingState, tokens: Array
) -> tuple[Array, DecodingState]:
    """The result of ``model.advance(state, tokens)``, checked.

    Raises
    ------
    TypeError, ValueError
        If the log-probabilities are not a NumPy or CuPy array (N, V) of float32 or float64.
    """
    log_probs, state = model.advance(state, tokens)
    ops_for(log_probs)
    if log_probs.dtype not in (np.float32, np.float64):
        raise InputTypeError(
            f"{function}: the model's log-probabilities have dtype {log_probs.dtype}, "
            "expected float32 or float64"
        )
    if log_probs.ndim != 2 or len(log_probs) != len(tokens):
        raise InputError(
            f"{function}: the model's log-probabilities have shape {log_probs.shape}, "
            f"expected (N, V) with N = {len(tokens)}"
        )
    return log_probs, state


def gives_new_array(advance: Function) -> Function:
    """Decorate an ``advance`` that returns a new array at each call, which a search may overwrite.

    Without it a search copies log-probabilities before it forbids words in them.
    """
    advance.gives_new_array = True  # type: ignore[attr-defined]
    return advance


class Hypothesis(NamedTuple):
    """A sentence that a search found.

    Two are equal if all fields are, including every number of their alignments.

    Attributes
    ----------
    tokens : tuple of int
        Without <START> and <END>.
    log_prob : float
        The log-probability of the tokens and, if ``finished``, of <END>, in nats.
    score : float
        The value that hypotheses are ranked by: ``log_prob``, or ``log_prob`` normalised by the length.
    finished : bool
        Whether it ends with <END>. Beam search ends a sentence of ``max_length`` words with <END>. Greedy
        decoding and sampling return such a sentence unfinished, unless the next token is <END>.
    alignment : (steps, L) array, or None
        Attention to the source, with ``return_alignments=True``: a row for each token and, if ``finished``,
        one for <END>. L is that of the model's ``attention``; for sentences, the length of the longest source
        of the batch.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    finished: bool
    alignment: Array | None = None

    def __eq__(self, other: object) -> bool:
        """As for other tuples, where the comparison of two arrays would give an array."""
        if not isinstance(other, tuple):
            return NotImplemented
        own: tuple[Any, ...] = self
        return own[:-1] == other[:-1] and np.array_equal(own[-1], other[-1])

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash((*self[:-1], None))  # without an alignment, that of an equal tuple


def check_count(function: str, name: str, value: int, least: int, most: int | None = None) -> int:
    """Return ``value`` as an int after checking its range.

    Raises
    ------
    TypeError, ValueError
        If it is not an integer, or is less than ``least`` or more than ``most``.
    """
    try:
        count = operator.index(value)
    except TypeError:
        count = None
    if count is None or isinstance(value, bool):
        raise InputTypeError(f"{function}: {name} is {value!r}, expected an integer")
    if count < least or (most is not None and count > most):
        expected = f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{function}: {name} is {count}, expected {expected}")
    return count


def attention_of(function: str, model: StepModel, wanted: bool) -> Callable[[DecodingState], Array] | None:
    """The model's method ``attention`` with NumPy arrays as results; None if ``wanted`` is false.

    Raises
    ------
    ValueError
        If ``wanted`` is true and the model does not attend to its source.
    """
    if not wanted:
        return None
    if not attends(model):
        raise InputError(
            f"{function}: return_alignments is True, but this {type(model).__name__} does not attend to its "
            "source"
        )

    def attention(state: DecodingState) -> Array:
        weights = model.attention(state)  # type: ignore[attr-defined]
        return ops_for(weights).asnumpy(weights)

    return attention


def attends(model: StepModel) -> bool:
    """Whether a model has the method ``attention``, and ``attends_to_source`` is true or absent."""
    return getattr(model, "attention", None) is not None and getattr(model, "attends_to_source", True)


def check_numbers(function: str, chosen: Array) -> None:
    """Check the log-probabilities of chosen tokens or sentences. NaN is chosen first, as it sorts first.

    Raises
    ------
    ValueError
        If one is NaN, or exceeds 0 by more than rounding.
    """
    if (chosen <= LARGEST).all():
        return
    if np.isnan(chosen).any():
        raise InputError(f"{function}: the model's log-probabilities hold NaN")
    raise InputError(
        f"{function}: the model's log-probabilities hold {float(chosen.max()):g}, expected at most 0: the "
        "log_softmax of scores"
    )
