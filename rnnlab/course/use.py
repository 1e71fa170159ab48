"""Students' functions in a captioning model: in training, in its loss, and in decoding.

    with rnnlab.course.use(model, lstm_forward=mine, lstm_backward=mine_back) as used:
        CaptioningSolver(model, data).train()
        captions = model.sample(features)
    print(used.calls)

A model is composed of parts. Within the block, parts that call the functions
(:mod:`rnnlab.course.student_parts`) replace the corresponding parts. Nothing else in the model changes, and
other models are not affected.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from rnnlab.course.student_functions import CELLS, SIGNATURES, StudentFunction
from rnnlab.course.student_parts import (
    Functions,
    StudentEmbedding,
    StudentLayer,
    StudentOutput,
    StudentOutputLoss,
    StudentSteps,
    check_label_smoothing,
)
from rnnlab.errors import InputError, InputTypeError
from rnnlab.models import CaptioningRNN
from rnnlab.models.parts.decoders import FirstInputDecoder, num_decoder_layers

__all__ = ["Used", "use"]


class Used:
    """The object that a ``with`` block of :func:`use` gets.

    Attributes
    ----------
    calls : dict of str to int
        The number of calls of each function, by name.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Used({', '.join(f'{name}: {count:,}' for name, count in self.calls.items())})"


def use(model: CaptioningRNN, **functions: Callable[..., Any]) -> AbstractContextManager[Used]:
    """Run a captioning model with functions of a student, within a ``with`` block.

    The functions have the arguments and results of the course, which are those of the functions of the same
    names in :mod:`rnnlab.plain`:

    - of the model's cell, here an LSTM: ``lstm_forward``, ``lstm_backward``, ``lstm_step_forward`` and
      ``lstm_step_backward``; likewise ``rnn``, ``gru`` and ``simplified_gru``
    - ``word_embedding_forward`` and ``word_embedding_backward``
    - ``temporal_affine_forward`` and ``temporal_affine_backward``, which score the words
    - ``temporal_softmax_loss``

    Functions that are not given are the library's. Training calls the sequence functions of the cell if they
    are given, else its step functions. Decoding calls the step function if it is given, else the sequence
    function. An LSTM's sequence function does not return the cell state, so it is called from the beginning
    of the sentence at each step. A forward is enough if no gradients are needed, as in ``sample`` and
    ``nll``.

    Parameters
    ----------
    model : CaptioningRNN
        It must be on the CPU. For the functions of a cell, it must have one recurrent layer without attention
        and without regularisation of the recurrence; for a sequence function, also no ``project_cell``. For
        the last three functions, its output must be "linear", without ``tied_embeddings``; for the loss, also
        without label smoothing.
    **functions : callable
        The functions, by the names above. They get inputs and parameters as read-only arrays.

    Returns
    -------
    context manager
        ``with`` gives a :class:`Used`, whose ``calls`` counts the calls of each function in this block. It
        can be entered again after its block has ended.

    Warns
    -----
    RuntimeWarning
        When the context manager is deleted without having been entered: without ``with``, ``use`` has no
        effect.

    Raises
    ------
    ValueError
        If a name is unknown, belongs to another cell than the model's, or is a backward without its forward;
        or if the functions have no argument for an option of the model. Within the block, if a function
        returns a wrong number of results, a wrong shape, or a number that is not finite. The error names the
        function and the place of its definition.
    TypeError
        If the model is not a CaptioningRNN, or a function cannot be called. Within the block, if a result is
        not an array or has a wrong dtype.
    """
    _check_model(model)
    _check_names(functions)
    _wrapped_parts(model, functions, Used())  # to refuse unsuitable functions here
    caller = sys._getframe(1)
    return _Block(model, functions, (caller.f_code.co_filename, caller.f_lineno))


class _Block:
    """The context manager of :func:`use`; it can be entered again after its block has ended.

    Parameters
    ----------
    model : CaptioningRNN
    functions : dict of str to callable
    place : tuple of str and int
        File and line of the call of :func:`use`, for the warning that it was never entered.
    """

    def __init__(
        self, model: CaptioningRNN, functions: Mapping[str, Callable[..., Any]], place: tuple[str, int]
    ) -> None:
        self._model, self._functions, self._place = model, functions, place
        self._entered = False
        self._replaced: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Used:
        self._entered = True
        _check_model(self._model)
        used = Used()
        parts = _wrapped_parts(self._model, self._functions, used)
        self._replaced = [(owner, name, getattr(owner, name)) for owner, name, _ in parts]
        for owner, name, part in parts:
            setattr(owner, name, part)
        return used

    def __exit__(self, *error: object) -> None:
        for owner, name, part in self._replaced:
            setattr(owner, name, part)
        self._replaced = []

    def __repr__(self) -> str:
        state = "entered" if self._replaced else "no effect without with"
        return f"<{self._call()}: {state}>"

    # the default argument still exists when the interpreter shuts down
    def __del__(self, warn: Callable[..., None] = warnings.warn_explicit) -> None:
        if not self._entered:
            message = f"use was called without with and had no effect, expected with {self._call()}: ..."
            warn(message, RuntimeWarning, *self._place)

    def _call(self) -> str:
        return f"use(model, {', '.join(f'{name}=...' for name in self._functions)})"


def _wrapped_parts(
    model: CaptioningRNN, functions: Mapping[str, Callable[..., Any]], used: Used
) -> list[tuple[Any, str, Any]]:
    """The replacements in the model; ``used`` counts the calls."""
    return _parts(
        model, {name: StudentFunction(name, function, used.calls) for name, function in functions.items()}
    )


def _check_model(model: Any) -> None:
    if not isinstance(model, CaptioningRNN):
        raise InputTypeError(f"use: model is a {type(model).__name__}, expected a CaptioningRNN")
    if model.device != "cpu":
        raise InputError(f"use: the model is on {model.device}, expected the CPU, where NumPy functions run")
    layer = getattr(_decoder_of(model), "layer", None)
    students = (StudentEmbedding, StudentLayer, StudentOutputLoss)
    if any(isinstance(part, students) for part in (model.embedding, layer, model.output_loss)):
        raise InputError(
            "use: the model is within another use already, expected all functions in one: "
            "use(model, lstm_forward=..., lstm_backward=...)"
        )


def _check_names(functions: Mapping[str, Any]) -> None:
    if not functions:
        raise InputError(f"use: no function is given, expected some of {', '.join(SIGNATURES)}")
    for name, function in functions.items():
        if name not in SIGNATURES:
            close = difflib.get_close_matches(name, SIGNATURES, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InputError(
                f"use: there is no function {name}, expected names among {', '.join(SIGNATURES)}{hint}"
            )
        if not callable(function):
            raise InputTypeError(f"use: {name} is {function!r}, expected a function")
        forward = name.replace("_backward", "_forward")
        if forward not in functions:
            raise InputError(f"use: {name} is given without {forward}, expected both")


def _parts(model: CaptioningRNN, functions: Functions) -> list[tuple[Any, str, Any]]:
    """The replacements: objects, the names of their attributes, and the new parts."""
    parts: list[tuple[Any, str, Any]] = []
    if "word_embedding_forward" in functions:
        parts.append((model, "embedding", StudentEmbedding(model.embedding, functions)))
    if of_cell := [name for name in functions if any(name in cell for cell in CELLS.values())]:
        _check_cell(model, of_cell)
        cell, decoder = model.cell_type, _decoder_of(model)
        kind = StudentLayer if f"{cell}_forward" in functions else StudentSteps
        parts.append((decoder, "layer", kind(decoder.layer, cell, functions)))
    of_output = [name for name in functions if name.startswith("temporal_")]
    if of_output:
        _refuse(model, of_output[0], "output", "linear")
        if model.config()["tied_embeddings"]:
            raise InputError(
                f"use: the model's tied_embeddings is True, expected False with {of_output[0]}, which needs "
                "the weight W_vocab"
            )
        check_label_smoothing(functions, model.label_smoothing)
        loss = StudentOutputLoss(model.output, functions, model.null_token)
        parts.append((model, "output_loss", loss))
    if "temporal_affine_forward" in functions:
        parts.append((model, "output", StudentOutput(model.output, functions)))
    return parts


def _decoder_of(model: CaptioningRNN) -> Any:
    """The decoder that has the recurrent layer."""
    return model.decoder.decoder if isinstance(model.decoder, FirstInputDecoder) else model.decoder


def _check_cell(model: CaptioningRNN, names: list[str]) -> None:
    """Raise ValueError if these functions do not compute the model's recurrent layer."""
    for name in names:
        if name not in CELLS.get(model.cell_type, ()):
            own = ", ".join(CELLS.get(model.cell_type, ())) or "no function of a cell"
            raise InputError(
                f"use: {name} is given, but the model's cell_type is {model.cell_type!r}, expected {own}"
            )
    first, options = names[0], model.config()
    _refuse(model, first, "attention", None)
    _refuse(model, first, "target_attention", False)
    if (layers := num_decoder_layers(options)) > 1:
        raise InputError(f"use: the model has {layers} recurrent layers, expected 1 with {first}")
    for name, rate in options["regularisation"].items():
        if isinstance(rate, float) and rate:
            raise InputError(
                f"use: the model's regularisation has {name} {rate}, expected 0 with {first}, "
                "which has no argument for it"
            )
    sequence = [name for name in names if "_step_" not in name]
    if sequence:
        _refuse(model, sequence[0], "project_cell", False)


def _refuse(model: CaptioningRNN, function: str, option: str, expected: Any) -> None:
    """Raise ValueError if an option of the model has a value that a function does not support."""
    value = model.config()[option]
    if value != expected:
        raise InputError(
            f"use: the model's {option} is {value!r}, expected {expected!r} with {function}, "
            "which has no argument for it"
        )
