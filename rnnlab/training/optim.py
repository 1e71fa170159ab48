"""Update rules: how a gradient changes the parameters.

A rule is its hyperparameters and its state. The arithmetic of each is a primitive of :mod:`rnnlab.ops`, of
the same name, over the flat buffers: ``w`` (P,) the parameters and ``dw`` (P,) their gradient.

>>> rule = make_update_rule("adam", {"learning_rate": 5e-3})
>>> rule.step(params.flat, grads.flat)                               # doctest: +SKIP

The hyperparameters have the names and, except in Adadelta, the defaults of cs231n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

from rnnlab.ops import ops_for
from rnnlab.types import Array

_FLUSH_EVERY = 64  # updates, within which no decay by less than half gets from 1e-30 to the subnormal 1e-38

_POSITIVE = (lambda value: 0 < value < math.inf, "a positive number")
_NOT_NEGATIVE = (lambda value: 0 <= value < math.inf, "a number that is not negative")
_FRACTION = (lambda value: 0 <= value < 1, "a number in [0, 1)")
_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "learning_rate": _POSITIVE,
    "momentum": _FRACTION,
    "decay_rate": _FRACTION,
    "beta1": _FRACTION,
    "beta2": _FRACTION,
    "epsilon": _POSITIVE,
    "weight_decay": _NOT_NEGATIVE,
}


@dataclass(kw_only=True)
class UpdateRule:
    """What all rules share: checked hyperparameters, a count of updates, and arrays of state.

    Attributes
    ----------
    primitive : str
        The function of :mod:`rnnlab.ops` that does the update.
    slots : tuple of str
        The arrays of state, each (P,) and zero at first, in the order in which the primitive takes them.
    steps : int
        The updates made so far.

    Raises
    ------
    TypeError, ValueError
        If a hyperparameter is no number, or is outside its range.
    """

    primitive: ClassVar[str]
    slots: ClassVar[tuple[str, ...]] = ()
    learning_rate: float = 1e-2

    def __post_init__(self) -> None:
        for name, value in self.config().items():
            in_range, expected = _RANGES[name]
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(f"optim_config: {name} is {value!r}, expected {expected}")
            if not in_range(float(value)):
                raise ValueError(f"optim_config: {name} is {value!r}, expected {expected}")
            setattr(self, name, float(value))
        self.steps = 0
        self._arrays: dict[str, Array] = {}

    def config(self) -> dict[str, float]:
        """The hyperparameters, as ``optim_config`` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def step(
        self,
        w: Array,
        dw: Array,
        *,
        scale: float = 1.0,
        rate: float = 1.0,
        parts: Sequence[slice] = (slice(None),),
    ) -> None:
        """Update ``w`` in place.

        Parameters
        ----------
        w, dw : (P,)
            The parameters and their gradient.
        scale : float
            Multiplies the gradient (gradient clipping).
        rate : float
            Multiplies the learning rate (a schedule).
        parts : sequence of slice
            What of the buffers is updated; the rest of ``w`` and of the state stays as it is.
        """
        ops = ops_for(w, dw)
        if not self._arrays:
            self._arrays = {name: ops.zeros(w.shape, w.dtype) for name in self.slots}
        self.steps += 1
        arguments = self._arguments() | {"learning_rate": self.learning_rate * rate, "scale": scale}
        for part in parts:
            arrays = (array[part] for array in (w, dw, *self._arrays.values()))
            getattr(ops, self.primitive)(*arrays, **arguments)
        if self.steps % _FLUSH_EVERY == 0:
            for array in self._arrays.values():
                ops.flush_subnormals(array)

    def state(self) -> dict[str, Any]:
        """The count ``steps`` and, once there was a step, the arrays named in ``slots``; not copies."""
        return {"steps": self.steps, **self._arrays}

    def load_state(self, state: Mapping[str, Any], w: Array) -> None:
        """Go on from a :meth:`state` of the same rule over the parameters ``w`` (P,).

        Raises
        ------
        ValueError
            If the state is of another rule, or an array has not the shape and the dtype of ``w``.
        """
        names = self.slots if state.get("steps") else ()
        if set(state) != {"steps", *names}:
            raise ValueError(f"state has {', '.join(state)}, expected {', '.join(('steps', *names))}")
        for name in names:
            found = state[name]
            if found.shape != w.shape or found.dtype != w.dtype:
                raise ValueError(
                    f"{name} is {found.dtype} of shape {found.shape}, expected {w.dtype} of shape {w.shape}"
                )
        ops = ops_for(w)
        self._arrays = {name: ops.zeros(w.shape, w.dtype) for name in names}
        for name, array in self._arrays.items():
            array[...] = ops.asarray(state[name])
        self.steps = int(state["steps"])

    def _arguments(self) -> dict[str, float]:
        """What the primitive takes besides arrays, learning rate and scale."""
        return self.config()


@dataclass(kw_only=True)
class SGD(UpdateRule):
    """Stochastic gradient descent: w -= learning_rate dw."""

    primitive: ClassVar[str] = "sgd"


@dataclass(kw_only=True)
class Momentum(UpdateRule):
    """Classical momentum (Polyak 1964), the course's ``sgd_momentum``.

        velocity = momentum velocity - learning_rate dw
        w += velocity

    PyTorch keeps b = momentum b + dw and subtracts learning_rate b: the same as long as the learning rate
    stands still. Here a new learning rate acts on new gradients only.
    """

    primitive: ClassVar[str] = "momentum"
    slots: ClassVar[tuple[str, ...]] = ("velocity",)
    momentum: float = 0.9


@dataclass(kw_only=True)
class RMSProp(UpdateRule):
    """RMSProp (Tieleman and Hinton 2012, lecture 6.5 of their course).

    cache = decay_rate cache + (1 - decay_rate) dw^2
    w -= learning_rate dw / (sqrt(cache) + epsilon)
    """

    primitive: ClassVar[str] = "rmsprop"
    slots: ClassVar[tuple[str, ...]] = ("cache",)
    decay_rate: float = 0.99
    epsilon: float = 1e-8


@dataclass(kw_only=True)
class Adagrad(UpdateRule):
    """Adagrad with a diagonal matrix (Duchi, Hazan and Singer 2011).

    cache += dw^2
    w -= learning_rate dw / (sqrt(cache) + epsilon)
    """

    primitive: ClassVar[str] = "adagrad"
    slots: ClassVar[tuple[str, ...]] = ("cache",)
    epsilon: float = 1e-8


@dataclass(kw_only=True)
class Adadelta(UpdateRule):
    """Adadelta (Zeiler 2012, algorithm 1), whose learning rate of 1 he leaves out.

    cache       = decay_rate cache + (1 - decay_rate) dw^2
    delta       = sqrt(delta_cache + epsilon) / sqrt(cache + epsilon) dw
    delta_cache = decay_rate delta_cache + (1 - decay_rate) delta^2
    w          -= learning_rate delta
    """

    primitive: ClassVar[str] = "adadelta"
    slots: ClassVar[tuple[str, ...]] = ("cache", "delta_cache")
    learning_rate: float = 1.0
    decay_rate: float = 0.95
    epsilon: float = 1e-6


@dataclass(kw_only=True)
class Adam(UpdateRule):
    """Adam (Kingma and Ba 2015, algorithm 1); t counts the updates, 1 at the first.

    m  = beta1 m + (1 - beta1) dw
    v  = beta2 v + (1 - beta2) dw^2
    w -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
    """

    primitive: ClassVar[str] = "adam"
    slots: ClassVar[tuple[str, ...]] = ("m", "v")
    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def _arguments(self) -> dict[str, float]:
        return super()._arguments() | {"step": self.steps}


@dataclass(kw_only=True)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    Before each update of Adam, w -= learning_rate weight_decay w. All parameters decay, biases too.
    """

    primitive: ClassVar[str] = "adamw"
    weight_decay: float = 1e-2


UPDATE_RULES: dict[str, type[UpdateRule]] = {
    rule.primitive: rule for rule in (SGD, Momentum, RMSProp, Adagrad, Adadelta, Adam, AdamW)
}


def make_update_rule(name: str, optim_config: Mapping[str, float] | None = None) -> UpdateRule:
    """The rule called ``name``, with the hyperparameters in ``optim_config`` and defaults for the others.

    Raises
    ------
    ValueError
        If there is no such rule, or it has no such hyperparameter, or one is out of its range.
    TypeError
        If a hyperparameter is no number.
    """
    if name not in UPDATE_RULES:
        raise ValueError(f"update_rule is {name!r}, expected one of {', '.join(UPDATE_RULES)}")
    config = dict(optim_config or {})
    known = [field.name for field in fields(UPDATE_RULES[name])]
    for key in config:
        if key not in known:
            raise ValueError(f"optim_config: unknown key {key!r}; {name} has {', '.join(known)}")
    return UPDATE_RULES[name](**config)
