"""The parts of a captioning model with students' functions instead of the library's.

Each has the interface of the part of :mod:`rnnlab.models.parts` that it replaces. Features that the course's
functions lack are added around them: dropout acts on their inputs or outputs, and their gradients are added
to those of the model. Padding needs no special treatment: the recurrence continues past the end of a caption,
and the loss, which does not read these steps, gives them zero gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab.course.student_functions import StudentFunction
from rnnlab.errors import InputError
from rnnlab.layers import (
    dropout_backward,
    dropout_forward,
    temporal_affine_backward,
    temporal_affine_forward,
)
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.output import LinearOutput, OutputInputs
from rnnlab.models.parts.output_loss import OutputLoss
from rnnlab.models.parts.recurrent_layer import Recurrence, RecurrentLayer
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.models.parts.values import Decoded
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Params, Random, State

Functions = Mapping[str, StudentFunction]


def backward_of(functions: Functions, forward: str) -> StudentFunction:
    """The backward of a forward's name.

    Raises
    ------
    ValueError
        If it was not given.
    """
    backward = forward.replace("_forward", "_backward")
    if backward not in functions:
        raise InputError(
            f"use: {forward} is given without {backward}, which a loss with gradients needs; give both"
        )
    return functions[backward]


class StudentEmbedding(WordEmbedding):
    """:class:`WordEmbedding` by ``word_embedding_forward`` and ``word_embedding_backward``."""

    def __init__(self, embedding: WordEmbedding, functions: Functions) -> None:
        super().__init__(embedding.vocabulary_size, embedding.word_dim, dropout=embedding.dropout)
        self._functions = functions

    def forward(
        self, params: Parameters, tokens: Array, *, rng: Random = None, checked: bool = False
    ) -> tuple[Array, Any]:
        """See :class:`WordEmbedding`; tokens of one step, (N,), are a sequence of length 1."""
        rows = tokens if tokens.ndim == 2 else tokens[:, None]
        words, looked_up = self._functions["word_embedding_forward"](rows, params[self._name])
        words, dropped = dropout_forward(words.reshape(*tokens.shape, -1), self.dropout, rng=rng)
        return words, (looked_up, dropped)

    def look_up(self, params: Parameters, tokens: Array) -> tuple[Array, None]:
        """See :class:`WordEmbedding`; without a cache, because a decoder cannot use the student's."""
        return self.forward(params, tokens)[0], None

    def backward(self, dwords: Array, cache: Any, grads: Parameters) -> Array:
        """See :class:`WordEmbedding`."""
        looked_up, dropped = cache
        dwords = dropout_backward(dwords, dropped)
        (dW,) = backward_of(self._functions, "word_embedding_forward")(dwords, looked_up)
        grads[self._name][...] += dW
        return dwords


class StudentLayer(RecurrentLayer):
    """:class:`RecurrentLayer` by the sequence functions of a cell.

    Decoding calls the step function if there is one, else the sequence function. If the hidden state is the
    whole state, the sequence has one step. The sequence function of an LSTM does not return the cell state,
    so it recomputes all steps so far at each step.

    Parameters
    ----------
    layer : RecurrentLayer
        The layer that it replaces.
    cell : str
        The name of its cell.
    functions : mapping of str to StudentFunction
    """

    def __init__(self, layer: RecurrentLayer, cell: str, functions: Functions) -> None:
        recurrence = Recurrence(layer.cell, layer.regularisation)
        super().__init__(recurrence, layer.input_dim, layer.hidden_dim)
        self._sequence, self._step, self._functions = f"{cell}_forward", f"{cell}_step_forward", functions

    def forward(
        self, params: Params, x: Array, state: State, lengths: Array | None, rng: Random = None
    ) -> tuple[Array, Any]:
        """See :class:`RecurrentLayer`.

        Raises
        ------
        ValueError
            If an LSTM starts at another cell state than zeros, which its sequence function does not take.
        """
        if any(each.any() for each in state[1:]):
            raise InputError(
                f"use: the state has a cell state, expected zeros with {self._sequence}, which starts there; "
                "give the step functions instead"
            )
        return self._functions[self._sequence](x, state[0], *_weights(params))

    def last_state(self, cache: Any) -> State:
        """Not known: the student's functions decide what their caches are."""
        raise InputError(
            "use: return_state is True, expected False: a student's cache does not give the state"
        )

    def backward(
        self, dh: Array, cache: Any, grads: Params, *, total_dh: Array | None = None
    ) -> tuple[Array, State]:
        """See :class:`RecurrentLayer`; the gradient of a cell state, which starts at zero, is left out.

        Raises
        ------
        ValueError
            If ``total_dh`` is given, which a sequence function does not compute.
        """
        if total_dh is not None:
            raise InputError(
                f"use: inputs is True, expected False with {self._sequence}: its backward does not return "
                "the gradient of each hidden state; give the step functions instead"
            )
        dx, dh0, *dweights = backward_of(self._functions, self._sequence)(dh, cache)
        _add(dweights, grads)
        return dx, (dh0.copy(),)

    def decoding_step(self, params: Params, like: Array) -> Any:
        """See :class:`RecurrentLayer`. Products are not looked up: the student's functions compute them."""
        step = self._students_step(params)
        return lambda x, state, looked_up=None: step(x, state)

    def _students_step(self, params: Params) -> Any:
        weights = _weights(params)
        if self._step in self._functions:
            step = self._functions[self._step]
            return lambda x, state: step(x, *state, *weights)[:-1]
        sequence = self._functions[self._sequence]
        if self.num_states == 1:
            return lambda x, state: (sequence(x[:, None], *state, *weights)[0][:, 0],)

        def from_the_beginning(x: Array, state: State) -> State:
            """The state is (h0, c0) before the first step, then (h, the inputs so far (n, t, D), h0)."""
            h0, inputs = state[0], x[:, None]
            if len(state) == 3:
                h0, inputs = state[2], np.concatenate([state[1], inputs], axis=1)
            return sequence(inputs, h0, *weights)[0][:, -1], inputs, h0

        return from_the_beginning


class StudentSteps(StudentLayer):
    """:class:`RecurrentLayer` by the step functions of a cell only."""

    def forward(
        self, params: Params, x: Array, state: State, lengths: Array | None, rng: Random = None
    ) -> tuple[Array, Any]:
        """See :class:`RecurrentLayer`."""
        weights, caches = _weights(params), []
        h = np.empty((*x.shape[:2], self.hidden_dim), x.dtype)
        for t in range(x.shape[1]):
            *after, cache = self._functions[self._step](x[:, t], *state, *weights)
            state, h[:, t] = tuple(after), after[0]
            caches.append(cache)
        return h, (caches, x.shape)

    def backward(
        self, dh: Array, cache: Any, grads: Params, *, total_dh: Array | None = None
    ) -> tuple[Array, State]:
        """See :class:`RecurrentLayer`."""
        caches, shape = cache
        step = backward_of(self._functions, self._step)
        dx = np.empty(shape, dh.dtype)
        dstate = [np.zeros((len(dh), self.hidden_dim), dh.dtype) for _ in range(self.num_states)]
        for t in reversed(range(len(caches))):
            dstate[0] = dstate[0] + dh[:, t]
            if total_dh is not None:
                total_dh[:, t] = dstate[0]
            dx[:, t], *dstate, dWx, dWh, db = step(*dstate, caches[t])
            _add((dWx, dWh, db), grads)
        return dx, tuple(each.copy() for each in dstate)


class StudentOutput(LinearOutput):
    """:class:`LinearOutput` by ``temporal_affine_forward``, for one step of decoding."""

    def __init__(self, output: LinearOutput, functions: Functions) -> None:
        super().__init__(output.hidden_dim, output.vocabulary_size, dropout=output.dropout)
        self._functions = functions

    def forward(self, params: Parameters, inputs: OutputInputs, *, rng: Random = None) -> tuple[Array, Any]:
        """Hidden states (n, H), as sequences of one step, to scores (n, V)."""
        affine = self._functions["temporal_affine_forward"]
        scores, cache = affine(inputs.hidden[:, None], params["W_vocab"], params["b_vocab"])
        return scores[:, 0], cache


class GivenScores:
    """An output layer whose inputs are the scores."""

    reads_contexts = False

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size

    def forward(self, params: Parameters, inputs: OutputInputs, *, rng: Random = None) -> tuple[Array, Any]:
        """The scores (M, V)."""
        return inputs.hidden, None

    def backward(self, dscores: Array, cache: Any, grads: Parameters) -> OutputInputs:
        """Their gradient (M, V)."""
        return OutputInputs(dscores)


class StudentOutputLoss(OutputLoss):
    """:class:`OutputLoss` by ``temporal_affine_forward``, its backward and ``temporal_softmax_loss``.

    Functions that are not given are the library's. As in the course, all steps are scored, including padding,
    and dropout is drawn for all of them.

    Parameters
    ----------
    output : LinearOutput
        The output layer that is replaced.
    functions : mapping of str to StudentFunction
    null_token : int
        The target in padding.
    """

    def __init__(self, output: LinearOutput, functions: Functions, null_token: int) -> None:
        super().__init__(output)
        self._dropout, self._functions, self._null_token = output.dropout, functions, null_token
        self._loss_of_scores = OutputLoss(GivenScores(output.vocabulary_size))  # type: ignore[arg-type]

    def loss(
        self,
        params: Parameters,
        decoded: Decoded,
        words: Array,
        forced: TeacherForced,
        *,
        weights: float | Array,
        grads: Parameters,
        label_smoothing: float = 0.0,
        rng: Random = None,
    ) -> tuple[float, OutputInputs]:
        """See :class:`OutputLoss`."""
        hidden, dropped = dropout_forward(decoded.hidden, self._dropout, rng=rng)
        scores, affine = self._scores(params, hidden)
        if "temporal_softmax_loss" in self._functions:
            check_label_smoothing(self._functions, label_smoothing)
            loss, dscores = self._own_loss(scores, forced, weights)
        else:
            loss, (dscores, _, _) = self._loss_of_scores.loss(
                params,
                Decoded(scores),
                words,
                forced,
                weights=weights,
                grads=grads,
                label_smoothing=label_smoothing,
            )
        if "temporal_affine_forward" in self._functions:
            dhidden, dw, db = backward_of(self._functions, "temporal_affine_forward")(dscores, affine)
        else:
            dhidden, dw, db = temporal_affine_backward(dscores, affine)
        grads["W_vocab"][...] += dw
        grads["b_vocab"][...] += db
        return loss, OutputInputs(dropout_backward(dhidden.copy(), dropped))

    def nll(self, params: Parameters, decoded: Decoded, words: Array, forced: TeacherForced) -> float:
        """See :class:`OutputLoss`."""
        scores, _ = self._scores(params, decoded.hidden)
        if "temporal_softmax_loss" in self._functions:
            return self._own_loss(scores, forced, 1.0)[0]
        return self._loss_of_scores.nll(params, Decoded(scores), words, forced)

    def _scores(self, params: Parameters, hidden: Array) -> tuple[Array, Any]:
        """Hidden states (N, T, H) to scores (N, T, V)."""
        affine: Any = self._functions.get("temporal_affine_forward", temporal_affine_forward)
        return affine(hidden, params["W_vocab"], params["b_vocab"])

    def _own_loss(self, scores: Array, forced: TeacherForced, weights: float | Array) -> tuple[float, Array]:
        """``weights`` times the sum of the losses, and its gradient; the student's loss is the sum over N."""
        function, (N, T) = self._functions["temporal_softmax_loss"], forced.inputs.shape
        if not isinstance(weights, float):
            raise InputError(
                f"{function.title}: the loss has sentence_weights, expected none: the function has no such "
                "argument"
            )
        targets, mask = np.full(N * T, self._null_token), np.zeros(N * T, bool)
        targets[forced.target_rows], mask[forced.target_rows] = forced.targets, True
        loss, dscores = function(scores, targets.reshape(N, T), mask.reshape(N, T))
        return loss * N * weights, dscores * (N * weights)


def check_label_smoothing(functions: Functions, label_smoothing: float) -> None:
    """Raise ValueError if a student's loss is given and labels are smoothed."""
    if label_smoothing and "temporal_softmax_loss" in functions:
        raise InputError(
            f"use: label_smoothing is {label_smoothing}, expected 0 with temporal_softmax_loss, "
            "which has no such argument"
        )


def _weights(params: Params) -> tuple[Array, Array, Array]:
    return params["Wx"], params["Wh"], params["b"]


def _add(gradients: Any, grads: Params) -> None:
    """Add the gradients of Wx, Wh and b."""
    for name, gradient in zip(("Wx", "Wh", "b"), gradients, strict=True):
        grads[name][...] += gradient
