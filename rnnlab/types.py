"""Types that every package shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

# NumPy's ndarray or CuPy's, which share an interface but no base class; mypy checks what is done to neither.
Array: TypeAlias = Any
Params: TypeAlias = Mapping[str, Array]  # by name
Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]

# The arrays of a recurrent state, each (N, H): (h,) of most cells, (h, c) of an LSTM.
State: TypeAlias = tuple[Array, ...]

Random: TypeAlias = np.random.Generator | None  # draws dropout and zoneout; None is none
