"""Which arrays kernels accept, and copies of the others."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba.layouts import by_columns, contiguous, copied, plain, writeable


def read_only(a):
    a.flags.writeable = False
    return a


def unaligned(a):
    held = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    held[...] = a
    return held


OTHERS = {
    "read-only": read_only,
    "in the other byte order": lambda a: a.astype(">f4"),
    "unaligned": unaligned,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_an_array_that_kernels_do_not_accept(other, rng):
    numbers = rng.standard_normal((3, 4)).astype(np.float32)
    given = other(numbers.copy())
    assert not plain(given)
    for accepted in (writeable(given), contiguous(given), copied(given)):
        assert plain(accepted)
        assert accepted.flags.c_contiguous
        np.testing.assert_array_equal(accepted, numbers)


def test_what_kernels_accept_is_not_copied(rng):
    a = rng.standard_normal((3, 4))
    assert plain(a)
    assert contiguous(a) is a
    assert writeable(a[:, 1:]).base is a
    assert contiguous(a[:, 1:]).base is not a
    np.testing.assert_array_equal(contiguous(a[:, 1:]), a[:, 1:])


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        (np.ones((3, 4)), False),
        (np.ones((3, 4)).T, True),
        (np.ones((3, 1)), False),
        (np.ones((6, 8))[::2].T, False),
    ],
    ids=["rows", "columns", "both", "apart"],
)
def test_columns(a, expected):
    assert by_columns(a) == expected
