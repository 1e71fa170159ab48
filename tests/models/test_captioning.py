"""CaptioningRNN: loss and likelihood, options and errors. Gradients and decoding have files of their own."""

import json
import re

import numpy as np
import pytest

from rnnlab.decoding import teacher_forced
from rnnlab.layers import Regularisation, dropout_forward
from rnnlab.models import CaptioningRNN
from rnnlab.models.parts.reviewer import ReviewerOptions

from .toys import (
    DROPOUT,
    END,
    NULL,
    START,
    WORD_TO_IDX,
    D,
    G,
    H,
    L,
    V,
    W,
    batch,
    build,
    every_architecture,
    rows_of,
)


def of_the_course(cell_type, D, W, H):
    """The assignments' model. Its vocabulary of three words skips the number 1; its captions do not."""
    word_to_idx = {"<NULL>": 0, "cat": 2, "dog": 3}
    model = CaptioningRNN(word_to_idx, D, W, H, cell_type, np.float64)
    for name, array in model.params.items():
        model.params[name] = np.linspace(-1.4, 1.3, num=array.size).reshape(array.shape)
    return model


@pytest.mark.parametrize(
    ("cell_type", "sizes", "T", "features", "expected"),
    [
        ("rnn", (20, 30, 40), 13, (-1.5, 0.3), 9.83235591003),
        ("lstm", (18, 30, 48), 16, (-0.5, 1.7), 12.304967965),
    ],
)
def test_loss_of_the_course(cell_type, sizes, T, features, expected):
    N, D = (10, 20) if cell_type == "rnn" else (20, 18)
    model = of_the_course(cell_type, D, *sizes[1:])
    assert list(model.params) == ["W_proj", "b_proj", "W_embed", "Wx", "Wh", "b", "W_vocab", "b_vocab"]
    captions = (np.arange(N * T) % 3).reshape(N, T)
    loss, grads = model.loss(np.linspace(*features, num=N * D).reshape(N, D), captions)
    assert loss == pytest.approx(expected, abs=1e-8)
    assert {name: grad.shape for name, grad in grads.items()} == model.params.shapes


# ---------------------------------------------------------------- loss and likelihood


@pytest.mark.one_in(3)
@every_architecture
def test_nll_is_the_loss_summed(options, rng):
    given = batch(rng, **options)
    total, tokens = build(**options, **DROPOUT).nll(*given)
    assert tokens == 5 + 2 + 3 + 2
    assert build(**options).loss(*given)[0] == pytest.approx(total / 5)
    assert build(**options, loss_average="token").loss(*given)[0] == pytest.approx(total / tokens)


def test_label_smoothing_is_of_the_loss_alone(rng):
    """A share of the target's probability is spread over all words. The likelihood knows nothing of it."""
    features, captions = batch(rng)
    model, plain = build(loss_average="token"), build(loss_average="token")
    (loss, _), (total, tokens) = model.loss(features, captions), model.nll(features, captions)
    model.label_smoothing = 0.3
    smoothed, _ = model.loss(features, captions)
    predictions = teacher_forced(model, features, captions, null_token=NULL)
    spread = -sum(log_probs.mean(axis=1).sum() for _, _, log_probs in predictions)
    assert smoothed == pytest.approx((0.7 * total + 0.3 * spread) / tokens)
    assert model.nll(features, captions) == (total, tokens)
    assert build(loss_average="token", label_smoothing=0.3).loss(features, captions)[0] == smoothed
    assert plain.loss(features, captions)[0] == loss == pytest.approx(total / tokens)


@pytest.mark.one_in(3)
@every_architecture
def test_padding_changes_nothing(options, rng):
    model = build(**options)
    features, captions = batch(rng, **options)
    longer = np.pad(captions, ((0, 0), (0, 3)), constant_values=NULL)
    (loss, grads), (padded_loss, padded_grads) = model.loss(features, captions), model.loss(features, longer)
    assert padded_loss == loss
    np.testing.assert_array_equal(padded_grads.flat, grads.flat)
    assert model.nll(features, longer) == model.nll(features, captions)


@pytest.mark.one_in(3)
@every_architecture
def test_the_order_of_a_batch_does_not_matter(options, rng):
    model = build(**options)
    features, captions = batch(rng, **options)
    order = rng.permutation(len(captions))
    (loss, grads), (permuted_loss, permuted_grads) = (
        model.loss(features, captions),
        model.loss(rows_of(features, order), captions[order]),
    )
    assert permuted_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(permuted_grads.flat, grads.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(8)
@every_architecture
@pytest.mark.parametrize("average", ["batch", "token"])
@pytest.mark.parametrize("N", [0, 1, 3])
def test_nothing_but_padding(options, average, N, rng):
    model = build(**options, loss_average=average)
    features, _ = batch(rng, **options)
    given = rows_of(features, slice(N)), np.full((N, 4), NULL)
    loss, grads = model.loss(*given)
    assert loss == 0
    assert not grads.flat.any()
    assert model.nll(*given) == (0, 0)


@pytest.mark.one_in(3)
@every_architecture
def test_float32_is_close_to_float64(options, rng):
    given = batch(rng, **options)
    model, single = build(**options), build(**options, dtype=np.float32)
    single.params.flat[...] = model.params.flat
    (loss, grads), (single_loss, single_grads) = model.loss(*given), single.loss(*given)
    assert single_grads.dtype == np.float32
    assert single_loss == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(single_grads.flat, grads.flat, atol=1e-5)
    log_probs, _ = single.advance(single.start(given[0]), given[1][:, 0])
    assert log_probs.dtype == np.float32


def test_loss_leaves_everything_as_it_was(rng):
    model = build(**DROPOUT)
    features, captions = batch(rng)
    saved = [array.copy() for array in (features, captions, model.params.flat)]
    model.loss(features, captions, rng=rng)
    model.nll(features, captions)
    for array, before in zip((features, captions, model.params.flat), saved, strict=True):
        np.testing.assert_array_equal(array, before)


def test_features_and_captions_may_be_lists(rng):
    model = build()
    features, captions = batch(rng)
    assert model.loss(features.tolist(), captions.tolist())[0] == model.loss(features, captions)[0]


# ---------------------------------------------------------------- gradients' memory


@pytest.mark.one_in(2)
@every_architecture
def test_gradients_in_a_buffer_equal_fresh_ones(options, rng):
    model = build(**options)
    given = batch(rng, **options)
    loss, fresh = model.loss(*given)
    buffer = model.params.zeros_like()
    buffer.flat[...] = np.nan  # what an earlier batch may have left there
    again, grads = model.loss(*given, grads=buffer)
    assert again == loss
    assert grads is buffer
    np.testing.assert_array_equal(grads.flat, fresh.flat)


def test_two_losses_share_no_memory(rng):
    model = build()
    given = batch(rng)
    _, first = model.loss(*given)
    saved = first.flat.copy()
    _, second = model.loss(given[0] + 1, given[1])
    assert not np.shares_memory(first.flat, second.flat)
    assert not np.shares_memory(first.flat, model.params.flat)
    np.testing.assert_array_equal(first.flat, saved)


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize("name", DROPOUT)
def test_dropout_is_drawn_from_the_generator_alone(name, rng):
    given = batch(rng)
    model, quiet = build(**{name: 0.5}), build()
    assert model.loss(*given)[0] == quiet.loss(*given)[0]
    one, again, other = (model.loss(*given, rng=np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    assert one == again != other
    assert one != quiet.loss(*given)[0]
    assert quiet.loss(*given, rng=rng)[0] == quiet.loss(*given)[0]


def test_feature_dropout_is_dropout_of_the_features(rng):
    features, captions = batch(rng)
    dropped, _ = dropout_forward(features, 0.5, rng=np.random.default_rng(1))
    loss, _ = build(feature_dropout=0.5).loss(features, captions, rng=np.random.default_rng(1))
    assert loss == pytest.approx(build().loss(dropped, captions)[0])


# ---------------------------------------------------------------- construction


@pytest.mark.one_in(2)
@every_architecture
def test_a_config_makes_the_same_model(options):
    model = build(**options, **DROPOUT, loss_average="token", dtype=np.float32)
    config = json.loads(json.dumps(model.config()))
    again = CaptioningRNN.from_config(config, rng=7)
    assert again.config() == model.config()
    assert again.params.shapes == model.params.shapes
    assert again.dtype == model.dtype == np.float32
    same = CaptioningRNN.from_config(config, rng=7)
    np.testing.assert_array_equal(again.params.flat, same.params.flat)


def test_a_config_holds_every_argument_that_was_given():
    given = {
        "input_dim": D,
        "wordvec_dim": W,
        "hidden_dim": H,
        "cell_type": "lstm",
        "image_input": "initial_state",
        "decoder_layers": 2,
        "state_activation": "tanh",
        "project_cell": True,
        **DROPOUT,
        "layer_dropout": 0.2,
        "attention": "bilinear",
        "global_dim": 7,
        "attention_dim": 5,
        "selector": True,
        "target_attention": True,
        "target_delay": 3,
        "reviewer": ReviewerOptions(blocks=2, steps=3, dropout=0.1)._asdict(),
        "output": "deep",
        "tied_embeddings": True,
        "doubly_stochastic": 0.5,
        "discriminative": 0.2,
        "discriminative_words": 2,
        "reconstruction": 0.1,
        "reconstructor_dim": 7,
        "detach_target": True,
        "label_smoothing": 0.1,
        "loss_average": "token",
        "forget_bias": 1.0,
        "initialisation": "uniform",
        "init_scale": 0.3,
        "regularisation": Regularisation(zoneout_c=0.1, recurrent_dropout=0.2)._asdict(),
    }
    model = CaptioningRNN(WORD_TO_IDX, dtype=np.float64, **given)
    assert model.config() == {"word_to_idx": WORD_TO_IDX, "dtype": "float64", **given}


@pytest.mark.parametrize("delay", [1, 2.0, True])
def test_a_delay_is_at_least_two_steps(delay):
    """One step back is the state that the cell reads anyway."""
    with pytest.raises(
        ValueError, match=f"target_delay is {delay}, expected an integer of at least 2 or None"
    ):
        build(target_attention=True, target_delay=delay)


def test_a_model_says_what_it_is():
    words = {f"word{n}": n for n in range(1499)} | {"<NULL>": 1499}
    assert repr(CaptioningRNN(words, 8, 4, 6, "gru", np.float64)) == (
        "CaptioningRNN(cell_type='gru', image_input='initial_state', input_dim=8, wordvec_dim=4, "
        "hidden_dim=6; 1,500 words, 16,752 float64 parameters)"
    )


def test_defaults():
    model = CaptioningRNN(WORD_TO_IDX)
    assert model.dtype == np.float32
    assert model.params["W_proj"].shape == (512, 128)
    assert model.params["Wx"].shape == (128, 128)
    assert (model.null_token, model.start_token, model.end_token) == (NULL, START, END)


@pytest.mark.parametrize(
    ("options", "shapes"),
    [
        ({}, {"W_proj": (D, H), "Wx": (W, H), "Wh": (H, H), "b": (H,)}),
        ({"cell_type": "lstm"}, {"Wx": (W, 4 * H), "Wh": (H, 4 * H), "b": (4 * H,)}),
        ({"cell_type": "gru"}, {"Wx": (W, 3 * H), "Wh": (H, 3 * H), "b": (3 * H,)}),
        ({"cell_type": "simplified_gru"}, {"Wx": (W, 2 * H), "Wh": (H, 2 * H), "b": (2 * H,)}),
        ({"cell_type": "lstm", "project_cell": True}, {"W_proj_c": (D, H), "b_proj_c": (H,)}),
        ({"image_input": "first_input"}, {"W_proj": (D, W), "b_proj": (W,), "Wx": (W, H)}),
        ({"image_input": "every_step"}, {"W_proj": (D, W), "Wx": (2 * W, H)}),
        (
            {"image_input": "second_layer"},
            {
                "W_proj": (D, W),
                "layer1_Wx": (W, H),
                "layer1_Wh": (H, H),
                "layer1_b": (H,),
                "layer2_Wx": (H + W, H),
                "layer2_Wh": (H, H),
            },
        ),
        ({"decoder_layers": 2}, {"W_proj": (D, H), "layer1_Wx": (W, H), "layer2_Wx": (H, H)}),
        ({"decoder_layers": 3, "image_input": "every_step"}, {"layer1_Wx": (2 * W, H), "layer3_Wx": (H, H)}),
        (
            {"decoder_layers": 3, "image_input": "second_layer"},
            {"layer2_Wx": (H + W, H), "layer3_Wx": (H, H), "layer3_b": (H,)},
        ),
        (
            {"decoder_layers": 2, "attention": "bilinear"},
            {"layer1_source_W": (H, D), "layer1_Wz": (D, H), "layer2_Wh": (H, H)},
        ),
    ],
)
def test_shapes_of_the_parameters(options, shapes):
    params = build(**options).params
    common = {"W_embed": (V, W), "W_vocab": (H, V), "b_vocab": (V,)}
    assert {name: params[name].shape for name in shapes | common} == shapes | common


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell_type": "transformer"}, "cell_type is 'transformer', expected one of rnn, lstm, gru, "),
        ({"image_input": "everywhere"}, "image_input is 'everywhere', expected one of 'initial_state', "),
        ({"state_activation": "relu"}, "state_activation is 'relu', expected one of 'none', 'tanh'"),
        ({"project_cell": True}, "project_cell is True, but cell 'rnn' has no cell state, expected False"),
        (
            {"image_input": "first_input", "state_activation": "tanh"},
            "state_activation is 'tanh', expected 'none' with image_input 'first_input'",
        ),
        (
            {"image_input": "every_step", "cell_type": "lstm", "project_cell": True},
            "project_cell is True, expected False with image_input 'every_step'",
        ),
        ({"feature_dropout": 1.0}, "feature_dropout is 1.0, expected a probability in [0, 1)"),
        ({"word_dropout": -0.1}, "word_dropout is -0.1, expected a probability in [0, 1)"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0, expected a probability in [0, 1)"),
        ({"output_dropout": 2}, "output_dropout is 2, expected a probability in [0, 1)"),
        ({"loss_average": "mean"}, "loss_average is 'mean', expected one of 'batch', 'token'"),
        ({"initialisation": "zeros"}, "initialisation is 'zeros', expected one of 'course', 'uniform'"),
        ({"dtype": np.float16}, "dtype is 'float16', expected one of 'float32', 'float64'"),
        ({"init_scale": 0.0}, "init_scale is 0.0, expected a positive number"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build(**options)


@pytest.mark.parametrize("name", ["input_dim", "wordvec_dim", "hidden_dim"])
@pytest.mark.parametrize("size", [0, 2.0, "64", True])
def test_wrong_sizes(name, size):
    message = f"CaptioningRNN: {name} is {size!r}, expected an integer of at least 1"
    with pytest.raises(ValueError, match=message):
        CaptioningRNN(WORD_TO_IDX, **{name: size})


def test_a_vocabulary_without_padding():
    with pytest.raises(ValueError, match="CaptioningRNN: word_to_idx has no <NULL>"):
        CaptioningRNN({"a": 0})


# ---------------------------------------------------------------- batches that do not fit


@pytest.mark.parametrize("function", ["loss", "nll"])
@pytest.mark.parametrize(
    ("features", "captions", "error", "message"),
    [
        ((5, D + 1), None, ValueError, "features has shape (5, 4), expected (N, D) with D = 3"),
        ((D,), None, ValueError, "features has shape (3,), expected (N, D) with D = 3"),
        ((4, D), None, ValueError, "captions has shape (5, 6), expected (N, L)"),
        (None, np.ones((5, 1), int), ValueError, "captions has shape (5, 1), expected (N, L)"),
        (None, np.ones(5, int), ValueError, "captions has shape (5,), expected (N, L)"),
        (None, np.full((5, 3), V), IndexError, "captions holds the token 6, the vocabulary has 6 words"),
        (None, np.full((5, 3), -1), IndexError, "captions holds the token -1, the vocabulary has 6 words"),
        (None, np.ones((5, 3)), TypeError, "captions has dtype float64, expected integers"),
    ],
)
def test_wrong_batches(function, features, captions, error, message, rng):
    given = list(batch(rng))
    if features is not None:
        given[0] = np.ones(features)
    if captions is not None:
        given[1] = captions
    with pytest.raises(error, match=re.escape(f"CaptioningRNN.{function}: {message}")):
        getattr(build(), function)(*given)


def test_complex_features(rng):
    features, captions = batch(rng)
    with pytest.raises(TypeError, match="features has dtype complex128, expected real numbers"):
        build().loss(features + 1j, captions)


def test_the_initial_state_comes_from_the_global_vector(rng):
    model = build(attention="additive", global_dim=G)
    (regions, vectors), _ = batch(rng, attention="additive", global_dim=G)
    source, _ = model.encoder.forward(model.params, (regions, vectors))
    np.testing.assert_allclose(source.state[0], vectors @ model.params["W_proj"] + model.params["b_proj"])
    np.testing.assert_array_equal(source.memory, regions)


def test_dropout_of_the_global_vector_is_its_own(rng):
    model = build(attention="additive", global_dim=G, feature_dropout=0.5)
    given = np.ones((4, L, D)), np.ones((4, G))
    source, _ = model.encoder.forward(model.params, given, rng=rng)
    assert set(np.unique(source.memory)) == {0, 2}
    whole, _ = model.encoder.forward(model.params, given)
    assert not np.allclose(source.state[0], whole.state[0])


def test_a_global_vector_without_attention():
    with pytest.raises(ValueError, match="global_dim is 5, which needs attention 'additive'"):
        CaptioningRNN(WORD_TO_IDX, global_dim=5)


def test_a_weight_of_a_loss_that_the_model_does_not_have():
    model = build(target_attention=True)
    model.doubly_stochastic = 0.5
    with pytest.raises(ValueError, match="doubly_stochastic is 0.5, but the model was made without"):
        model.loss(np.ones((2, 3)), np.array([[1, 4, 2], [1, 5, 2]]))


def test_a_weight_of_a_loss_may_be_a_number_of_numpy():
    """As one of np.linspace: it does not make float32 float64."""
    features = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    captions = np.array([[1, 4, 2], [1, 5, 2]])
    model = CaptioningRNN(WORD_TO_IDX, 4, 3, 5, attention="additive", doubly_stochastic=0.5)
    expected, grads = model.loss(features, captions)
    model.doubly_stochastic = np.float64(0.5)
    found, others = model.loss(features, captions)
    assert found == expected
    np.testing.assert_array_equal(grads.flat, others.flat)
