"""An adapter that lets rnnlab's solver train a student's model with the course's interface.

The course's model has ``params``, a dict of arrays, and ``loss(features, captions)``, which returns the loss
and a dict of gradients with the same names. The solver needs all parameters in one buffer. They are copied
there, and the dict gets views of the buffer, so that the model sees every update.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from numbers import Real
from typing import Any, Protocol

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import described
from rnnlab.parameters import Parameters
from rnnlab.types import Array


class CourseModel(Protocol):
    """The course's interface of a model."""

    params: MutableMapping[str, Array]

    def loss(self, features: Array, captions: Array) -> tuple[float, Mapping[str, Array]]:
        """The loss of a batch, and the gradient of every parameter."""
        ...


class OwnModel:
    """A course model with the interface that :class:`~rnnlab.training.Solver` takes.

    Parameters
    ----------
    model : CourseModel
        The arrays of its ``params`` are replaced by views of one buffer with the same numbers.

    Attributes
    ----------
    model : CourseModel
    params : Parameters

    Raises
    ------
    TypeError
        If ``params`` is not a dict of arrays, or they are not all float32 or all float64.
    """

    def __init__(self, model: CourseModel) -> None:
        self.model, self._name = model, type(model).__name__
        arrays = model.params
        if not isinstance(arrays, MutableMapping) or not arrays:
            raise InputTypeError(f"{self._name}: params is {arrays!r}, expected a dict of arrays")
        for name, array in arrays.items():
            self._check_array("params", name, array)
        dtypes = {array.dtype for array in arrays.values()}
        if len(dtypes) > 1 or dtypes.isdisjoint({np.dtype(np.float32), np.dtype(np.float64)}):
            found = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
            raise InputTypeError(f"{self._name}: params has {found}, expected all float32 or all float64")
        self.params = Parameters({name: array.shape for name, array in arrays.items()}, dtypes.pop())
        self._share()

    def loss(
        self, features: Array, captions: Array, *, rng: Any = None, grads: Parameters | None = None
    ) -> tuple[float, Parameters]:
        """The loss and the gradients of the model, checked; ``grads`` is overwritten if it is given.

        Raises
        ------
        ValueError
            If the results are not two, a name of the gradients is missing or unknown, or a shape is wrong.
        TypeError
            If the loss is not a number, or a gradient is not an array of floating-point numbers.
        """
        self._share()
        found: Any = self.model.loss(features, captions)
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[1], Mapping):
            raise InputError(
                f"{self._name}.loss: returned {described(found)}, expected loss and grads, a dict"
            )
        loss, gradients = found
        if isinstance(loss, bool) or not isinstance(loss, Real | np.ndarray) or np.asarray(loss).ndim:
            raise InputTypeError(f"{self._name}.loss: loss is {described(loss)}, expected a number")
        if gradients.keys() != set(self.params):
            raise InputError(
                f"{self._name}.loss: grads has {', '.join(gradients) or 'no names'}, "
                f"expected the names of params, {', '.join(self.params)}"
            )
        grads = self.params.zeros_like() if grads is None else grads
        for name, gradient in gradients.items():
            self._check_array("loss: grads", name, gradient)
            if gradient.shape != grads[name].shape:
                raise InputError(
                    f"{self._name}.loss: grads has {name} of shape {gradient.shape}, "
                    f"expected {grads[name].shape} as params"
                )
            grads[name][...] = gradient
        return float(loss), grads

    def config(self) -> dict[str, Any]:
        """The name of the class and the shapes of the parameters."""
        return {
            "model": self._name,
            "params": {name: list(shape) for name, shape in self.params.shapes.items()},
        }

    def _share(self) -> None:
        """Copy new arrays in the model's ``params`` to the buffer, and replace them by its views."""
        for name, view in self.params.items():
            array = self.model.params[name]
            if array is not view:
                self.params[name] = array
                self.model.params[name] = view

    def _check_array(self, where: str, name: str, array: Any) -> None:
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            raise InputTypeError(
                f"{self._name}.{where} has {described(array)} for {name}, "
                "expected an array of floating-point numbers"
            )
