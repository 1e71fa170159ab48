"""What all models are: parameters in one buffer, made from a constructor's arguments that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from rnnlab.parameters import Parameters


class Model:
    """A model keeps the arguments of its own constructor, but for ``rng``, in ``_options``.

    Attributes
    ----------
    params : Parameters
    """

    _options: dict[str, Any]
    params: Parameters

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, fit for JSON: :meth:`from_config` makes a model of the same shape."""
        return {
            name: dict(value) if isinstance(value, dict) else value for name, value in self._options.items()
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, rng: np.random.Generator | int = 0) -> Self:
        """A model with fresh parameters from what :meth:`config` gave."""
        return cls(**config, rng=rng)  # type: ignore[call-arg]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the parameters, and of all arithmetic."""
        return self.params.dtype

    def _room(self, grads: Parameters | None) -> Parameters:
        """Zeros to add gradients into, in ``grads`` if it is given."""
        if grads is None:
            return self.params.zeros_like()
        grads.flat[...] = 0
        return grads
