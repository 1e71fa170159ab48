"""The suites in bfloat16: both sides compute the same but for rounding, and each in its own precision."""

import functools

import numpy as np
import pytest

from benchmarks import (
    attention_bfloat16,
    bfloat16,
    captioning,
    captioning_bfloat16,
    cells,
    cells_bfloat16,
    lstm_bfloat16,
)
from rnnlab.ops.precision import products_precision

from .test_sides import CAPTIONER, LAYER

torch = pytest.importorskip("torch")


@functools.cache
def declined_by_pytorch():
    """Why PyTorch computes no LSTM in autocast on this processor; empty if it does."""
    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(2, 2)(torch.ones(1, 1, 2))
    except RuntimeError as error:
        return str(error)
    return ""


def skip_without_an_lstm(side):
    if side.startswith("autocast") and declined_by_pytorch():
        pytest.skip(f"PyTorch has no LSTM in bfloat16 on this processor: {declined_by_pytorch()}")


@pytest.mark.parametrize("side", lstm_bfloat16.SIDES)
def test_lstm(side):
    skip_without_an_lstm(side)
    dh0, exact = (np.asarray(lstm_bfloat16.prepare(each, LAYER)()[1]).ravel() for each in (side, "torch"))
    np.testing.assert_allclose(dh0, exact, atol=0.02 * abs(exact).max())


@pytest.mark.parametrize("cell", cells.GATES)
@pytest.mark.parametrize("side", cells_bfloat16.SIDES)
def test_cells(side, cell):
    sides = (cells_bfloat16.prepare(each, (cell, LAYER)) for each in (side, "torch"))
    dh0, exact = (np.asarray(work()[1]).ravel() for work in sides)
    np.testing.assert_allclose(dh0, exact, atol=0.02 * abs(exact).max())


@pytest.mark.slow
@pytest.mark.parametrize("side", captioning_bfloat16.SIDES)
def test_captioning(side, monkeypatch):
    skip_without_an_lstm(side)
    monkeypatch.setattr(captioning, "DROPOUT", dict.fromkeys(captioning.DROPOUT, 0.0))
    steps = [captioning_bfloat16.prepare(each, CAPTIONER) for each in (side, "torch")]
    losses = [[step() for step in steps] for _ in range(10)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=0.01)
    assert losses[-1][0] < losses[0][0] - 0.02


def test_sides_have_their_own_precision(monkeypatch):
    seen = []

    class Suite:
        @staticmethod
        def prepare(side, sizes):
            return lambda: seen.append((side, products_precision(), torch.is_autocast_enabled("cpu")))

    for side in attention_bfloat16.SIDES:
        bfloat16.prepare(Suite, side, None)()
    assert seen == [
        ("rnnlab", "bfloat16", False),
        ("torch", "float32", False),
        ("torch nn", "float32", False),
        ("torch", "float32", True),
        ("torch nn", "float32", True),
    ]


def test_a_machine_that_cannot_multiply_bfloat16(monkeypatch):
    pytest.importorskip("numba")
    from rnnlab.ops.numba import bfloat16 as kernels

    monkeypatch.setattr(kernels, "declined", lambda: "this processor has neither")
    assert bfloat16.lacking() == "is left out: this processor has neither"
    monkeypatch.setattr(kernels, "declined", lambda: "")
    assert bfloat16.lacking() == ""
