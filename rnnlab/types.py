"""Types that every package shares."""

from __future__ import annotations

from typing import Any, TypeAlias

# NumPy's ndarray or CuPy's, which share an interface but no base class; mypy checks what is done to neither.
Array: TypeAlias = Any
Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = dict[str, Shape]

# The arrays of a recurrent state, each (N, H): (h,) of most cells, (h, c) of an LSTM.
State: TypeAlias = tuple[Array, ...]
