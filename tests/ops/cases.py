"""What the primitives take, for the tests that hold one module of them against another."""

import numpy as np

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
