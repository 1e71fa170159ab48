"""Students' functions in the real model: right ones change nothing, wrong ones show, errors name them."""

import inspect
from itertools import chain

import numpy as np
import pytest

import rnnlab.course
from rnnlab import decoding, layers
from rnnlab.course import use
from rnnlab.course.student_functions import CELLS
from rnnlab.cs231n.captioning_solver import CaptioningSolver
from rnnlab.cs231n.classifiers.rnn import CaptioningRNN as CourseModel
from rnnlab.gradcheck import relative_distance
from rnnlab.models import SequenceClassifier

from ..models.toys import END, NULL, START, D, H, V, W, batch, build, features_of
from .plain_functions import PLAIN, SHARED, sequences, steps

every_cell = pytest.mark.parametrize("cell", CELLS)


def batches(rng):
    """Padded and unpadded batches, of one sentence, of one step, and of several captions of an image."""
    captions = rng.integers(3, V, (4, 6))
    captions[:, 0], captions[:, -1] = START, END
    return {
        "padded": batch(rng),
        "unpadded": (features_of(rng, 4), captions),
        "one sentence": (features_of(rng, 1), captions[:1]),
        "one step": (features_of(rng, 3), captions[:3, :2]),
        "one sentence of one step": (features_of(rng, 1), captions[:1, :2]),
        "two captions each": (features_of(rng, 2), captions.reshape(2, 2, 6)),
    }


def same_with(functions, model, *given, seed=None, **options):
    """Check that loss and gradients with these functions are the library's; return the numbers of calls."""

    def loss():
        return model.loss(*given, rng=None if seed is None else np.random.default_rng(seed), **options)

    expected, grads = loss()
    with use(model, **functions) as used:
        found, gradients = loss()
    assert found == pytest.approx(expected, rel=1e-10)
    for name in grads:
        np.testing.assert_allclose(gradients[name], grads[name], rtol=0, atol=1e-10, err_msg=name)
    return used.calls


# ---------------------------------------------------------------- right functions change nothing


@pytest.mark.slow
@every_cell
@pytest.mark.parametrize("image_input", ["initial_state", "first_input", "every_step"])
def test_loss_and_gradients_are_those_of_the_library(cell, image_input, rng):
    model = build(cell_type=cell, image_input=image_input)
    for given in batches(rng).values():
        calls = same_with(sequences(cell) | SHARED, model, *given)
        assert set(calls) == set(sequences(cell) | SHARED)
        assert set(calls.values()) == {1}


@every_cell
def test_step_functions_alone_train(cell, rng):
    model = build(cell_type=cell)
    for given in batches(rng).values():
        T = max(1, (given[1].reshape(-1, given[1].shape[-1])[:, 1:] != NULL).sum(axis=1).max())
        calls = same_with(steps(cell), model, *given)
        assert set(calls.values()) == {T}


def test_sequence_functions_train_where_both_are_given(rng):
    calls = same_with(sequences("lstm") | steps("lstm"), build(cell_type="lstm"), *batch(rng))
    assert calls == {"lstm_forward": 1, "lstm_backward": 1, "lstm_step_forward": 0, "lstm_step_backward": 0}


@pytest.mark.parametrize(
    "names",
    [
        ["word_embedding_forward", "word_embedding_backward"],
        ["temporal_affine_forward", "temporal_affine_backward"],
        ["temporal_softmax_loss"],
        ["temporal_affine_forward", "temporal_affine_backward", "temporal_softmax_loss"],
    ],
    ids="-".join,
)
def test_some_functions_alone(names, rng):
    functions = {name: PLAIN[name] for name in names}
    calls = same_with(functions, build(cell_type="gru"), *batch(rng))
    assert calls == dict.fromkeys(names, 1)


def test_functions_of_the_library_itself(rng):
    """They get arrays that cannot be written, and return caches of their own."""
    functions = {name: getattr(layers, name) for name in (sequences("gru") | SHARED)}
    same_with(functions, build(cell_type="gru"), *batch(rng))


@pytest.mark.parametrize(
    "options",
    [
        {"state_activation": "tanh"},
        {"loss_average": "token"},
        {"reconstruction": 0.3, "reconstructor_dim": 3},
        {"image_input": "first_input", "reconstruction": 0.3},
        {"forget_bias": 1.0},
    ],
    ids=str,
)
def test_options_that_do_not_concern_the_functions(options, rng):
    same_with(sequences("lstm") | SHARED, build(cell_type="lstm", **options), *batch(rng))


def test_dropout_of_features_and_words_is_drawn_as_without_them(rng):
    model = build(cell_type="lstm", feature_dropout=0.3, word_dropout=0.4)
    same_with(sequences("lstm") | SHARED, model, *batch(rng), seed=3)


@pytest.mark.slow
def test_scheduled_sampling_reads_the_same_words(rng):
    model = build(cell_type="lstm")
    calls = same_with(sequences("lstm") | steps("lstm") | SHARED, model, *batch(rng), seed=3, sampling=0.7)
    assert calls["lstm_step_forward"] > 0


def test_parts_of_a_batch(rng):
    features, captions = batch(rng)
    same_with(sequences("rnn") | SHARED, build(), features[:2], captions[:2], part_of=(5, 12))


def test_options_of_the_loss_that_the_library_computes(rng):
    """Without temporal_softmax_loss all of them are possible; its arguments express the lengths."""
    functions = sequences("rnn") | SHARED
    lengths = {"sentence_lengths": np.array([5, 3, 4, 2, 1])}
    same_with(functions, build(), *batch(rng), **lengths)
    del functions["temporal_softmax_loss"]
    weights = {"sentence_weights": np.array([0.5, -1.0, 2.0, 0.0, 1.0])}
    same_with(functions, build(label_smoothing=0.2), *batch(rng), **lengths, **weights)


@every_cell
def test_gradients_of_inputs_need_the_step_functions(cell, rng):
    model = build(cell_type=cell)
    for given in batches(rng).values():
        *_, expected = model.loss(*given, input_gradients=True)
        with use(model, **steps(cell), **SHARED):
            *_, found = model.loss(*given, input_gradients=True)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    message = f"use: inputs is True, expected False with {cell}_forward: .*; give the step functions instead"
    with use(model, **sequences(cell)), pytest.raises(ValueError, match=message):
        model.loss(*given, input_gradients=True)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_models_with_attention_take_what_it_does_not_touch(cell, rng):
    model = build(cell_type=cell, attention="additive", doubly_stochastic=0.5)
    same_with(SHARED, model, *batch(rng, attention="additive"))


def test_step_functions_express_a_projected_cell_state(rng):
    model = build(cell_type="lstm", project_cell=True)
    same_with(steps("lstm") | SHARED, model, *batch(rng))


def test_float32(rng):
    """rnnlab.plain computes in float64; its results are converted."""
    model = build(cell_type="lstm", dtype=np.float32)
    given = batch(rng)
    loss, grads = model.loss(*given)
    with use(model, **sequences("lstm"), **SHARED):
        found, gradients = model.loss(*given)
    assert gradients.dtype == np.float32
    assert found == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(gradients.flat, grads.flat, atol=1e-6)


@every_cell
def test_likelihood(cell, rng):
    model, given = build(cell_type=cell), batch(rng)
    total, tokens = model.nll(*given)
    for functions in (
        sequences(cell) | SHARED,
        steps(cell),
        {"temporal_softmax_loss": PLAIN["temporal_softmax_loss"]},
    ):
        with use(model, **functions):
            assert model.nll(*given) == (pytest.approx(total, rel=1e-12), tokens)


# ---------------------------------------------------------------- decoding


SEARCHES = {
    "greedy": lambda model, features: decoding.greedy(model, features, max_length=7),
    "sample": lambda model, features: decoding.sample(
        model, features, rng=np.random.default_rng(8), count=3, max_length=7
    ),
    "beam": lambda model, features: decoding.beam_search(model, features, beam_size=3, max_length=7),
}


@pytest.mark.one_in(3)
@every_cell
@pytest.mark.parametrize("image_input", ["initial_state", "first_input", "every_step"])
@pytest.mark.parametrize("search", SEARCHES)
def test_searches_find_the_same(cell, image_input, search, rng):
    model, features = build(cell_type=cell, image_input=image_input), features_of(rng, 4)
    expected = SEARCHES[search](model, features)
    for own in (sequences(cell), steps(cell), sequences(cell) | steps(cell)):
        with use(model, **own, **SHARED) as used:
            found = SEARCHES[search](model, features)
        for one, other in zip(chain(*found), chain(*expected), strict=True):
            assert one.tokens == other.tokens
            assert one.log_prob == pytest.approx(other.log_prob, rel=1e-10)
        decoded = f"{cell}_step_forward" if f"{cell}_step_forward" in own else f"{cell}_forward"
        assert {name for name, count in used.calls.items() if count} == {
            decoded, "word_embedding_forward", "temporal_affine_forward"
        }  # fmt: skip


def test_sample_of_the_course(rng):
    model, features = build(cell_type="lstm"), features_of(rng, 3)
    expected = model.sample(features, max_length=9)
    with use(model, lstm_step_forward=PLAIN["lstm_step_forward"]):
        np.testing.assert_array_equal(model.sample(features, max_length=9), expected)


@every_cell
def test_forwards_alone_are_enough_without_gradients(cell, rng):
    model, given = build(cell_type=cell), batch(rng)
    functions = {
        name: function for name, function in (sequences(cell) | SHARED).items() if "backward" not in name
    }
    expected, total = model.sample(given[0]), model.nll(*given)[0]
    with use(model, **functions):
        np.testing.assert_array_equal(model.sample(given[0]), expected)
        assert model.nll(*given)[0] == pytest.approx(total)
        with pytest.raises(
            ValueError, match=r"use: temporal_affine_forward is given without temporal_affine_back"
        ):
            model.loss(*given)


@pytest.mark.parametrize(
    "forward", ["lstm_forward", "lstm_step_forward", "word_embedding_forward", "temporal_affine_forward"]
)
def test_a_loss_needs_the_backward(forward, rng):
    model = build(cell_type="lstm")
    backward = forward.replace("forward", "backward")
    with (
        use(model, **{forward: PLAIN[forward]}),
        pytest.raises(ValueError, match=rf"use: {forward} is given without {backward}, .*; give both"),
    ):
        model.loss(*batch(rng))


# ---------------------------------------------------------------- training


def data_of(rng):
    words = ["<NULL>", "<START>", "<END>", "<UNK>", "a", "b"]
    captions = np.array(
        [[START, 3, 4, 5, END, NULL], [START, 4, END, NULL, NULL, NULL], [START, 5, 3, 5, 4, END]]
    )
    return {
        "train_captions": np.repeat(captions, 4, axis=0),
        "train_image_idxs": np.repeat(np.arange(3), 4),
        "train_features": features_of(rng, 3),
        "train_urls": [f"http://example.org/{image}.jpg" for image in range(3)],
        "idx_to_word": words,
        "word_to_idx": {word: token for token, word in enumerate(words)},
    }


def trained(functions, rng, **options):
    """The losses of a training with these functions, and the parameters after it."""
    data = data_of(rng)
    model = CourseModel(data["word_to_idx"], D, W, H, "lstm", np.float64, rng=1)
    solver = CaptioningSolver(
        model,
        data,
        update_rule="adam",
        optim_config={"learning_rate": 0.01},
        num_epochs=8,
        batch_size=5,
        verbose=False,
        **options,
    )
    if not functions:
        solver.train()
        return solver.loss_history, model
    with use(model, **functions) as used:
        solver.train()
    assert {used.calls[name] for name in functions} == {8 * 3 * options.get("accumulate", 1)}
    return solver.loss_history, model


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}], ids=str)
def test_training_goes_the_same_way(options):
    """Nothing but rounding differs after 24 iterations."""
    losses, model = trained({}, np.random.default_rng(4), **options)
    found, own = trained(sequences("lstm") | SHARED, np.random.default_rng(4), **options)
    assert losses[-1] < 0.9 * losses[0]
    np.testing.assert_allclose(found, losses, rtol=1e-8)
    np.testing.assert_allclose(own.params.flat, model.params.flat, atol=1e-8)


# ---------------------------------------------------------------- wrong functions show


def without_dh0(dh, cache):
    """A backward through time that forgets the gradient from the next step."""
    x, _, Wx, Wh, _, caches = cache
    dx, dWx, dWh, db = np.zeros(x.shape), np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    for t in reversed(range(len(caches))):
        dx[:, t], dh0, *dweights = PLAIN["rnn_step_backward"](dh[:, t], caches[t])
        dWx, dWh, db = dWx + dweights[0], dWh + dweights[1], db + dweights[2]
    return dx, dh0, dWx, dWh, db


def test_a_wrong_backward_fails_a_gradient_check(rng):
    given, errors = batch(rng), {}
    for name, backward in (("right", PLAIN["rnn_backward"]), ("wrong", without_dh0)):
        model = build(cell_type="rnn")
        with use(model, **SHARED, rnn_forward=PLAIN["rnn_forward"], rnn_backward=backward):
            _, grads = model.loss(*given)
            Wx, numeric = model.params["Wx"], np.empty((W, H))
            for place in np.ndindex(W, H):
                kept, losses = Wx[place], []
                for shift in (1e-5, -1e-5):
                    Wx[place] = kept + shift
                    losses.append(model.loss(*given)[0])
                Wx[place] = kept
                numeric[place] = (losses[0] - losses[1]) / 2e-5
        errors[name] = relative_distance(grads["Wx"], numeric)
    assert errors["right"] < 1e-7
    assert errors["wrong"] > 1e-3


def test_a_loss_that_ignores_the_mask_shows_on_a_padded_batch(rng):
    def unmasked(x, y, mask):
        return PLAIN["temporal_softmax_loss"](x, y, np.ones_like(mask))

    model, given = build(), batches(rng)
    for name in ("padded", "unpadded"):
        loss, _ = model.loss(*given[name])
        with use(model, temporal_softmax_loss=unmasked):
            found, _ = model.loss(*given[name])
        assert (found == pytest.approx(loss)) == (name == "unpadded")


def test_a_wrong_step_shows_in_decoding_alone(rng):
    def forgetful(x, prev_h, Wx, Wh, b):
        return PLAIN["rnn_step_forward"](x, 0 * prev_h, Wx, Wh, b)

    model, given = build(), batch(rng)
    loss, state = model.loss(*given)[0], model.start(given[0])
    right, _ = model.advance(state, np.full(5, START))
    with use(model, **sequences("rnn"), rnn_step_forward=forgetful):
        assert model.loss(*given)[0] == pytest.approx(loss, rel=1e-12)
        wrong, _ = model.advance(model.start(given[0]), np.full(5, START))
    assert np.abs(wrong - right).max() > 1e-3


def test_errors_name_the_function_and_its_place(rng):
    def transposed(dh, cache):
        dx, dh0, dWx, dWh, db = PLAIN["lstm_backward"](dh, cache)
        return dx, dh0, dWx[:, :12], dWh, db

    model = build(cell_type="lstm")
    expected = (
        rf"^lstm_backward \(yours, .*test_use\.py:{transposed.__code__.co_firstlineno}\): "
        r"dWx has shape \(2, 12\), expected \(D, 4H\) = \(2, 16\)$"
    )
    with (
        use(model, lstm_forward=PLAIN["lstm_forward"], lstm_backward=transposed),
        pytest.raises(ValueError, match=expected),
    ):
        model.loss(*batch(rng))


# ---------------------------------------------------------------- the block


def parts_of(model):
    return model.embedding, model.decoder, model.decoder.layer, model.output, model.output_loss


def test_the_parts_are_restored(rng):
    model, given = build(cell_type="lstm"), batch(rng)
    parts, (loss, _) = parts_of(model), model.loss(*given)
    with use(model, **sequences("lstm"), **SHARED):
        assert [part is before for part, before in zip(parts_of(model), parts, strict=True)] == [
            False, True, False, False, False
        ]  # fmt: skip
    assert parts_of(model) == parts
    with pytest.raises(ZeroDivisionError), use(model, **sequences("lstm"), **SHARED):
        raise ZeroDivisionError
    assert parts_of(model) == parts
    assert model.loss(*given)[0] == loss


def test_a_function_that_raises_is_left_alone(rng):
    def unfinished(x, W):
        raise NotImplementedError("word_embedding_forward")

    model = build()
    parts = parts_of(model)
    with pytest.raises(NotImplementedError), use(model, word_embedding_forward=unfinished) as used:
        model.sample(features_of(rng, 1))
    assert parts_of(model) == parts
    assert used.calls == {"word_embedding_forward": 1}


def test_the_same_block_several_times(rng):
    model, given = build(cell_type="lstm"), batch(rng)
    expected, _ = model.loss(*given)
    block = use(model, **sequences("lstm"))
    for _ in range(2):
        before = model.decoder.layer
        with block as used:
            assert model.loss(*given)[0] == pytest.approx(expected, rel=1e-10)
            with pytest.raises(ValueError, match="within another use already"), block:
                pass
            assert model.decoder.layer is not before
        assert used.calls == {"lstm_forward": 1, "lstm_backward": 1}
        assert model.decoder.layer is before


def test_a_call_without_with():
    model = build(cell_type="lstm")
    message = r"without with and had no effect.*use\(model, lstm_f.*=\.\.\.\)"
    line = inspect.currentframe().f_lineno + 2
    with pytest.warns(RuntimeWarning, match=message) as seen:
        use(model, **sequences("lstm"))
    assert (seen[0].filename, seen[0].lineno) == (__file__, line)
    block = use(model, **sequences("lstm"))
    assert "no effect without with" in repr(block)
    with block:
        assert "entered" in repr(block)


def test_two_models_at_once(rng):
    models, given = [build(cell_type="lstm"), build(cell_type="lstm"), build(cell_type="lstm")], batch(rng)
    with use(models[0], **sequences("lstm")) as first, use(models[1], **steps("lstm")) as second:
        losses = [model.loss(*given)[0] for model in models]
    assert losses == pytest.approx([losses[2]] * 3, rel=1e-12)
    assert first.calls == {"lstm_forward": 1, "lstm_backward": 1}
    assert second.calls == {"lstm_step_forward": 5, "lstm_step_backward": 5}
    assert repr(first) == "Used(lstm_forward: 1, lstm_backward: 1)"


def test_calls_are_zero_at_first_and_nothing_is_printed(rng, capsys):
    model = build(cell_type="lstm")
    with use(model, **sequences("lstm"), **SHARED) as used:
        assert used.calls == dict.fromkeys(sequences("lstm") | SHARED, 0)
        model.loss(*batch(rng))
        model.sample(features_of(rng, 2))
    assert capsys.readouterr() == ("", "")


def test_the_name_in_the_package():
    assert rnnlab.course.use is use


# ---------------------------------------------------------------- errors


def refused(message, model, error=ValueError, **functions):
    parts = parts_of(model) if hasattr(model.decoder, "layer") else None
    with pytest.raises(error, match=message):
        use(model, **functions)
    if parts is not None:
        assert parts_of(model) == parts


def test_unknown_names():
    refused(
        r"use: there is no function lstm_forwrd, expected names among rnn_step_forward, .*"
        r"temporal_softmax_loss; did you mean lstm_forward\?",
        build(cell_type="lstm"),
        lstm_forwrd=PLAIN["lstm_forward"],
    )
    refused("use: no function is given, expected some of rnn_step_forward, ", build())


def test_functions_of_another_cell():
    message = (
        r"use: gru_forward is given, but the model's cell_type is 'lstm', expected lstm_step_forward, "
        r"lstm_step_backward, lstm_forward, lstm_backward$"
    )
    refused(message, build(cell_type="lstm"), **sequences("gru"))
    message = (
        r"use: rnn_forward is given, but the model's cell_type is '.*:GRU', expected no function of a cell"
    )
    refused(message, build(cell_type="rnnlab.layers.recurrent.gru:GRU"), **sequences("rnn"))


def test_a_backward_without_its_forward():
    refused("use: lstm_backward is given without lstm_forward", build(cell_type="lstm"), lstm_backward=len)


def test_what_cannot_be_called():
    refused("use: rnn_forward is 3, expected a function", build(), TypeError, rnn_forward=3)


@pytest.mark.parametrize(
    ("options", "functions", "message"),
    [
        (
            {"attention": "additive"},
            sequences("lstm"),
            "attention is 'additive', expected None with lstm_forward",
        ),
        ({"target_attention": True}, steps("lstm"), "target_attention is True, expected False"),
        ({"image_input": "second_layer"}, sequences("lstm"), "the model has 2 recurrent layers, expected 1"),
        ({"decoder_layers": 3}, steps("lstm"), "the model has 3 recurrent layers, expected 1 with lstm_step"),
        (
            {"regularisation": {"zoneout_c": 0.2}},
            steps("lstm"),
            "regularisation has zoneout_c 0.2, expected 0",
        ),
        ({"project_cell": True}, sequences("lstm"), "project_cell is True, expected False with lstm_forward"),
        ({"output": "deep"}, SHARED, "output is 'deep', expected 'linear' with temporal_affine_forward"),
        (
            {"tied_embeddings": True, "hidden_dim": W},
            SHARED,
            "tied_embeddings is True, expected False with temporal_affine_forward, which needs the weight",
        ),
        ({"label_smoothing": 0.1}, SHARED, "label_smoothing is 0.1, expected 0 with temporal_softmax_loss"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) and len(value) == 1 else "",
)
def test_options_without_an_argument(options, functions, message):
    refused(f"^use: .*{message}", build(cell_type="lstm", **options), **functions)


def test_label_smoothing_that_is_set_in_the_block(rng):
    model = build()
    with use(model, temporal_softmax_loss=PLAIN["temporal_softmax_loss"]):
        model.label_smoothing = 0.1
        with pytest.raises(ValueError, match="label_smoothing is 0.1, expected 0"):
            model.loss(*batch(rng))


def test_sentence_weights_need_the_loss_of_the_library(rng):
    model = build()
    message = r"temporal_softmax_loss \(yours, .*\): the loss has sentence_weights, expected none"
    with (
        use(model, temporal_softmax_loss=PLAIN["temporal_softmax_loss"]),
        pytest.raises(ValueError, match=message),
    ):
        model.loss(*batch(rng), sentence_weights=np.ones(5))


def test_other_models():
    model = SequenceClassifier(input_dim=3, hidden_dim=4, num_classes=2)
    with pytest.raises(TypeError, match="use: model is a SequenceClassifier, expected a CaptioningRNN"):
        use(model, **sequences("rnn"))


@pytest.mark.parametrize("image_input", ["initial_state", "first_input", "every_step"])
def test_a_model_that_runs_with_functions_already(image_input):
    model = build(image_input=image_input)
    for functions in (sequences("rnn"), {"temporal_softmax_loss": len}, {"word_embedding_forward": len}):
        with use(model, **functions):
            refused("use: the model is within another use already", model, **sequences("rnn"))


@pytest.mark.usefixtures("simulated")
def test_models_on_a_device(rng):
    model = build()
    with (
        use(model, word_embedding_forward=PLAIN["word_embedding_forward"]),
        pytest.raises(
            TypeError, match=r"word_embedding_forward \(yours, .*\): W is a .*: the model has been moved"
        ),
    ):
        model.to("gpu").sample(features_of(rng, 1))
    refused("use: the model is on gpu:0, expected the CPU", model, **sequences("rnn"))
