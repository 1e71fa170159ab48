"""The base class of update rules.

A rule changes the parameters ``w`` (P,) in place, given their gradient ``dw`` (P,). A custom rule is a
dataclass that inherits from :class:`UpdateRule`: its fields are hyperparameters, its ``slots`` are arrays of
state, and its ``update`` is the arithmetic.

>>> from rnnlab.options import Probability
>>> @dataclass(kw_only=True)
... class Averaged(UpdateRule):
...     '''m = beta m + (1 - beta) dw;  w -= learning_rate m.'''
...     slots: ClassVar[tuple[str, ...]] = ("m",)
...     beta: Probability = 0.9
...
...     def update(self, w, dw, m, *, learning_rate, scale):
...         m *= self.beta
...         m += (1 - self.beta) * scale * dw
...         w -= learning_rate * m
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from rnnlab.errors import InputError, InputTypeError
from rnnlab.importing import is_built_in
from rnnlab.ops import ops_for
from rnnlab.options import NotNegative, Number, Positive, check_option
from rnnlab.training.configured import Configured
from rnnlab.types import Array


@dataclass(kw_only=True)
class UpdateRule(Configured, ABC):
    """Base class of update rules: checked hyperparameters, a count of updates, and arrays of state.

    A subclass is a dataclass. Its fields are hyperparameters with annotations of :mod:`rnnlab.options`, which
    are checked.

    Attributes
    ----------
    slots : tuple of str
        The arrays of state, each (P,) and zero at first, in the order in which :meth:`update` takes them.
    learning_rate : float
        The base learning rate.
    steps : int
        The number of updates so far; 1 during the first. The solver lowers it when it takes back updates that
        failed.

    Raises
    ------
    ValueError
        If a hyperparameter is not what its annotation says.
    """

    slots: ClassVar[tuple[str, ...]] = ()
    learning_rate: Positive = 1e-2

    steps = 0  # without an annotation, since it is not a hyperparameter
    _arrays = cast(dict[str, Array], {})

    def __init_subclass__(cls, **options: Any) -> None:
        """Check the names in ``slots``, under which a checkpoint saves the arrays.

        Raises
        ------
        TypeError
            If ``slots`` is not a tuple of different identifiers, or has ``steps``, which the state holds
            already.
        """
        super().__init_subclass__(**options)
        found: Any = cls.slots
        names = [name for name in found if isinstance(name, str) and name.isidentifier() and name != "steps"]
        if not isinstance(found, tuple) or len(set(names)) < len(found):
            raise InputTypeError(
                f"{cls.__name__}: slots is {found!r}, expected a tuple of different identifiers, not 'steps'"
            )

    # Any: type checkers then accept a rule that names the arrays of its state
    @abstractmethod
    def update(self, w: Array, dw: Array, *state: Any, **factors: Any) -> None:
        """Update parameters and state in place.

        It is called as ``update(w, dw, *state, learning_rate=..., scale=...)``.

        Parameters
        ----------
        w, dw : (p,)
            A part of the parameters, and its gradient, which must not be changed. Frozen parameters are left
            out.
        *state : (p,)
            The same part of each array named in ``slots``.
        learning_rate : float
            The rule's, times the factors of the schedule and of this part.
        scale : float
            Multiplies the gradient (clipping by norm).
        """

    def step(
        self,
        w: Array,
        dw: Array,
        *,
        scale: float = 1.0,
        multiplier: float = 1.0,
        parts: Sequence[tuple[slice, float]] = ((slice(None), 1.0),),
    ) -> None:
        """Update ``w`` in place.

        Parameters
        ----------
        w, dw : (P,)
            The parameters and their gradient.
        scale : float
            Multiplies the gradient (clipping by norm).
        multiplier : float
            Multiplies the learning rate (a schedule).
        parts : sequence of (slice, float)
            The parts of the buffers to update, and the factor of the learning rate of each; the rest of ``w``
            and of the state is not changed.

        Raises
        ------
        ValueError
            If the arrays are not (P,), their shape or dtype is not that of the rule's state, or a factor is
            not finite, or ``multiplier`` negative.
        TypeError
            If the arrays are of different libraries.

        Warns
        -----
        RuntimeWarning
            If the first step of a rule that is not built in has changed no parameter, although the gradient
            is not zero.
        """
        ops = ops_for(w, dw)
        self._check(w, dw)
        name = f"{type(self).__name__}.step"
        check_option(name, "multiplier", NotNegative, multiplier)
        if not hasattr(scale, "__cuda_array_interface__"):  # reading it would wait for the GPU
            check_option(name, "scale", Number, scale)
        if not self._arrays:
            self._arrays = {name: ops.zeros(w.shape, w.dtype) for name in self.slots}
        before = None if self.steps or is_built_in(type(self)) else w.copy()
        self.steps += 1
        try:
            for part, factor in parts:
                arrays = (array[part] for array in (w, dw, *self._arrays.values()))
                self.update(*arrays, learning_rate=self.learning_rate * multiplier * factor, scale=scale)
        except BaseException:
            self.steps -= 1  # the next step is not a later one
            raise
        if before is not None and multiplier and scale and dw.any() and not (w != before).any():
            warnings.warn(
                f"{type(self).__name__}: the first step has not changed w, expected update to write into the "
                "array: w -= ..., or w[...] = ..., not w = ...",
                RuntimeWarning,
                stacklevel=2,
            )

    def state(self) -> dict[str, Any]:
        """``steps`` and, after the first step, the arrays named in ``slots``; not copies."""
        return {"steps": self.steps, **(self._arrays if self.steps else {})}

    def load_state(self, state: Mapping[str, Any], w: Array) -> None:
        """Resume from a :meth:`state` of the same rule over the parameters ``w`` (P,).

        Raises
        ------
        ValueError
            If the state is of another rule, or the shape or dtype of an array is not that of ``w``.
        """
        names = self.slots if state.get("steps") else ()
        if set(state) != {"steps", *names}:
            raise InputError(f"state has {', '.join(state)}, expected {', '.join(('steps', *names))}")
        for name in names:
            found = state[name]
            if found.shape != w.shape or found.dtype != w.dtype:
                raise InputError(
                    f"{name} is {found.dtype} of shape {found.shape}, expected {w.dtype} of shape {w.shape}"
                )
        ops = ops_for(w)
        self._arrays = {name: ops.zeros(w.shape, w.dtype) for name in names}
        for name, array in self._arrays.items():
            array[...] = ops.asarray(state[name])
        self.steps = int(state["steps"])

    def _check(self, w: Array, dw: Array) -> None:
        """Compare the arrays of a step with each other and with the state."""
        name = f"{type(self).__name__}.step"
        if w.ndim != 1:
            raise InputError(f"{name}: w has shape {w.shape}, expected (P,): use w.reshape(-1)")
        for label, array in (("dw", dw), *self._arrays.items()):
            if array.shape == w.shape and array.dtype == w.dtype:
                continue
            found = f"{array.dtype} of shape {array.shape}"
            if label == "dw":
                raise InputError(f"{name}: dw is {found}, expected {w.dtype} of shape {w.shape} as w")
            raise InputError(
                f"{name}: w is {w.dtype} of shape {w.shape}, but the state {label} is {found}; "
                "make a rule for each array of parameters"
            )

    def _place(self) -> str:
        return "optim_config"
