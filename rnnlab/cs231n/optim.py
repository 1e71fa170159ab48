"""The course's ``optim``: update rules as functions ``next_w, config = rule(w, dw, config)`` of one array.

The hyperparameters and the state are keys of ``config``, with the names of :mod:`rnnlab.training.optim`.
Other keys, which the course ignores, are errors. ``w`` is not changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.training.optim import make_update_rule
from rnnlab.types import Array

__all__ = ["adam", "rmsprop", "sgd", "sgd_momentum"]


def sgd(w: Array, dw: Array, config: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
    """Stochastic gradient descent; config: learning_rate."""
    return _update("sgd", w, dw, config)


def sgd_momentum(w: Array, dw: Array, config: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
    """Stochastic gradient descent with momentum; config: learning_rate, momentum, velocity."""
    return _update("momentum", w, dw, config)


def rmsprop(w: Array, dw: Array, config: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
    """RMSProp; config: learning_rate, decay_rate, epsilon, cache."""
    return _update("rmsprop", w, dw, config)


def adam(w: Array, dw: Array, config: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
    """Adam; config: learning_rate, beta1, beta2, epsilon, m, v, t."""
    return _update("adam", w, dw, config)


def _update(name: str, w: Array, dw: Array, config: dict[str, Any] | None) -> tuple[Array, dict[str, Any]]:
    config = {} if config is None else config
    if np.shape(dw) != np.shape(w):
        raise InputError(f"{name}: dw has shape {np.shape(dw)}, expected {np.shape(w)} as w")
    if np.result_type(w) not in (np.float32, np.float64):
        raise InputTypeError(f"{name}: w has dtype {np.result_type(w)}, expected float32 or float64")
    defaults = make_update_rule(name)
    known = [*defaults.config(), *defaults.slots, "t"]
    if unknown := [key for key in config if key not in known]:
        raise InputError(f"{name}: config has {', '.join(map(repr, unknown))}, expected {', '.join(known)}")
    rule = make_update_rule(name, {key: config[key] for key in defaults.config() if key in config})
    next_w = w.flatten()
    arrays = {slot: np.ravel(config.get(slot, np.zeros_like(next_w))) for slot in rule.slots}
    rule.load_state({"steps": 1, **arrays}, next_w)  # a rule without steps has no arrays
    rule.steps = config.get("t", 0)
    rule.step(next_w, np.ravel(dw))
    state = rule.state()
    config |= rule.config() | {"t": state.pop("steps")}
    config |= {slot: array.reshape(w.shape) for slot, array in state.items()}
    return next_w.reshape(w.shape), config
