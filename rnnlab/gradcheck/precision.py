"""Numeric gradients need products of full precision."""

from __future__ import annotations

from rnnlab.errors import InputError
from rnnlab.ops.precision import products_precision

__all__ = ["check_full_precision"]


def check_full_precision(function: str) -> None:
    """Raise ValueError unless products of float32 currently have full precision.

    The rounding of factors would dominate the differences from which numeric gradients are computed.

    Parameters
    ----------
    function : str
        The function that needs full precision. The error begins with it.
    """
    found = products_precision()
    if found != "float32":
        raise InputError(
            f"{function}: gradient checks need products of full precision, RNNLAB_MATMUL or matmul is "
            f"{found!r}, expected 'float32'"
        )
