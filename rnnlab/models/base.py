"""What all models are: parameters in one buffer, made from a constructor's arguments that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeAlias

import numpy as np

from rnnlab.layers.checks import check_probability, check_real, check_weight
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.models.parts.padding import Padded
from rnnlab.ops import device_of, ops_for, ops_on
from rnnlab.options import Stored, check_options
from rnnlab.parameters import Parameters
from rnnlab.types import Array

Batch = tuple[int, int]  # the examples and the tokens of a batch

# How a constructor takes regularisation; in recipes and checkpoints it is a table of its options.
RegularisationOptions: TypeAlias = Annotated[
    Mapping[str, Any] | Regularisation | None, Stored(Regularisation)
]

LOSSES = ("reconstruction", "encoder_reconstruction", "label_smoothing", "doubly_stochastic")


def arguments_of(model: type, constructor: Mapping[str, Any]) -> dict[str, Any]:
    """A constructor's arguments except ``rng`` and ``device``, in a form that JSON can hold.

    Parameters
    ----------
    model : type
        The class whose constructor it is.
    constructor : mapping of str to any
        The constructor's ``locals()``.

    Raises
    ------
    TypeError, ValueError
        If an argument is not what its annotation says; names it.
    """
    options = {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in constructor.items()
        if name not in ("self", "__class__", "rng", "device")
    }
    regularisation = Regularisation.of(constructor["regularisation"])._asdict()
    options |= {"dtype": np.dtype(constructor["dtype"]).name, "regularisation": regularisation}
    check_options(model.__name__, model, options)
    return options


class Model:
    """A model keeps what :func:`arguments_of` its constructor are in ``_options``.

    Attributes
    ----------
    params : Parameters
    """

    _options: dict[str, Any]
    params: Parameters

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, fit for JSON: :meth:`from_config` makes a model of the same shape.

        The weights of losses are those that the model has now.
        """
        options = self._options | {name: getattr(self, name) for name in self._losses}
        return {name: dict(value) if isinstance(value, dict) else value for name, value in options.items()}

    @property
    def _losses(self) -> list[str]:
        """The options that weigh losses, which are attributes and may be changed."""
        return [name for name in LOSSES if name in self._options]

    @property
    def _loss_weights(self) -> tuple[float, ...]:
        """What they are now."""
        return tuple(getattr(self, name) for name in self._losses)

    def _check_losses(self, function: str) -> None:
        """Raise ValueError if a weight has been set to what is none."""
        for name in self._losses:
            check = check_probability if name == "label_smoothing" else check_weight
            check(f"{type(self).__name__}.{function}", name, getattr(self, name))

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, rng: np.random.Generator | int = 0) -> Self:
        """A model with fresh parameters from what :meth:`config` gave."""
        return cls(**config, rng=rng)  # type: ignore[call-arg]

    def to(self, device: str) -> Self:
        """Move the parameters to a device, in place: "cpu", "gpu" (the first), or "gpu:N".

        All arithmetic follows them. Whatever comes in may be NumPy's; tokens, labels and lengths are.

        Raises
        ------
        ValueError, ImportError
            If the name is none of these, or there is no such device.
        """
        ops = ops_on(device)
        here = ops_for(self.params.flat)
        if ops is not here or device_of(self.params.flat) != device_of(ops.empty(0)):
            self.params = self.params.on(lambda flat: ops.asarray(here.asnumpy(flat)))
        return self

    def staged(self, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        """A batch whose floating-point arrays are on the model's device, in its dtype.

        :meth:`loss` does so itself; done before, in another thread, the copy need not be waited for.
        """
        return tuple(map(self._staged, batch))

    def _staged(self, entry: Any) -> Any:
        if isinstance(entry, tuple):
            return self.staged(entry)
        floats = getattr(entry, "dtype", np.dtype(int)).kind == "f"
        return self._ops.prefetch(entry, self.params.flat) if floats else entry

    def staged_whole(self, batch: Padded) -> Padded:
        """A padded batch with all its arrays on the model's device."""
        integers = self._ops.empty(0, np.int64)
        return batch.on(
            lambda x: self._ops.prefetch(x, self.params.flat if x.dtype.kind == "f" else integers)
        )

    @property
    def device(self) -> str:
        """Where the parameters are: "cpu" or "gpu:N"."""
        return device_of(self.params.flat)

    @property
    def _ops(self) -> Any:
        """The primitives of the parameters' library."""
        return ops_for(self.params.flat)

    def _floats(self, argument: str, array: Any) -> Array:
        """An array of real numbers on the model's device, in its dtype; errors begin with ``argument``."""
        array = array if hasattr(array, "dtype") else np.asarray(array)
        check_real(argument, array)
        return self._ops.asarray(array, dtype=self.dtype)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the parameters, and of all arithmetic."""
        return self.params.dtype

    def _room(self, grads: Parameters | None, part_of: Batch | None = None) -> Parameters:
        """Where to add gradients: ``grads`` or, without it, fresh ones; zeros but for ``grads`` of a part."""
        if grads is None:
            return self.params.zeros_like()
        if part_of is None:
            grads.flat[...] = 0
        return grads


def averaged_over(function: str, examples: int, tokens: int, part_of: Batch | None) -> Batch:
    """What losses are averaged over: a batch's own examples and tokens, or those of the one it is a part of.

    Raises
    ------
    ValueError
        If that one is smaller.
    """
    if part_of is None:
        return examples, tokens
    if part_of[0] < examples or part_of[1] < tokens:
        raise ValueError(
            f"{function}: part_of is {part_of}, expected at least the part's own {examples} examples "
            f"and {tokens} tokens"
        )
    return int(part_of[0]), int(part_of[1])  # NumPy's own would turn float32 into float64
