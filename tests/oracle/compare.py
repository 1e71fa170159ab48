"""One call of a model's ``loss`` against the reference and autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq

from .configurations import Configuration
from .noise import Noise
from .reference import backwards, captioning_loss, classification_loss, language_loss, translation_loss

TOLERANCE = 1e-9  # relative, of each number
ROUNDING = 1e-13  # absolute, times the largest gradient if that is above 1: of numbers that cancel


def assert_as_autograd(drawn: Configuration) -> None:
    """Check the loss, the gradient of each parameter, and those of the inputs.

    Without noise the loss of the padded batch and its gradients are checked too.
    """
    model, batch, given, seed = drawn
    expected_loss, expected, expected_inputs = in_torch(drawn)
    generator = None if seed is None else np.random.default_rng(seed)
    loss, grads, inputs = model.loss(*batch, rng=generator, input_gradients=True, **given)
    scale = max(1.0, *(np.abs(each).max(initial=0) for each in expected.values()))

    text = described(drawn)

    def check(name: str, one: Any, other: Any) -> None:
        error = f"{name} of {text}"
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=ROUNDING * scale, err_msg=error)

    check("loss", loss, expected_loss)
    for name, grad in grads.items():
        check(name, grad, expected[name])
    for name, found in inputs._asdict().items():
        for one, other in zip(_several(found), _several(expected_inputs[name]), strict=True):
            check(f"input {name}", one, other)
    if generator is None and "state" not in given:
        padded_grads = model.params.zeros_like()
        padded = model.padded_loss(model.padded(*batch, **given), grads=padded_grads)
        check("padded loss", padded, expected_loss)
        for name, grad in padded_grads.items():
            check(f"padded {name}", grad, expected[name])


def in_torch(drawn: Configuration) -> tuple[float, dict[str, np.ndarray], dict[str, Any]]:
    """The loss, the gradients of the parameters, and those of the inputs, by autograd."""
    model, batch, given, seed = drawn
    o, noise = model.config(), Noise(seed)
    p = {name: torch.tensor(array, requires_grad=True) for name, array in model.params.items()}
    if isinstance(model, CaptioningRNN):
        features, captions = batch
        leaves = tuple(torch.tensor(each, requires_grad=True) for each in _several(features))
        given = {"features": leaves if isinstance(features, tuple) else leaves[0], **given}
        loss, read = captioning_loss(o, p, model.word_to_idx, captions=captions, noise=noise, **given)
    elif isinstance(model, Seq2Seq):
        words = model.source_word_to_idx, model.word_to_idx
        loss, read = translation_loss(o, p, *words, *batch, noise, **given)
    elif isinstance(model, LanguageModel):
        loss, read = language_loss(o, p, model.word_to_idx, *batch, noise, **given)
    else:
        x, *others = batch
        leaf = torch.tensor(x, requires_grad=True)
        loss, read = classification_loss(o, p, leaf, *others, noise, **given)
    hidden, (opposite, lengths) = read.pop("hidden"), read.pop("backward", (None, None))
    inputs = {name: _gradients(loss, _several(each)) for name, each in read.items()}
    steps = _gradients(loss, hidden)
    rows = len([*inputs.values()][-1][0])  # what the recurrence reads has a row for each of its sequences
    inputs["hidden"] = np.stack(steps, 1) if steps else np.zeros((rows, 0, o["hidden_dim"]))
    if opposite is not None:  # in the order in which it reads
        dh = backwards(torch.tensor(np.stack(_gradients(loss, opposite), 1)), lengths)
        inputs["hidden"] = np.concatenate([inputs["hidden"], dh.numpy()], 2)
    return loss.item(), dict(zip(p, _gradients(loss, tuple(p.values())), strict=True)), inputs


def described(drawn: Configuration) -> str:
    """All of a configuration as text: the options of the model, and the arguments of ``loss``."""
    model, batch, given, seed = drawn
    arrays = [f"shape {each.shape} {each.tolist()}" for each in _flat(batch)]
    return (
        f"{type(model).__name__}({model.config()})\nbatch: {'; '.join(arrays)}\narguments: {given}"
        f"\nseed of the noise: {seed}"
    )


def _gradients(loss: torch.Tensor, tensors: Any) -> list[np.ndarray]:
    """The gradients of tensors, zeros for those that the loss does not depend on."""
    if not tensors:
        return []
    grads = torch.autograd.grad(loss, tensors, retain_graph=True, allow_unused=True)
    return [
        np.zeros(tuple(tensor.shape)) if grad is None else grad.numpy()
        for tensor, grad in zip(tensors, grads, strict=True)
    ]


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _flat(batch: tuple[Any, ...]) -> list[np.ndarray]:
    return [each for entry in batch if entry is not None for each in _several(entry)]
