"""The compiled maximum over slots and multi-label margin loss against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops

from ..cases import TOLERANCE
from .compare import assert_same, assert_same_arguments, every_dtype, read_only, strided


@pytest.mark.parametrize("name", ["max_pool", "max_pool_gradient", "multilabel_margin"])
def test_a_kernel_has_the_arguments_of_the_reference(name):
    assert_same_arguments(name)


@every_dtype
@pytest.mark.parametrize("integer", [np.int64, np.int32, np.int8])
@pytest.mark.parametrize(
    "shape", [(5, 7, 3), (1, 1, 1), (64, 33, 40), (3, 1000, 9), (3, 4, 0), (0, 4, 2)], ids=str
)
def test_multilabel_margin(shape, integer, dtype, rng, normal):
    M, V, K = shape
    scores, words = normal(M, V), rng.integers(-1, min(V, 127), (M, K)).astype(integer)
    words[: M // 3] = -1  # rows without words
    assert_same("multilabel_margin", [scores, words, 0.25, np.empty_like(scores)])


@every_dtype
@pytest.mark.parametrize("shape", [(5, 3, 7), (1, 1, 1), (64, 4, 33), (2, 1, 300), (0, 2, 4)], ids=str)
def test_max_pool(shape, dtype, rng, normal):
    n, L, V = shape
    x = np.round(normal(*shape), 1)  # with equals
    x[rng.random(shape) < 0.05] = -np.inf
    assert_same("max_pool", [x, np.empty((n, V), dtype)])
    assert_same("max_pool_gradient", [normal(n, V), rng.integers(L, size=(n, V)), np.empty_like(x)])


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_propagate(bad, dtype, normal):
    scores, words = normal(4, 40), np.array([[0, 17], [17, 3], [1, 2], [-1, -1]])
    scores[:, 17] = bad
    assert_same("multilabel_margin", [scores, words, 1.0, np.empty_like(scores)])
    x = normal(3, 4, 5)
    x[1, 2:], x[2, :, 3] = bad, bad
    assert_same("max_pool", [x, np.empty((3, 5), dtype)])


@pytest.mark.usefixtures("lenient")
@every_dtype
def test_arrays_of_other_layouts(dtype, rng, normal):
    scores, words = normal(4, 9), rng.integers(-1, 9, (4, 3))
    assert_same("multilabel_margin", [scores, words, 1.0, np.empty_like(scores)], view=strided)
    assert_same("max_pool", [normal(4, 2, 9), np.empty((4, 9), dtype)], view=strided)
    slots = rng.integers(2, size=(4, 9))
    assert_same("max_pool_gradient", [scores, slots, np.empty((4, 2, 9), dtype)], view=strided)
    losses = numba_ops.multilabel_margin(read_only(scores), words, 1.0, np.empty_like(scores))
    expected = numba_ops.multilabel_margin(scores, words, 1.0, np.empty_like(scores))
    np.testing.assert_allclose(losses, expected, **TOLERANCE[dtype])


def test_an_index_out_of_range():
    scores = np.zeros((2, 9), np.float32)
    with pytest.raises(
        IndexError, match=r"multilabel_margin: words has indices from -1 to 9, expected indices from -1 to 8"
    ):
        numba_ops.multilabel_margin(scores, np.array([[0, -1], [3, 9]]), 1.0, np.empty_like(scores))
    for slot in (-1, 2):
        with pytest.raises(IndexError, match="max_pool_gradient: slots has indices"):
            numba_ops.max_pool_gradient(scores, np.full((2, 9), slot), np.empty((2, 2, 9), np.float32))
