"""A step of beam search by hand, in every library."""

import importlib

import numpy as np
import pytest

from rnnlab.ops.beams import GOING, OVER, REFUSED, BeamRules, BeamStep, Found

END, NONE = 0, -np.inf


@pytest.fixture(params=["numpy", "numba", "cuda"])
def ops(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    if request.param == "cuda":
        request.getfixturevalue("simulated")
    return importlib.import_module(f"rnnlab.ops.{request.param}")


def start(ops, totals, K):
    """Beams with these totals, none of whose sentences has finished, and memory for pointers."""
    totals = np.array(totals, float)
    b, S = totals.shape
    numbers, status, words = np.arange(b), np.full(b, GOING), np.zeros((b, S), np.int64)
    before = BeamStep(*map(ops.asarray, (numbers, status, totals, words, words, np.zeros(b))))
    floats, integers = np.full((3, b, K), NONE), np.zeros((2, b, K), np.int64)
    found = Found(*map(ops.asarray, (*floats, *integers, *np.zeros((2, b), np.int64))))
    return before, found, ops.zeros((2, b, K), np.int64)


def rules(**options):
    return BeamRules(**{"end_token": END, "length": 1, "last": False} | options)


def step_of(ops, totals, log_probs, K, *, penalty=None, norms=(1.0, 1.0), n_best=1, **options):
    """The step, what is found, and the pointers, as NumPy's."""
    before, found, pointers = start(ops, totals, K)
    log_probs = np.asarray(log_probs, float)
    given = ops.asarray(log_probs.reshape(-1, log_probs.shape[-1])), before, found, pointers
    penalty = None if penalty is None else ops.asarray(np.asarray(penalty, float))
    own = rules(norm=norms[0], largest_norm=norms[1], n_best=n_best, **options)
    step = ops.beam_step(*given, own, None, penalty)
    return (
        BeamStep(*map(ops.asnumpy, step)),
        Found(*map(ops.asnumpy, found)),
        ops.asnumpy(pointers),
    )


def test_two_sentences_of_one_beam(ops):
    """The second has the best continuation, the first the best end."""
    log_probs = np.log([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]])
    step, found, pointers = step_of(ops, np.log([[0.5, 0.5]]), log_probs, 2, norms=(2.0, 3.0))
    np.testing.assert_allclose(np.exp(step.totals), [[0.35, 0.15]])
    np.testing.assert_array_equal(step.words, [[2, 1]])
    np.testing.assert_array_equal(step.rows, [[1, 0]])
    np.testing.assert_array_equal(pointers[:, 0], [[2, 1], [1, 0]])
    np.testing.assert_allclose(np.exp(found.totals), [[0.25, 0]])
    np.testing.assert_allclose(found.scores[0, 0], np.log(0.25) / 2)
    assert (found.slots[0, 0], found.lengths[0, 0], found.counts[0]) == (0, 1, 1)
    assert step.status[0] == GOING  # log(0.35) / 3 is better than log(0.25) / 2
    assert step.largest[0] == pytest.approx(np.log(0.7))
    assert np.isneginf(found.open_totals).all()


def test_a_beam_is_over_when_no_sentence_can_improve(ops):
    log_probs = np.log([[[0.5, 0.3, 0.2]]])
    step, found, _ = step_of(ops, [[0.0]], log_probs, 2)
    assert (step.status[0], found.counts[0]) == (OVER, 1)
    step, _, _ = step_of(ops, [[0.0]], log_probs, 2, n_best=2)
    assert step.status[0] == GOING


def test_a_penalty_changes_the_choice_alone(ops):
    log_probs = np.log([[[0.1, 0.5, 0.4]]])
    step, found, _ = step_of(ops, [[0.0]], log_probs, 1, penalty=[[0.0, 1.0, 0.25]])
    assert step.words[0, 0] == 2
    assert np.exp(step.totals[0, 0]) == pytest.approx(0.4)
    assert found.counts[0] == 0


def test_of_equals_the_first_word_of_the_first_sentence(ops):
    step, _, _ = step_of(ops, np.zeros((1, 2)), np.full((1, 2, 4), np.log(0.25)), 2)
    np.testing.assert_array_equal(step.words, [[1, 2]])
    np.testing.assert_array_equal(step.rows, [[0, 0]])


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("number", "largest"), [(np.nan, np.nan), (0.5, 0.5), (np.inf, np.inf), (5e-3, 5e-3)]
)
def test_numbers_that_are_no_log_probabilities(number, largest, last, ops):
    log_probs = np.full((2, 1, 3), -1.0)
    log_probs[1, 0, END] = number
    step, _, _ = step_of(ops, np.zeros((2, 1)), log_probs, 1, last=last)
    assert step.status[0] != REFUSED
    assert (step.status[1] == REFUSED) == (number != 5e-3)
    np.testing.assert_array_equal(step.largest, [-1.0, number])
    np.testing.assert_array_equal(step.rows, [[0], [1]])


@pytest.mark.parametrize("slots", [1, 2, 9])
@pytest.mark.parametrize("penalty", [None, np.zeros((1, 4))], ids=["no penalty", "penalty"])
def test_a_beam_that_is_wider_than_the_vocabulary(penalty, slots, ops, rng):
    """All continuations, best first, then empty entries."""
    V, K, end = 4, 9, 2
    log_probs = np.log(rng.dirichlet(np.ones(V), size=(1, slots)))
    step, found, _ = step_of(ops, np.zeros((1, slots)), log_probs, K, penalty=penalty, end_token=end)
    expected = np.sort(np.delete(log_probs[0], end, axis=1).ravel())[::-1][:K]
    np.testing.assert_array_equal(step.totals[0, : len(expected)], expected)
    assert np.isneginf(step.totals[0, len(expected) :]).all()
    assert not step.words[0, len(expected) :].any()
    best = set(np.sort(log_probs.ravel())[::-1][:K])
    ends = [number for number in np.sort(log_probs[0, :, end])[::-1] if number in best]
    np.testing.assert_array_equal(found.totals[0], ends + [NONE] * (K - len(ends)))
    assert found.counts[0] == len(ends)


def test_the_last_step_ends_all_sentences(ops):
    log_probs = np.log([[[0.2, 0.8], [0.4, 0.6], [0.4, 0.6]]])
    totals = np.array([[-1.0, -1.0, NONE]])
    step, found, _ = step_of(ops, totals, log_probs, 3, last=True)
    np.testing.assert_allclose(found.totals, [[np.log(0.4) - 1, np.log(0.2) - 1, NONE]])
    np.testing.assert_array_equal(found.slots[0, :2], [1, 0])
    assert (found.counts[0], step.status[0]) == (2, OVER)
    np.testing.assert_array_equal(found.open_totals, totals)
    assert found.open_lengths[0] == 1


def test_a_beam_without_continuation_is_cut_off(ops):
    step, found, _ = step_of(ops, [[-2.0, -3.0]], np.full((1, 2, 3), NONE), 2, length=7)
    assert step.status[0] == OVER
    np.testing.assert_array_equal(found.open_totals, [[-2.0, -3.0]])
    assert found.open_lengths[0] == 7


def test_a_beam_that_is_over_stays_over(ops):
    """Its log-probabilities are not judged."""
    before, found, pointers = start(ops, [[-1.0], [-1.0]], 1)
    before = before._replace(status=ops.asarray(np.array([OVER, GOING])))
    log_probs = ops.asarray(np.array([[5.0, 5.0, 5.0], [-3.0, -2.0, -1.0]]))
    step = ops.beam_step(log_probs, before, found, pointers, rules(norm=1.0, largest_norm=1.0, n_best=1))
    np.testing.assert_array_equal(ops.asnumpy(step.status), [OVER, GOING])
    np.testing.assert_array_equal(ops.asnumpy(step.totals), [[NONE], [-2.0]])
    for array in (found.counts, found.open_lengths):
        assert not ops.asnumpy(array).any()


def test_finished_sentences_are_merged(ops):
    """The new one goes behind its equal and before the worse one, which is dropped."""
    before, found, pointers = start(ops, [[-1.0]], 3)
    found.scores[0], found.totals[0], found.slots[0] = map(
        ops.asarray, (np.array([-2.0, -3.0, -4.0]), np.array([-4.0, -6.0, -8.0]), np.array([1, 2, 2]))
    )
    own = rules(norm=2.0, largest_norm=4.0, n_best=3)
    ops.beam_step(ops.asarray(np.array([[-5.0, -9.0]])), before, found, pointers, own)
    np.testing.assert_array_equal(ops.asnumpy(found.scores), [[-2, -3, -3]])
    np.testing.assert_array_equal(ops.asnumpy(found.totals), [[-4, -6, -6]])
    np.testing.assert_array_equal(ops.asnumpy(found.slots), [[1, 2, 0]])
    np.testing.assert_array_equal(ops.asnumpy(found.lengths), [[0, 0, 1]])


def test_sentences_are_read_along_their_pointers(ops):
    """5 6 and 7 8 cross: after the second step the slots hold the continuations of each other's sentence."""
    pointers = np.array([[[[5, 6]], [[0, 0]]], [[[8, 7]], [[1, 0]]]])
    asked = np.zeros(3, np.int64), np.array([2, 2, 1]), np.array([0, 1, 1])
    words, path = map(ops.asnumpy, ops.beam_words(*map(ops.asarray, (pointers, *asked))))
    np.testing.assert_array_equal(words, [[6, 8], [5, 7], [6, 0]])
    np.testing.assert_array_equal(path, [[0, 1, 0], [0, 0, 1], [0, 1, 1]])


def test_empty_sentences(ops):
    nothing, one = ops.zeros((0, 2, 1, 2), np.int64), np.zeros(1, np.int64)
    words, path = ops.beam_words(nothing, *map(ops.asarray, (one, one, one + 1)))
    assert words.shape == (1, 0)
    assert ops.asnumpy(path).tolist() == [[1]]
    assert [each.shape for each in ops.beam_words(nothing, *[ops.asarray(one[:0])] * 3)] == [(0, 0), (0, 1)]


def wrong_arguments(ops):
    """Each with what its error says."""
    before, found, pointers = start(ops, [[-1.0, -2.0], [-1.0, -3.0]], 2)
    log_probs, own = ops.asarray(np.full((4, 3), -1.0)), rules(norm=1.0, largest_norm=1.0, n_best=1)
    given = [log_probs, before, found, pointers, own, None, None]
    places = np.zeros(1, np.int64)
    for place, value, message in (
        (0, ops.asarray(np.full((3, 3), -1.0)), "log_probs has 3 rows, expected 4: 2 beams of 2 slots"),
        (0, ops.asarray(np.full((4, 3), -1)), "log_probs has dtype int64, expected float32 or float64"),
        (1, before._replace(status=before.status[:1]), "status has shape"),
        (1, before._replace(totals=ops.asarray(np.zeros((2, 2), np.float32))), "totals has dtype float32"),
        (2, found._replace(slots=found.slots[:, :1]), "slots has shape"),
        (2, found._replace(counts=ops.asarray(np.zeros(2, np.int32))), "counts has dtype int32"),
        (3, pointers[:1], "pointers has shape"),
        (3, ops.zeros(pointers.shape), "pointers has dtype float64, expected int64"),
        (4, own._replace(end_token=3), "end_token is 3, expected a column of 3"),
        (4, own._replace(end_token=-1), "end_token is -1"),
        (5, ops.asarray(places.astype(np.int32)), "places has dtype int32, expected int64"),
        (6, ops.zeros((1, 3)), "penalty has 1 rows, expected one for each of 2 beams"),
        (6, ops.zeros((2, 2)), "penalty has shape"),
    ):
        yield [*given[:place], value, *given[place + 1 :]], message


def test_arguments_that_do_not_fit(ops):
    for arguments, message in wrong_arguments(ops):
        untouched = [ops.asnumpy(each) for each in arguments[2]]
        with pytest.raises((TypeError, ValueError), match=f"^beam_step: {message}"):
            ops.beam_step(*arguments)
        for each, expected in zip(arguments[2], untouched, strict=True):
            np.testing.assert_array_equal(ops.asnumpy(each), expected)


def test_words_of_arguments_that_do_not_fit(ops):
    pointers, ones = ops.zeros((3, 2, 2, 2), np.int64), ops.asarray(np.ones(1, np.int64))
    for arguments, message in (
        ((pointers[:, :1], ones, ones, ones), "pointers has shape"),
        ((pointers, ones, ones[:0], ones), "lengths has shape"),
        ((pointers, ones, ones, ops.zeros(1)), "slots has dtype float64, expected int64"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^beam_words: {message}"):
            ops.beam_words(*arguments)


def test_arrays_of_two_libraries(simulated):
    ops = importlib.import_module("rnnlab.ops.cuda")
    before, found, pointers = start(ops, [[-1.0]], 1)
    own = rules(norm=1.0, largest_norm=1.0, n_best=1)
    with pytest.raises(TypeError, match="beam_step: expected arrays of one library, got cupy and numpy"):
        ops.beam_step(ops.asarray(np.full((1, 3), -1.0)), before, found, pointers, own, np.zeros(1, np.int64))
