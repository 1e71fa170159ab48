"""The parts of a model that call students' functions, where the whole model does not show what they do."""

import numpy as np
import pytest

from rnnlab.course import use
from rnnlab.gradcheck import projected_check

from ..models.toys import H, W, batch, build, features_of
from .plain_functions import PLAIN, SHARED, sequences, steps


def recorded(name, seen):
    """The plain function, which notes the shapes of its arguments."""

    def function(*arguments):
        seen.append([each.shape for each in arguments if isinstance(each, np.ndarray)])
        return PLAIN[name](*arguments)

    return function


@pytest.mark.slow
def test_functions_get_whole_batches_as_in_the_course(rng):
    """Padding among them: (N, T) tokens, states and scores, in training."""
    model, seen = build(cell_type="lstm"), {name: [] for name in sequences("lstm") | SHARED}
    with use(model, **{name: recorded(name, shapes) for name, shapes in seen.items()}):
        model.loss(*batch(rng))
    N, T, V = 5, 5, 6
    weights = [(W, 4 * H), (H, 4 * H), (4 * H,)]
    assert seen["word_embedding_forward"] == [[(N, T), (V, W)]]
    assert seen["lstm_forward"] == [[(N, T, W), (N, H), *weights]]
    assert seen["temporal_affine_forward"] == [[(N, T, H), (H, V), (V,)]]
    assert seen["temporal_softmax_loss"] == [[(N, T, V), (N, T), (N, T)]]
    assert seen["temporal_affine_backward"][0][0] == (N, T, V)
    assert seen["lstm_backward"][0][0] == (N, T, H)
    assert seen["word_embedding_backward"][0][0] == (N, T, W)


def test_targets_and_mask_are_those_of_the_course(rng):
    def loss(x, y, mask):
        np.testing.assert_array_equal(y, captions[:, 1:])
        np.testing.assert_array_equal(mask, captions[:, 1:] != 0)
        assert y.dtype.kind == "i"
        assert mask.dtype == bool
        return PLAIN["temporal_softmax_loss"](x, y, mask)

    model, (features, captions) = build(), batch(rng)
    with use(model, temporal_softmax_loss=loss) as used:
        model.loss(features, captions)
    assert used.calls == {"temporal_softmax_loss": 1}


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "lengths"), [("lstm", [1, 2, 3, 4]), ("gru", [1, 1, 1, 1])])
def test_a_sequence_function_decodes_as_many_steps_as_it_needs(cell, lengths, rng):
    """That of an LSTM has no cell state to go on from."""
    name, seen, features = f"{cell}_forward", [], features_of(rng, 2)
    model, library = build(cell_type=cell), build(cell_type=cell)
    expected = library.start(features)
    with use(model, **{name: recorded(name, seen)}):
        state = model.start(features)
        for token in (1, 3, 4, 5):
            found, state = model.advance(state, np.full(2, token))
            right, expected = library.advance(expected, np.full(2, token))
            np.testing.assert_allclose(found, right, atol=1e-12)
    assert [shapes[0] for shapes in seen] == [(2, T, W) for T in lengths]


def test_gradients_under_dropout_of_the_output(rng):
    """Its masks are drawn for padding as well, and so are others than those of the library."""
    model, given = build(cell_type="lstm", output_dropout=0.4, word_dropout=0.2), batch(rng)

    def loss():
        return model.loss(*given, rng=np.random.default_rng(2))

    with use(model, **sequences("lstm"), **SHARED):
        value, grads = loss()
        assert value != pytest.approx(model.loss(*given)[0], rel=1e-3)
        assert projected_check(lambda: loss()[0], model.params.flat, grads.flat) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("functions", [sequences("rnn"), steps("rnn")], ids=["sequence", "steps"])
def test_results_that_are_arguments_do_no_harm(functions, rng):
    """A function may return an array that it got, and keep what it returns: the model writes into none."""
    kept = {}

    def keeping(name, function):
        def kept_function(*arguments):
            results = function(*arguments)
            for place, result in enumerate(results[:-1] if "forward" in name else results):
                kept[name, place] = result, result.copy()
            return results

        return kept_function

    model = build(image_input="initial_state", reconstruction=0.3, state_activation="tanh")
    own = {name: keeping(name, function) for name, function in functions.items()}
    with use(model, **own):
        first, _ = model.loss(*batch(np.random.default_rng(1)))
        for result, copy in kept.values():
            np.testing.assert_array_equal(result, copy)
        assert model.loss(*batch(np.random.default_rng(1)))[0] == first
    assert len(kept) == 6
