"""Numeric gradients need products of full precision."""

from __future__ import annotations

from rnnlab.errors import InputError
from rnnlab.ops.precision import products_precision

__all__ = ["check_full_precision"]


def check_full_precision(function: str) -> None:
    """Raise ValueError unless products of float32 have full precision here and now.

    Rounded factors would dominate the differences that numeric gradients are made of.

    Parameters
    ----------
    function : str
        Who checks: the error begins with it.
    """
    found = products_precision()
    if found != "float32":
        raise InputError(
            f"{function}: gradient checks need products of full precision, RNNLAB_MATMUL or matmul is "
            f"{found!r}, expected 'float32'"
        )
