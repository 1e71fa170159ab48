"""Copies of a source for its sentences, and the sum of their gradients."""

import numpy as np

from rnnlab.models.parts.repeats import Repeats
from rnnlab.models.parts.values import Source


def source_of(rng, rows):
    return Source(
        (rng.standard_normal((rows, 2)), rng.standard_normal((rows, 2))),
        memory=rng.standard_normal((rows, 3, 4)),
        mask=np.array([[True, True, False], [True, False, False]] * rows)[:rows],
        zero_state=True,
    )


def test_each_row_is_repeated_in_place(rng):
    source = source_of(rng, 2)
    repeated = Repeats(source, 6).forward(source)
    rows = [0, 0, 0, 1, 1, 1]
    for found, given in zip(repeated.state, source.state, strict=True):
        np.testing.assert_array_equal(found, given[rows])
    np.testing.assert_array_equal(repeated.memory, source.memory[rows])
    np.testing.assert_array_equal(repeated.mask, source.mask[rows])
    assert repeated.mask.dtype == bool
    assert repeated.image is None
    assert repeated.zero_state is True


def test_the_backward_is_the_adjoint(rng):
    """<y, forward(x)> = <backward(y), x>."""
    source, repeats = source_of(rng, 2), Repeats(source_of(rng, 2), 6)
    dcopies = source_of(rng, 6)
    dsource = repeats.backward(dcopies)
    copies = repeats.forward(source)
    for dx, x, dy, y in (
        (dsource.memory, source.memory, dcopies.memory, copies.memory),
        (dsource.state[1], source.state[1], dcopies.state[1], copies.state[1]),
    ):
        np.testing.assert_allclose((dx * x).sum(), (dy * y).sum())


def test_one_sentence_each_is_the_identity(rng):
    source = source_of(rng, 2)
    repeats = Repeats(source, 2)
    assert repeats.repeated(source.memory) is source.memory
    assert repeats.summed(source.memory) is source.memory
    assert repeats.forward(source).state[0] is source.state[0]
    assert repeats.backward(source).state[0] is source.state[0]


def test_an_empty_batch(rng):
    source = source_of(rng, 0)
    assert Repeats(source, 0).forward(source).memory.shape == (0, 3, 4)
