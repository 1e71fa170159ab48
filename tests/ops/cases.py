"""Arguments of the primitives, for the tests that compare one module with another."""

import itertools

import numpy as np

from rnnlab.ops import StepMasks
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.arguments import normal_divisor

SHAPES = [(5, 7), (3, 32), (1, 16), (4, 1), (2, 130), (0, 3)]  # (n, H)
TOLERANCE = {np.float32: {"rtol": 3e-6, "atol": 3e-6}, np.float64: {"rtol": 1e-12, "atol": 1e-13}}


def cell_arguments(name, n, H, normal):
    """What a primitive of a cell takes, from left to right, by the number of columns in H."""
    columns = {
        "rnn_forward": (1, 1),
        "rnn_backward": (1, 1, 1),
        "lstm_forward": (4, 1, 1, 1, 1),
        "lstm_backward": (1, 1, 4, 1, 1, 4),
        "lstm_dropped_forward": (4, 1, 1, 1, 1, 1),
        "lstm_dropped_backward": (1, 1, 4, 1, 1, 1, 4),
        "gru_gates_forward": (3, 1, 1),
        "gru_candidate_forward": (3, 1, 1),
        "gru_candidate_backward": (1, 3, 1, 3),
        "gru_candidate_dropped_forward": (3, 1, 1, 1),
        "gru_candidate_dropped_backward": (1, 3, 1, 1, 3),
        "gru_gates_backward": (1, 1, 3, 1, 3),
        "simplified_gru_forward": (2, 1, 1),
        "simplified_gru_backward": (1, 2, 1, 2),
        "simplified_gru_dropped_forward": (2, 1, 1, 1),
        "simplified_gru_dropped_backward": (1, 2, 1, 1, 2),
    }[name]
    return [normal(n, k * H) for k in columns]


CELLS = [
    f"{cell}_{way}"
    for cell in (
        "rnn",
        "lstm",
        "lstm_dropped",
        "gru_gates",
        "gru_candidate",
        "gru_candidate_dropped",
        "simplified_gru",
        "simplified_gru_dropped",
    )
    for way in ("forward", "backward")
]
WITHOUT_MASKS = [name for name in CELLS if "dropped" not in name]  # cells' primitives of all modules
SCRATCH = {"gru_gates_backward": 0}  # an argument that holds nothing afterwards

RULES = {
    "sgd": (0, {}),
    "momentum": (1, {"momentum": 0.9}),
    "rmsprop": (1, {"decay_rate": 0.99, "epsilon": 1e-8}),
    "adagrad": (1, {"epsilon": 1e-8}),
    "adadelta": (2, {"decay_rate": 0.95, "epsilon": 1e-6}),
    "adam": (2, {"step": 3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "adamw": (2, {"step": 1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01}),
}

EXPLODED = [1e19, 1e23, 3e38]  # the largest elements of float32 gradients, which clipping brings to 1


def assert_scaled_first(ops, name, largest):
    """A rule gives in float32 what it gives in float64, though the square of the gradient is infinite."""
    slots, options = RULES[name]
    dw = (largest * np.array([1, -0.4, 1e-3, 0])).astype(np.float32)
    options = {"learning_rate": 0.1, "scale": 1 / largest, **options}
    expected = [np.zeros(4), dw.astype(np.float64), *np.zeros((slots, 4))]
    named(numpy_ops, name)(*expected, **options)
    found = [ops.asarray(a.astype(np.float32)) for a in (np.zeros(4), dw, *np.zeros((slots, 4)))]
    named(ops, name)(*found, **options)
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(ops.asnumpy(a), e, rtol=1e-4)


# ---------------------------------------------------------------- regularised steps

GATES = {"rnn": 1, "lstm": 4, "gru_candidate": 3, "simplified_gru": 2}  # columns of gates in H


def step_masks(cell):
    """Every combination of masks that a cell can have, without seeds."""
    kinds = [(0.0, 0.3), (0.0, 0.4) if cell == "lstm" else (0.0,), (0.0,) if cell == "rnn" else (0.0, 0.25)]
    return [StepMasks((h, c), dropout) for h, c, dropout in itertools.product(*kinds)]


def run_regularised(ops, cell, n, H, masks, rng, dtype):
    """What a regularised step and its backward write, by name.

    ``dh`` is the gradient of h_{t-1} after the product, here of ones, is added to it.
    """
    gates = rng.standard_normal((n, GATES[cell] * H)).astype(dtype)
    if cell == "gru_candidate":  # its z comes in active
        gates[:, :H] = 1 / (1 + np.exp(-gates[:, :H]))
    given = {"gates": gates} | {
        name: rng.standard_normal((n, H)).astype(dtype) for name in ("prev_h", "prev_c", "dh", "dc")
    }
    arrays = {name: ops.asarray(array.copy()) for name, array in given.items()}
    arrays |= {name: ops.zeros((n, H), dtype) for name in ("h", "c", "saved")}
    arrays["da"] = ops.zeros(gates.shape, dtype)
    forward, backward = (getattr(ops, f"{cell}_regularised_{way}") for way in ("forward", "backward"))
    before = {"lstm": ("prev_h", "prev_c", "c", "saved", "h")}
    forward(*(arrays[name] for name in ("gates", *before.get(cell, ("prev_h", "h")))), masks)
    after = {"rnn": ("dh", "gates", "da"), "lstm": ("dh", "dc", "gates", "prev_c", "saved", "da")}
    past = backward(*(arrays[name] for name in after.get(cell, ("dh", "gates", "prev_h", "da"))), masks)
    arrays["dh"] += 1
    if past is not None:
        arrays["dh"] += past
    return {name: ops.asnumpy(array) for name, array in arrays.items()}


def named(ops, name):
    """A primitive, or a function of a library's modules that is none."""
    return next(getattr(module, name) for module in (ops, ops.cells, ops.masks) if hasattr(module, name))


def assert_drawn(scores, uniform, temperature, columns):
    """Each column is possible, and where the cumulated probability passes ``uniform``, up to rounding."""
    rows = np.arange(len(scores))
    most = scores.max(axis=1, keepdims=True, initial=-np.inf)
    hopeless = most[:, 0] == -np.inf
    assert (columns[hopeless] == scores.shape[1] - 1).all()
    with np.errstate(all="ignore"):
        powers = (scores.astype(np.float64) - most) / normal_divisor(temperature, scores.dtype)
        probs = np.exp(powers)
        probs /= probs.sum(axis=1, keepdims=True)
    here, after = probs[rows, columns], np.cumsum(probs, axis=1)[rows, columns]
    slack = 1e-5 if scores.dtype == np.float32 else 1e-12
    fine = (here > 0) & (after - here <= uniform + slack) & (after > uniform - slack)
    assert (fine | hopeless).all()
