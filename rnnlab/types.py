"""Types that every package shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

# A NumPy or CuPy array. The two share an interface but no base class, so mypy does not check their use.
Array: TypeAlias = Any
Params: TypeAlias = Mapping[str, Array]  # parameters by name
Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]
Indices: TypeAlias = np.ndarray | Sequence[int]  # of examples

# The arrays of a recurrent state, each (N, H): (h,) for most cells, (h, c) for an LSTM.
State: TypeAlias = tuple[Array, ...]

Random: TypeAlias = np.random.Generator | None  # draws dropout and zoneout masks; None means no masks
