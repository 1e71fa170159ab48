import numpy as np
import pytest

from rnnlab.decoding.back_pointers import BackPointers
from rnnlab.ops import ops_on


@pytest.fixture(params=["cpu", "gpu"])
def ops(request):
    if request.param == "gpu":
        request.getfixturevalue("simulated")
    return ops_on(request.param)


def store(ops, array, values):
    array[...] = ops.asarray(np.asarray(values, array.dtype))


def test_sentences_are_read_along_their_pointers(ops):
    """5 6 and 7 8 cross: after the second step the slots hold the continuations of each other's sentence."""
    pointers, beam = BackPointers(ops, 1, 2, np.array([1.0, 1.0, 2.0])), np.array([0])
    store(ops, pointers.of(0), [[[5, 6]], [[0, 0]]])
    store(ops, pointers.of(1), [[[8, 7]], [[1, 0]]])
    np.testing.assert_array_equal(pointers.history(beam, 2, 2), [[6, 8], [5, 7]])
    store(ops, pointers.found.scores, [[-1.625, -1.75]])
    store(ops, pointers.found.totals, [[-3.25, -3.5]])
    store(ops, pointers.found.lengths, [[2, 2]])
    store(ops, pointers.found.slots, [[1, 0]])
    ((first, second),) = pointers.hypotheses(1, 2)
    assert first == ((5, 7), -3.25, -1.625, True, None)
    assert second == ((6, 8), -3.5, -1.75, True, None)
    assert [type(each) for each in first[1:4]] == [float, float, bool]
    assert {type(token) for token in first.tokens} == {int}
    assert pointers.hypotheses(1, 1) == [[first]]


def test_unfinished_sentences_follow_the_finished_ones(ops):
    pointers = BackPointers(ops, 1, 2, np.ones(3))
    store(ops, pointers.of(0), [[[5, 6]], [[0, 0]]])
    store(ops, pointers.found.scores, [[-9.0, -np.inf]])
    store(ops, pointers.found.totals, [[-9.0, -np.inf]])
    store(ops, pointers.found.open_totals, [[-1.0, -2.0]])
    store(ops, pointers.found.open_lengths, [1])
    found = pointers.hypotheses(1, 2)[0]
    assert [(one.tokens, one.finished) for one in found] == [((), True), ((5,), False)]


def test_memory_for_more_steps(ops):
    pointers = BackPointers(ops, 1, 1, np.ones(80))
    for t in range(70):
        store(ops, pointers.of(t), [[[t]], [[0]]])
    assert pointers.history(np.array([0]), 1, 70).tolist() == [list(range(70))]
