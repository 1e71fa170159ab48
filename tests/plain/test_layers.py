"""Each layer of rnnlab.layers is compared with its plain text, on random shapes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rnnlab import layers, ops
from rnnlab.gradcheck.numeric import relative_distance
from rnnlab.layers import Regularisation
from rnnlab.ops.numpy import masks as numpy_ops

from .cases import CASES, GATES, PLAIN

TOLERANCE = {np.float64: 1e-10, np.float32: 2e-5}
every_case = pytest.mark.parametrize("name", CASES)
every_module = pytest.mark.parametrize("module", ["numpy", "numba"])
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])


@st.composite
def lengths_in_batches(draw):
    """T, and lengths (N,) of a batch."""
    N, T = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return T, np.array(draw(st.lists(st.integers(0, T), min_size=N, max_size=N)))


@contextmanager
def primitives(name: str) -> Iterator[None]:
    """Let NumPy arrays be computed by the module of this name."""
    choice = ops._Choice(importlib.import_module(f"rnnlab.ops.{name}"), name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "_for_numpy", lambda: choice)
        yield


def assert_close(found, expected, dtype, what):
    assert np.shape(found) == np.shape(expected), what
    if np.ndim(found):
        assert found.dtype == dtype, what
    # the second term lets pass what rounding leaves of a gradient that is zero
    difference = np.linalg.norm(np.subtract(found, expected))
    assert relative_distance(found, expected) < TOLERANCE[dtype] or difference < TOLERANCE[dtype], what


def compare(name, module, dtype, T, lengths, seed):
    rng = np.random.default_rng(seed)
    case = CASES[name](rng, len(lengths), T, lengths)
    arrays = {key: array.astype(dtype) for key, array in case.inputs.items()}
    exact = {key: array.astype(np.float64) for key, array in arrays.items()}
    with primitives(module):
        *outs, cache = case.forward(layers, **arrays)
        douts = [rng.standard_normal(np.shape(out)).astype(dtype) for out in outs]
        grads = case.backward(layers, *douts, cache)
    *expected, plain_cache = case.forward(PLAIN, **exact)
    expected_grads = case.backward(PLAIN, *(dout.astype(np.float64) for dout in douts), plain_cache)
    for k, (found, wanted) in enumerate(zip(outs, expected, strict=True)):
        assert_close(found, wanted, dtype, f"output {k}")
    for key, found, wanted in zip(case.inputs, grads, expected_grads, strict=True):
        assert_close(found, wanted, dtype, f"gradient of {key}")


@pytest.mark.one_in(3)
@every_case
@every_module
@every_dtype
@given(batch=lengths_in_batches(), seed=st.integers(0, 2**32 - 1))
@example(batch=(1, np.array([1])), seed=1)
@example(batch=(3, np.array([0, 0])), seed=1)
@example(batch=(4, np.array([3, 0, 4])), seed=1)
@settings(max_examples=6)
def test_a_layer_is_its_plain_text(name, module, dtype, batch, seed):
    """A single step, padding alone, and sequences of different lengths are among the batches."""
    compare(name, module, dtype, *batch, seed)


@every_module
@every_dtype
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@given(batch=lengths_in_batches(), seed=st.integers(0, 2**32 - 1))
@example(batch=(1, np.array([1])), seed=1)
@example(batch=(3, np.array([0, 0])), seed=1)
@settings(max_examples=15)
def test_losses(module, dtype, smoothing, batch, seed):
    (T, lengths), rng = batch, np.random.default_rng(seed)
    N, V = len(lengths), 5
    x, y = rng.standard_normal((N, T, V)).astype(dtype), rng.integers(0, V, (N, T))
    mask, exact = np.arange(T) < lengths[:, None], x.astype(np.float64)
    with primitives(module):
        found = layers.temporal_softmax_loss(x, y, mask, label_smoothing=smoothing)
        of_rows = layers.softmax_loss(x[:, 0].copy(), y[:, 0], label_smoothing=smoothing)
    expected = PLAIN.temporal_softmax_loss(exact, y, mask, label_smoothing=smoothing)
    expected_of_rows = PLAIN.softmax_loss(exact[:, 0], y[:, 0], label_smoothing=smoothing)
    for (loss, dx), (wanted, dwanted) in ((found, expected), (of_rows, expected_of_rows)):
        assert_close(loss, wanted, dtype, "loss")
        assert_close(dx, dwanted, dtype, "dx")


@every_module
@every_dtype
@given(batch=lengths_in_batches(), seed=st.integers(0, 2**32 - 1))
@example(batch=(3, np.array([0, 0])), seed=1)
@settings(max_examples=15)
def test_doubly_stochastic_loss(module, dtype, batch, seed):
    (T, lengths), rng = batch, np.random.default_rng(seed)
    weights, real = rng.random((len(lengths), T, 3)).astype(dtype), rng.random((len(lengths), 3)) < 0.7
    with primitives(module):
        loss, dweights = layers.doubly_stochastic_loss(weights, lengths, memory_mask=real)
    wanted, dwanted = PLAIN.doubly_stochastic_loss(weights.astype(np.float64), lengths, memory_mask=real)
    assert_close(loss, wanted, dtype, "loss")
    assert_close(dweights, dwanted, dtype, "dweights")


@every_module
@every_dtype
@pytest.mark.parametrize(
    "options",
    [
        {"zoneout_h": 0.3, "zoneout_c": 0.5},
        {"recurrent_dropout": 0.4},
        {"recurrent_dropout": 0.4, "recurrent_dropout_on": "candidate"},
        {"zoneout_h": 0.3, "zoneout_c": 0.5, "recurrent_dropout": 0.4},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
def test_regularised_lstm(module, dtype, options, training, rng):
    """The plain text gets the masks that the library draws from its seeds."""
    N, T, D, H = 3, 4, 2, 5
    shapes = {"x": (N, T, D), "h0": (N, H), "c0": (N, H), "Wx": (D, 4 * H), "Wh": (H, 4 * H), "b": (4 * H,)}
    x, h0, c0, *weights = (rng.standard_normal(shape).astype(dtype) for shape in shapes.values())
    dh = rng.standard_normal((N, T, H)).astype(dtype)
    generator = np.random.default_rng(3) if training else None
    with primitives(module):
        params = dict(zip(("Wx", "Wh", "b"), weights, strict=True))
        h, _, cache = layers.recurrent_forward(
            x, (h0, c0), params, cell="lstm", regularisation=options, rng=generator
        )
        dx, (dh0, dc0), dparams = layers.recurrent_backward(dh, cache)
    masks = _masks(options, N, T, H, training)
    exact = (array.astype(np.float64) for array in (x, h0, c0, *weights))
    wanted, plain_cache = PLAIN.regularised_lstm_forward(*exact, *masks)
    assert_close(h, wanted, dtype, "h")
    wanted_grads = PLAIN.regularised_lstm_backward(dh.astype(np.float64), plain_cache)
    for name, found, expected in zip(shapes, (dx, dh0, dc0, *dparams.values()), wanted_grads, strict=True):
        assert_close(found, expected, dtype, f"gradient of {name}")


def _masks(options, N, T, H, training):
    """d_h, d_c, m and k of rnnlab.plain.regularisation."""
    options = Regularisation(**options)
    d_h, d_c = np.full((T, N, H), options.zoneout_h), np.full((T, N, H), options.zoneout_c)
    m, k = np.ones((N, H)), np.ones((T, N, H))
    if training:
        seeds = numpy_ops.mask_seeds(np.random.default_rng(3), 4)
        for mask, p, seed in ((d_h, options.zoneout_h, seeds[0]), (d_c, options.zoneout_c, seeds[1])):
            mask[...] = 0
            if p:
                numpy_ops.zoneout_forward(np.ones((T, N * H)), p, seed, 0, mask.reshape(T, N * H))
        if options.recurrent_dropout:
            mask = m if options.recurrent_dropout_on == "state" else k
            numpy_ops.dropout_mask(options.recurrent_dropout, seeds[2], 0, mask)
    return d_h, d_c, m, k


@every_module
@pytest.mark.parametrize("cell", ["rnn", "gru", "simplified_gru"])
@pytest.mark.parametrize("training", [True, False], ids=["training", "inference"])
def test_zoneout_of_the_other_cells(module, cell, training, rng):
    """h_t = d h_{t-1} + (1 - d) h~_t, with h~_t from the step of the plain text."""
    N, T, D, H, G = 3, 4, 2, 5, 5 * GATES[cell]
    shapes = {"x": (N, T, D), "h0": (N, H), "Wx": (D, G), "Wh": (H, G), "b": (G,)}
    x, h0, Wx, Wh, b = (rng.standard_normal(shape) for shape in shapes.values())
    options = {"zoneout_h": 0.3}
    with primitives(module):
        h, (final,), cache = layers.recurrent_forward(
            x, (h0,), {"Wx": Wx, "Wh": Wh, "b": b}, cell=cell, regularisation=options,
            rng=np.random.default_rng(3) if training else None,
        )  # fmt: skip
        dx, (dh0,), dparams = layers.recurrent_backward(np.ones((N, T, H)), cache)
        dweights = list(dparams.values())
    d, _, _, _ = _masks(options, N, T, H, training)
    states, caches = [h0], []
    for t in range(T):
        after, step = getattr(PLAIN, f"{cell}_step_forward")(x[:, t], states[-1], Wx, Wh, b)
        states.append(d[t] * states[-1] + (1 - d[t]) * after)
        caches.append(step)
    assert_close(h, np.stack(states[1:], axis=1), np.float64, "h")
    np.testing.assert_array_equal(final, h[:, -1])
    dh, total, dx_plain = np.zeros((N, H)), [0, 0, 0], np.zeros(x.shape)
    for t in reversed(range(T)):
        dh = dh + 1
        dx_plain[:, t], dprev_h, *steps = getattr(PLAIN, f"{cell}_step_backward")((1 - d[t]) * dh, caches[t])
        dh = dprev_h + d[t] * dh
        total = [one + step for one, step in zip(total, steps, strict=True)]
    for name, found, wanted in zip(shapes, (dx, dh0, *dweights), (dx_plain, dh, *total), strict=True):
        assert_close(found, wanted, np.float64, f"gradient of {name}")


def test_arnet_with_targets_that_are_constants(rng):
    N, T, H, R = 2, 3, 4, 5
    shapes = {"Wx": (H, 4 * R), "Wh": (R, 4 * R), "b": (4 * R,), "W": (R, H), "b_out": (H,)}
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    h, h0 = rng.standard_normal((N, T, H)), rng.standard_normal((N, H))
    ours, theirs = (
        lib.arnet_backward(0.5, lib.arnet_forward(h, h0, params)[-1], detach_target=True)
        for lib in (PLAIN, layers)
    )
    for one, other in zip((*ours[:2], *ours[2].values()), (*theirs[:2], *theirs[2].values()), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
