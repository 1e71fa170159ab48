"""Random steps of beam search, for the tests that compare one module with another."""

import numpy as np

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.beams import GOING, OVER, BeamRules, BeamStep, Found

SHAPES = [  # b, S, K, V
    (3, 4, 4, 30),
    (1, 1, 1, 1),
    (2, 1, 5, 3),
    (4, 3, 3, 33),
    (2, 5, 5, 700),
    (2, 2, 40, 65),
    (1, 3, 40, 30),
    (0, 2, 2, 5),
]
KINDS = ["distinct", "equal", "all equal", "empty"]


def random_step(rng, shape, kind, dtype, *, last=False, penalised=False):
    """What the primitive takes, as NumPy's arrays."""
    b, S, K, V = shape
    B = b + 2
    log_probs = -abs(rng.standard_normal((b * S, V))).astype(dtype)
    if kind == "equal":
        log_probs = np.round(log_probs)
    if kind == "all equal":
        log_probs[...] = -1
    if kind == "empty":
        log_probs[rng.random(log_probs.shape) < 0.7] = -np.inf
    totals = -np.sort(abs(rng.standard_normal((b, S))), axis=1)
    totals[:, 1:][rng.random((b, S - 1)) < 0.2] = -np.inf
    status = np.where(rng.random(b) < 0.8, GOING, OVER)
    words = np.zeros((b, S), np.int64)
    before = BeamStep(rng.permutation(B)[:b], status, totals, words, words, np.zeros(b))
    count = rng.integers(K + 1, size=B)
    scores = -np.sort(rng.integers(5, size=(B, K)).astype(float), axis=1)
    scores[np.arange(K) >= count[:, None]] = -np.inf
    integers = rng.integers(9, size=(2, B, K))
    open_totals = np.full((B, K), -np.inf)
    found = Found(scores, 2 * scores, open_totals, *integers, np.minimum(count, K), np.zeros(B, np.int64))
    pointers = rng.integers(S, size=(2, B, K))
    rules = BeamRules(int(rng.integers(V)), 3, last, 2.0, 5.0, int(rng.integers(1, K + 1)))
    places = rng.permutation(b)[: (b + 1) // 2] if rng.random() < 0.5 else None
    penalty = None
    if penalised:
        penalty = rng.integers(3, size=(b if places is None else places.size, V)).astype(dtype)
        penalty[:, rules.end_token] = 0
    return log_probs, before, found, pointers, rules, places, penalty


def results(ops, log_probs, before, found, pointers, rules, places, penalty):
    """What the primitive returns and writes, as NumPy's, without the content of empty entries.

    The arguments are not changed.
    """

    def moved(x):
        return None if x is None else ops.asarray(x.copy())

    before, found, pointers = BeamStep(*map(moved, before)), Found(*map(moved, found)), moved(pointers)
    step = ops.beam_step(moved(log_probs), before, found, pointers, rules, moved(places), moved(penalty))
    found = Found(*map(ops.asnumpy, found))
    for each in (found.totals, found.lengths, found.slots):
        each[found.scores == -np.inf] = 0
    return [*map(ops.asnumpy, step), *found, ops.asnumpy(pointers)]


def assert_same_step(ops, rng, shape, kind, dtype, **options):
    """The very same numbers as NumPy's primitive."""
    arguments = random_step(rng, shape, kind, dtype, **options)
    names = (*BeamStep._fields, *Found._fields, "pointers")
    expected = results(numpy_ops, *arguments)
    for name, a, e in zip(names, results(ops, *arguments), expected, strict=True):
        assert a.dtype == e.dtype, name
        np.testing.assert_array_equal(a, e, err_msg=name)
