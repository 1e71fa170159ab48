"""Teacher forcing: a batch of sentences as input tokens and target tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import as_array, as_padded, as_tokens, check_real
from rnnlab.layers.recurrent.packing import as_rows, lengths_to_last
from rnnlab.models.parts.padding import padded_tokens, real_steps, rounded_count, rounded_up
from rnnlab.ops import Primitives, ops_for
from rnnlab.types import Array


class TeacherForced(NamedTuple):
    """Inputs and targets of sentences: inputs are all tokens but the last, targets all but the first.

    There are M real targets; padding is not a target. The arrays are NumPy arrays until :meth:`on` copies
    those that the losses need to a device.
    """

    inputs: Array  # (N, T) input tokens
    lengths: Array  # (N,) number of steps to compute: up to the last real target
    target_rows: Array  # (M,) the rows of the real targets in an array (N T, D)
    targets: Array  # (M,) the real targets
    weights: Array | None = None  # (M,) weights of the losses, if they differ; 0 for padding
    mask: Array | None = None  # (N, T) of a padded batch, 1 up to the last real target

    @classmethod
    def of(
        cls,
        tokens: Array,
        null_token: int,
        lengths: Array | None = None,
        sentence_weights: Array | None = None,
    ) -> TeacherForced:
        """From sentences (N, L) that end with padding; L is at least 2.

        Parameters
        ----------
        tokens : (N, L)
        null_token : int
            Padding.
        lengths : (N,), optional
            The number of targets of each sentence. All of them are real then, including any ``<NULL>``.
        sentence_weights : (N,), optional
            The weight of each sentence's loss, which applies to all real targets of the sentence.
        """
        targets = tokens[:, 1:]
        if lengths is None:
            is_real = targets != null_token
            lengths = lengths_to_last(is_real)
        else:
            is_real = np.arange(targets.shape[1]) < lengths[:, None]
        T = int(lengths.max(initial=0))
        rows = np.flatnonzero(is_real[:, :T])
        weights = None if sentence_weights is None else sentence_weights[rows // max(T, 1)]
        return cls(tokens[:, :T], lengths, rows, targets[:, :T].reshape(-1)[rows], weights)

    @classmethod
    def checked(
        cls,
        function: str,
        name: str,
        tokens: Array,
        rows: int | None,
        vocabulary_size: int,
        null_token: int,
        *,
        sentence_weights: Array | None = None,
        sentence_lengths: Array | None = None,
        several: bool = True,
    ) -> TeacherForced:
        """From sentences (N, L), or with ``several`` also (N, S, L), after a check of all arguments."""
        tokens = check_sentences(function, name, tokens, rows, vocabulary_size, several=several)
        *shape, L = tokens.shape
        lengths = None
        if sentence_lengths is not None:
            lengths = check_sentence_lengths(function, sentence_lengths, tuple(shape), L - 1).reshape(-1)
        if sentence_weights is not None:
            sentence_weights = check_sentence_weights(function, sentence_weights, tuple(shape)).reshape(-1)
        return cls.of(tokens.reshape(-1, L), null_token, lengths, sentence_weights)

    @property
    def num_targets(self) -> int:
        """M."""
        return len(self.targets)

    def on(self, ops: Primitives) -> TeacherForced:
        """The same with ``target_rows``, ``targets`` and ``weights`` on the device of these primitives."""
        weights = None if self.weights is None else ops.asarray(self.weights)
        return self._replace(
            target_rows=ops.indices(self.target_rows), targets=ops.indices(self.targets), weights=weights
        )

    def scaled(self, divisor: float, dtype: np.dtype) -> TeacherForced:
        """The same with weights divided by ``divisor``, in the dtype of the parameters."""
        if self.weights is None:
            return self
        return self._replace(weights=(self.weights / divisor).astype(dtype))

    def padded(self, divisor: float, null_token: int, dtype: np.dtype) -> dict[str, np.ndarray]:
        """The padded arrays for :meth:`of_padded`. The weights of real targets are divided by ``divisor``.

        M is rounded up too, with rows of padding whose weight is 0, since scoring is often most of the work
        of a step.
        """
        (N, T), longer = self.inputs.shape, rounded_up(self.inputs.shape[1])
        sentences, steps = np.divmod(self.target_rows, max(T, 1))
        rows = sentences * longer + steps
        others = np.setdiff1d(np.arange(N * longer), rows, assume_unique=True)
        rows = np.concatenate([rows, others[: rounded_count(len(rows), N * longer) - len(rows)]])
        targets, weights = np.full(len(rows), null_token, np.int64), np.zeros(len(rows), dtype)
        targets[: self.num_targets] = self.targets
        weights[: self.num_targets] = (1 if self.weights is None else self.weights) / divisor
        return {
            "read": padded_tokens(self.inputs, longer, null_token),
            "target_rows": rows,
            "targets": targets,
            "weights": weights,
            "mask": real_steps(self.lengths, longer, dtype),
        }

    @classmethod
    def of_padded(cls, arrays: Mapping[str, Array]) -> TeacherForced:
        """From the arrays of :meth:`padded`, on a device. All steps are computed."""
        read, *others = (arrays[name] for name in ("read", "target_rows", "targets", "weights", "mask"))
        N, T = read.shape
        return cls(read, np.full(N, T), *others)

    @property
    def is_padded(self) -> bool:
        """Whether the batch was made by :meth:`of_padded`."""
        return self.mask is not None

    def gather(self, array: Array) -> Array:
        """The rows of the targets, (M, D), of an array with a row for each step, (N, T, D)."""
        ops = ops_for(array)
        out = ops.empty((len(self.target_rows), array.shape[2]), array.dtype)
        ops.take(as_rows(array), self.target_rows, out)
        return out

    def spread(self, rows: Array) -> Array:
        """The inverse of :meth:`gather`: (M, D) to (N, T, D), zero in all other rows."""
        (N, T), D, ops = self.inputs.shape, rows.shape[1], ops_for(rows)
        out = ops.zeros((N * T, D), rows.dtype)
        ops.put(rows, self.target_rows, out)
        return out.reshape(N, T, D)


def check_sentences(
    function: str, name: str, tokens: Array, rows: int | None, vocabulary_size: int, *, several: bool = False
) -> np.ndarray:
    """Check sentences (N, L), or with ``several`` also S of each input, (N, S, L); convert them to int64.

    Raises
    ------
    ValueError
        If the number of rows is not ``rows`` (None allows any), there is no sentence of a row, or L is less
        than 2.
    IndexError, TypeError
        If a token is out of range or not an integer.
    """
    tokens = as_padded(function, name, tokens)
    fits = tokens.ndim == 2 or (several and tokens.ndim == 3 and tokens.shape[1] > 0)
    if not fits or rows not in (None, tokens.shape[0]) or tokens.shape[-1] < 2:
        expected = "(N, L) or (N, S, L)" if several else "(N, L)"
        of_inputs = "" if rows is None else f"N = {rows} as the inputs and "
        raise InputError(
            f"{function}: {name} has shape {tokens.shape}, expected {expected} "
            f"with {of_inputs}L of at least 2"
        )
    return as_tokens(function, name, tokens, vocabulary_size)


def check_sentence_weights(function: str, weights: Array, shape: tuple[int, ...]) -> np.ndarray:
    """Check weights of sentences, which may be negative, and convert them to float64.

    Raises
    ------
    ValueError, TypeError
        If their shape is not ``shape``, or a weight is not a finite real number.
    """
    weights = as_array(f"{function}: sentence_weights", weights)
    check_real(f"{function}: sentence_weights", weights)
    _check_one_each(function, "sentence_weights", weights, shape)
    finite = np.isfinite(weights)
    if not finite.all():
        at = _first(~finite)
        raise InputError(
            f"{function}: sentence_weights[{_written(at)}] is {weights[at]}, expected finite numbers, which "
            "may be negative"
        )
    return weights.astype(np.float64)


def check_sentence_lengths(function: str, lengths: Array, shape: tuple[int, ...], most: int) -> np.ndarray:
    """Check the numbers of targets of sentences and convert them to int64.

    Raises
    ------
    ValueError, TypeError
        If their shape is not ``shape``, or a length is not an integer in [0, most].
    """
    lengths = as_array(f"{function}: sentence_lengths", lengths)
    if lengths.dtype.kind not in "iu":
        raise InputTypeError(f"{function}: sentence_lengths has dtype {lengths.dtype}, expected integers")
    _check_one_each(function, "sentence_lengths", lengths, shape)
    wrong = (lengths < 0) | (lengths > most)
    if wrong.any():
        at = _first(wrong)
        raise InputError(
            f"{function}: sentence_lengths[{_written(at)}] is {lengths[at]}, expected 0 to L - 1 = {most}, a "
            "number of tokens after the first"
        )
    return lengths.astype(np.int64)


def _check_one_each(function: str, name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        axes = "(N,)" if len(shape) == 1 else "(N, S)"
        raise InputError(
            f"{function}: {name} has shape {array.shape}, expected {axes} = {shape}, one for each sentence"
        )


def _first(wrong: np.ndarray) -> tuple[int, ...]:
    return tuple(np.argwhere(wrong)[0].tolist())


def _written(place: tuple[int, ...]) -> str:
    return ", ".join(map(str, place))
