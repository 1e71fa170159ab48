"""A step of beam search on NumPy against all continuations, sorted."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.beams import GOING, OVER, BeamStep, Found

from ..beam_cases import KINDS, SHAPES, random_step, results


def sorted_step(i, log_probs, before, found, rules, place, K):
    """The totals, words and slots of beam i's continuations, and its finished sentences, by Python's sort."""
    S, V = before.totals.shape[1], log_probs.shape[1]
    x = log_probs.reshape(-1, S, V)[place].astype(float)
    continued = [
        (-(before.totals[place, s] + x[s, w]), s, -x[s, w], w)
        for s in range(S)
        for w in range(V)
        if before.totals[place, s] + x[s, w] > -np.inf and before.status[place] == GOING
    ]
    continued.sort()
    others = [each for each in continued if each[3] != rules.end_token][:K]
    ends = [each for each in continued[:K] if each[3] == rules.end_token]
    old = [
        (-found.scores[i, k], found.totals[i, k], found.lengths[i, k], found.slots[i, k])
        for k in range(K)
        if found.scores[i, k] > -np.inf
    ]
    new = [(total / rules.norm, -total, rules.length, s) for total, s, _, _ in ends]
    return others, sorted(old + new, key=lambda each: each[0])[:K], len(ends)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step(kind, shape, rng):
    log_probs, before, found, pointers, rules, places, penalty = random_step(rng, shape, kind, np.float64)
    given = log_probs, before, found, pointers, rules, places, penalty
    step, after = (lambda all_of_them: (BeamStep(*all_of_them[:6]), Found(*all_of_them[6:13])))(
        results(numpy_ops, *given)
    )
    S, K = before.totals.shape[1], pointers.shape[2]
    for i, place in enumerate(range(shape[0]) if places is None else places):
        beam = before.beams[place]
        others, best, ended = sorted_step(beam, log_probs, before, found, rules, place, K)
        count = len(others)
        np.testing.assert_array_equal(step.totals[i, :count], [-each[0] for each in others])
        np.testing.assert_array_equal(step.rows[i, :count], [place * S + each[1] for each in others])
        np.testing.assert_array_equal(step.words[i, :count], [each[3] for each in others])
        assert np.isneginf(step.totals[i, count:]).all()
        np.testing.assert_array_equal(after.scores[beam, : len(best)], [-each[0] for each in best])
        for array, column in ((after.totals, 1), (after.lengths, 2), (after.slots, 3)):
            np.testing.assert_array_equal(array[beam, : len(best)], [each[column] for each in best])
        assert after.counts[beam] == found.counts[beam] + ended
        improves = count and step.totals[i, 0] / rules.largest_norm > after.scores[beam, rules.n_best - 1]
        assert step.status[i] == (GOING if improves and after.counts[beam] < K else OVER)


def test_the_primitive_of_a_step_takes_no_beam(rng):
    arguments = random_step(rng, (0, 2, 2, 5), "distinct", np.float32)
    assert [each.shape for each in results(numpy_ops, *arguments)[:6]] == [(0,), (0,), *[(0, 2)] * 3, (0,)]
