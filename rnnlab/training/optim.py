"""The update rules of the library and their names.

The arithmetic of each is a primitive of :mod:`rnnlab.ops`, of the same name, over the flat buffers: ``w``
(P,) the parameters and ``dw`` (P,) their gradient.

>>> rule = make_update_rule("adam", {"learning_rate": 5e-3})
>>> rule.step(params.flat, grads.flat)                               # doctest: +SKIP

The hyperparameters have the names and, except in Adadelta, the defaults of cs231n. A custom rule is a
subclass of :class:`~rnnlab.training.update_rule.UpdateRule`; :func:`register_update_rule` gives it a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rnnlab.errors import InputTypeError
from rnnlab.ops import ops_for
from rnnlab.options import NotNegative, Positive, Probability
from rnnlab.training.configured import check_names
from rnnlab.training.registry import Registry
from rnnlab.training.update_rule import UpdateRule
from rnnlab.types import Array

_LEAST_EPSILON = 2**20  # smallest normal numbers: kernels treat subnormal numbers as zero, and 0 / 0 is NaN
_FLUSH_EVERY = 64  # updates: few passes over the state, and subnormal averages do not slow down many updates


@dataclass(kw_only=True)
class PrimitiveRule(UpdateRule):
    """A rule whose arithmetic is a primitive. On a GPU the primitive reads its numbers on the device.

    Attributes
    ----------
    primitive : str
        The function of :mod:`rnnlab.ops` that does the update.
    """

    primitive: ClassVar[str]

    def update(self, w: Array, dw: Array, *state: Array, learning_rate: float, scale: float) -> None:
        """Update parameters and state in place, as in :class:`UpdateRule`."""
        ops = ops_for(w)
        numbers = self._numbers() | {"learning_rate": learning_rate, "scale": scale}
        if "epsilon" in numbers:
            numbers["epsilon"] = max(numbers["epsilon"], _LEAST_EPSILON * float(np.finfo(w.dtype).tiny))
        getattr(ops, self.primitive)(w, dw, *state, **numbers)
        if self.steps % _FLUSH_EVERY == 0:
            for array in state:
                ops.flush_subnormals(array)

    def _numbers(self) -> dict[str, float]:
        """The scalar arguments of the primitive, except the scale."""
        return self.config()


@dataclass(kw_only=True)
class SGD(PrimitiveRule):
    """Stochastic gradient descent: w -= learning_rate dw."""

    primitive: ClassVar[str] = "sgd"


@dataclass(kw_only=True)
class Momentum(PrimitiveRule):
    """Classical momentum (Polyak 1964), the course's ``sgd_momentum``.

        velocity = momentum velocity - learning_rate dw
        w += velocity

    PyTorch computes b = momentum b + dw and subtracts learning_rate b. The two are equal while the learning
    rate is constant. Here a new learning rate affects new gradients only.
    """

    primitive: ClassVar[str] = "momentum"
    slots: ClassVar[tuple[str, ...]] = ("velocity",)
    momentum: Probability = 0.9


@dataclass(kw_only=True)
class RMSProp(PrimitiveRule):
    """RMSProp (Tieleman and Hinton 2012, lecture 6.5 of their course).

        cache = decay_rate cache + (1 - decay_rate) dw^2
        w -= learning_rate dw / (sqrt(cache) + epsilon)

    The cache is 0 at first.
    """

    primitive: ClassVar[str] = "rmsprop"
    slots: ClassVar[tuple[str, ...]] = ("cache",)
    decay_rate: Probability = 0.99
    epsilon: Positive = 1e-8


@dataclass(kw_only=True)
class Adagrad(PrimitiveRule):
    """Adagrad with a diagonal matrix (Duchi, Hazan and Singer 2011).

        cache += dw^2
        w -= learning_rate dw / (sqrt(cache) + epsilon)

    The cache is 0 at first.
    """

    primitive: ClassVar[str] = "adagrad"
    slots: ClassVar[tuple[str, ...]] = ("cache",)
    epsilon: Positive = 1e-8


@dataclass(kw_only=True)
class Adadelta(PrimitiveRule):
    """Adadelta (Zeiler 2012, algorithm 1).

        cache       = decay_rate cache + (1 - decay_rate) dw^2
        delta       = sqrt(delta_cache + epsilon) / sqrt(cache + epsilon) dw
        delta_cache = decay_rate delta_cache + (1 - decay_rate) delta^2
        w          -= learning_rate delta

    The paper has no learning rate; a learning rate of 1 gives its rule.
    """

    primitive: ClassVar[str] = "adadelta"
    slots: ClassVar[tuple[str, ...]] = ("cache", "delta_cache")
    learning_rate: Positive = 1.0
    decay_rate: Probability = 0.95
    epsilon: Positive = 1e-6


@dataclass(kw_only=True)
class Adam(PrimitiveRule):
    """Adam (Kingma and Ba 2015, algorithm 1).

        m  = beta1 m + (1 - beta1) dw
        v  = beta2 v + (1 - beta2) dw^2
        w -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)

    t counts the updates: it is 1 in the first.
    """

    primitive: ClassVar[str] = "adam"
    slots: ClassVar[tuple[str, ...]] = ("m", "v")
    learning_rate: Positive = 1e-3
    beta1: Probability = 0.9
    beta2: Probability = 0.999
    epsilon: Positive = 1e-8

    def _numbers(self) -> dict[str, float]:
        return super()._numbers() | {"step": self.steps}


@dataclass(kw_only=True)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).

    Before each update of Adam, w -= learning_rate weight_decay w. All parameters decay, biases too. The
    learning rate is that of the update, as in PyTorch. In the paper only the schedule's factor multiplies the
    decay: its lambda is weight_decay times the base learning rate here.
    """

    primitive: ClassVar[str] = "adamw"
    weight_decay: NotNegative = 1e-2


UPDATE_RULES: Registry[UpdateRule] = Registry(
    "update_rule",
    UpdateRule,
    {rule.primitive: rule for rule in (SGD, Momentum, RMSProp, Adagrad, Adadelta, Adam, AdamW)},
)


def register_update_rule(name: str, rule: type[UpdateRule]) -> None:
    """Register an update rule under a name, for ``Solver(update_rule=name)`` and recipes.

    The name is registered in this process only. On the command line use "package.module:Object" instead.

    Parameters
    ----------
    name : str
    rule : class
        A subclass of :class:`~rnnlab.training.update_rule.UpdateRule`, or a dataclass with its members.

    Raises
    ------
    ValueError
        If the name is empty, has a colon, or another rule has it.
    TypeError
        If ``rule`` is not a class with these members.
    """
    UPDATE_RULES.register(name, rule)


def make_update_rule(name: str, optim_config: Mapping[str, Any] | None = None) -> UpdateRule:
    """The rule called ``name``, with the hyperparameters in ``optim_config`` and defaults for the others.

    Parameters
    ----------
    name : str
        A built-in name, a registered one, or "package.module:Object".
    optim_config : mapping, optional

    Raises
    ------
    ValueError
        If there is no such rule, it has no such hyperparameter, or a value does not match its annotation.
    TypeError
        If the object of that name is not an update rule, or ``optim_config`` is not a mapping.
    """
    if not isinstance(optim_config, Mapping | None):
        raise InputTypeError(f"optim_config is {optim_config!r}, expected a mapping of hyperparameters")
    rule, config = UPDATE_RULES.find(name), dict(optim_config or {})
    check_names("optim_config", rule, config, name)
    return rule(**config)


def runs_on_device(name: str) -> bool:
    """Whether the rule called ``name`` can read its scale on a GPU and be captured in a CUDA graph.

    The rules whose arithmetic is a primitive can.
    """
    rule = UPDATE_RULES.find(name)
    return issubclass(rule, PrimitiveRule) and rule.update is PrimitiveRule.update
