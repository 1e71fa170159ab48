"""The features of images that a captioning model reads: their checks, and their arrays by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.types import Array

Features = Array | tuple[Array, Array]  # images or their regions; a tuple: regions and images


def checked_features(
    argument: str,
    features: Any,
    as_floats: Callable[[str, Any], Array],
    *,
    regions: bool,
    input_dim: int,
    global_dim: int | None,
) -> tuple[Features, int]:
    """Check the features of a batch.

    Parameters
    ----------
    argument : str
        The function and its argument. Errors begin with it.
    features : (N, D); (N, L, D) with ``regions``; a tuple of that and (N, G) with ``global_dim``
    as_floats : callable
        Converts an array to the dtype and the device of the model. It also takes the name for its errors.
    regions : bool
        Whether an image has L regions, or one vector.
    input_dim : int
        D, size of a vector of an image, or of each of its regions.
    global_dim : int or None
        G, size of a global vector in addition to the regions; None if the features are not a tuple.

    Returns
    -------
    features
        The same, converted by ``as_floats``.
    rows : int
        N

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong.
    """
    axes = "(N, L, D)" if regions else "(N, D)"
    if global_dim is None:
        array = _checked_array(argument, features, as_floats, axes, input_dim)
        return array, len(array)
    if not isinstance(features, tuple) or len(features) != 2:
        found = f"tuple of {len(features)}" if isinstance(features, tuple) else type(features).__name__
        raise InputTypeError(f"{argument} is a {found}, expected a tuple of arrays {axes} and (N, G)")
    array = _checked_array(f"{argument}[0]", features[0], as_floats, axes, input_dim)
    vectors = _checked_array(f"{argument}[1]", features[1], as_floats, "(N, G)", global_dim)
    if len(array) != len(vectors):
        raise InputError(f"{argument}[1] has shape {vectors.shape}, expected N = {len(array)} as features[0]")
    return (array, vectors), len(array)


def _checked_array(
    name: str, array: Any, as_floats: Callable[[str, Any], Array], axes: str, size: int
) -> Array:
    """Convert an array and check its axes and the size of the last; only the first may be empty."""
    if isinstance(array, tuple):
        raise InputTypeError(f"{name} is a tuple, expected an array {axes}: the model has no global_dim")
    array = as_floats(name, array)
    if array.ndim != axes.count(",") + 1 or array.shape[-1] != size or not all(array.shape[1:]):
        raise InputError(f"{name} has shape {array.shape}, expected {axes} with {axes[-2]} = {size}")
    return array


def named_arrays(features: Features) -> dict[str, Array]:
    """The arrays of features by name, for a padded batch."""
    arrays = features if isinstance(features, tuple) else (features,)
    return {f"features{k}": array for k, array in enumerate(arrays)}


def features_of(arrays: Mapping[str, Array]) -> Features:
    """The features from the arrays of a padded batch, among them those of :func:`named_arrays`."""
    if "features1" in arrays:
        return arrays["features0"], arrays["features1"]
    return arrays["features0"]
