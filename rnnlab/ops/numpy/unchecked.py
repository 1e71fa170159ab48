"""The primitives on NumPy without checks of their arguments: see :func:`rnnlab.ops.unchecked`."""

from __future__ import annotations

import inspect
from types import ModuleType, SimpleNamespace

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numpy import cells, masks
from rnnlab.ops.step_masks import regularised_steps


def primitives() -> SimpleNamespace:
    """All of them, as attributes."""
    of_cells, of_masks = map(_unwrapped, (cells, masks))
    all_of_them = _unwrapped(numpy_ops)
    vars(all_of_them).update(regularised_steps(of_cells, of_masks)._asdict())
    return all_of_them


def _unwrapped(module: ModuleType) -> SimpleNamespace:
    """The attributes of a module, with functions freed of their decorators."""
    return SimpleNamespace(
        **{
            name: inspect.unwrap(value) if inspect.isfunction(value) else value
            for name, value in vars(module).items()
            if not name.startswith("_")
        }
    )
