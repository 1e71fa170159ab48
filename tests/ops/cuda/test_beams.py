"""A step of beam search on CuPy against the reference."""

import numpy as np
import pytest

from rnnlab.ops import gpu_training
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.beams import BeamStep, Found

from ..beam_cases import KINDS, SHAPES, assert_same_step, random_step, results
from .compare import every_dtype


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step(kind, shape, ops, dtype, rng):
    for _ in range(3):
        assert_same_step(ops, rng, shape, kind, dtype)


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("shape", [(3, 4, 4, 30), (1, 2, 5, 300)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_penalties_and_the_last_step(kind, shape, ops, dtype, rng):
    assert_same_step(ops, rng, shape, kind, dtype, penalised=True)
    b, _, K, V = shape
    assert_same_step(ops, rng, (b, K, K, V), kind, dtype, last=True)


def test_beams_of_many_sentences(ops, rng):
    """They need more shared memory than a block has without asking, or than there is."""
    assert_same_step(ops, rng, (1, 1100, 1100, 5), "distinct", np.float32)
    with pytest.raises(ValueError, match="beam_step: a block needs .* bytes of shared memory, gpu:0 has"):
        assert_same_step(ops, rng, (1, 9000, 9000, 2), "distinct", np.float32)


@every_dtype
def test_a_step_in_a_graph(ops, dtype, rng):
    """It waits for nothing."""
    arguments = random_step(rng, (3, 4, 4, 30), "distinct", dtype)
    expected = results(ops, *arguments)
    log_probs, before, found, pointers, rules, places, penalty = arguments

    def moved(x):
        return None if x is None else ops.asarray(x)

    given = moved(log_probs), BeamStep(*map(moved, before)), Found(*map(moved, found)), moved(pointers)
    places, made = moved(places), []

    def work():
        made.append(ops.beam_step(*given, rules, places, penalty))

    training = gpu_training()
    training.Graph(work, training.GraphMemory()).launch(rng, work)
    for a, e in zip((*made[0], given[2].scores, given[2].counts), (*expected[:7], expected[11]), strict=True):
        np.testing.assert_array_equal(ops.asnumpy(a), e)


@pytest.mark.usefixtures("blocks")
def test_sentences(ops, rng):
    T, B, K, M = 5, 4, 3, 600
    pointers = rng.integers(K, size=(T, 2, B, K))
    asked = rng.integers(B, size=M), rng.integers(T + 1, size=M), rng.integers(K, size=M)
    expected = numpy_ops.beam_words(pointers, *asked)
    for a, e in zip(ops.beam_words(*map(ops.asarray, (pointers, *asked))), expected, strict=True):
        np.testing.assert_array_equal(ops.asnumpy(a), e)


def test_arrays_that_are_not_contiguous(ops, rng):
    log_probs, before, *rest = random_step(rng, (3, 4, 4, 30), "distinct", np.float64)
    before = BeamStep(*map(ops.asarray, before))
    found, pointers, rules, _, _ = rest
    found, pointers = Found(*map(ops.asarray, found)), ops.asarray(pointers)
    log_probs, wide = ops.asarray(log_probs), ops.asarray(np.repeat(ops.asnumpy(pointers), 2, axis=2))
    twice = ops.asarray(np.repeat(ops.asnumpy(before.beams), 2))
    for apart in ((before, wide[:, :, ::2]), (before._replace(beams=twice[::2]), pointers)):
        with pytest.raises(ValueError, match="expected a C-contiguous array, got strides"):
            ops.beam_step(log_probs, apart[0], found, apart[1], rules)
