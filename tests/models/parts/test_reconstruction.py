"""ARNet in a model: what it reads, what it reconstructs, what its weight and its options do."""

import numpy as np
import pytest

from rnnlab.layers import arnet_forward
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.models.captioning import IMAGE_INPUTS

from ..test_translation import SOURCE, TARGET
from ..test_translation import batch as pairs
from ..test_translation import build as build_seq2seq
from ..toys import NULL, WORD_TO_IDX, D, H, W, batch, build

ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
LENGTHS = np.array([5, 2, 4, 2, 0])  # of the toys' captions
OPTIONS = [{"cell_type": "lstm", "image_input": image_input} for image_input in IMAGE_INPUTS]
OPTIONS += [{"cell_type": "gru", "attention": "additive", "target_attention": True, "output": "deep"}]
every_way = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: [*options.values()][1])


def states_of(model, features, captions):
    """The hidden states (N, T, H) by decoding's step functions, and the one before them or None."""
    params, image_input, first = model.params, model.config()["image_input"], None
    state, hidden = model.start(features), []
    if image_input == "initial_state":
        first = model.encoder.forward(params, features)[0].state[0]
    elif image_input == "first_input":
        first = state[0][0]
    for tokens in captions.T[:-1]:
        words, _ = model.embedding.forward(params, tokens)
        decoded, state = model.decoder.advance(words, state)
        hidden.append(decoded.hidden)
    return np.stack(hidden, axis=1), first


@every_way
@pytest.mark.parametrize(("average", "divisor"), [("batch", 5), ("token", 12)])
def test_the_loss_is_that_of_the_layer(options, average, divisor, rng):
    """Of the states that decoding goes through; a state made from the image is a target, zeros are not."""
    model, (features, captions) = build(**options, **ARNET, loss_average=average), batch(rng, **options)
    total = model.loss(features, captions)[0]
    hidden, first = states_of(model, features, captions)
    expected, _ = arnet_forward(hidden, first, model.params.scope("arnet_"), lengths=LENGTHS)
    nll, _ = model.nll(features, captions)
    assert total == pytest.approx(nll / divisor + 0.3 * expected, rel=1e-12)


@every_way
def test_a_weight_of_zero_costs_nothing(options, rng):
    given, model = batch(rng, **options), build(**options, reconstructor_dim=3)
    without = build(**options)
    added = {name: grad for name, grad in model.params.items() if name not in without.params}
    assert [name.removeprefix("arnet_") for name in added] == ["Wx", "Wh", "b", "W", "b_out"]
    model.params.update(without.params)
    (loss, grads), (expected, expected_grads) = model.loss(*given), without.loss(*given)
    assert loss == expected
    for name, grad in grads.items():
        np.testing.assert_array_equal(grad, expected_grads.get(name, np.zeros(grad.shape)))


def test_the_weight_may_change_between_batches(rng):
    given, model = batch(rng), build(reconstructor_dim=3)
    expected, expected_grads = build(**ARNET).loss(*given)
    model.reconstruction = 0.3
    loss, grads = model.loss(*given)
    assert loss == expected
    np.testing.assert_array_equal(grads.flat, expected_grads.flat)
    assert model.config()["reconstruction"] == 0.3


def test_the_states_are_reconstructed_as_they_are_not_as_they_are_scored(rng):
    """Dropout on the way to the scores leaves the term alone."""
    given, model = batch(rng), build(**ARNET, output_dropout=0.5)

    def loss(weight, seed):
        model.reconstruction = weight
        return model.loss(*given, rng=np.random.default_rng(seed))[0]

    terms = [loss(0.3, seed) - loss(0.0, seed) for seed in (1, 2)]
    assert loss(0.0, 1) != loss(0.0, 2)
    assert terms[0] == pytest.approx(terms[1], rel=1e-9)


@every_way
def test_padding_and_order_change_nothing(options, rng):
    model, (features, captions) = build(**options, **ARNET), batch(rng, **options)
    loss, grads = model.loss(features, captions)
    padded_loss, padded = model.loss(features, np.pad(captions, ((0, 0), (0, 3)), constant_values=NULL))
    assert padded_loss == loss
    np.testing.assert_array_equal(padded.flat, grads.flat)
    order = rng.permutation(len(captions))
    permuted_loss, permuted = model.loss(features[order], captions[order])
    assert permuted_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(permuted.flat, grads.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("N", [0, 2])
def test_nothing_but_padding(N, rng):
    loss, grads = build(**ARNET).loss(rng.standard_normal((N, D)), np.full((N, 4), NULL))
    assert loss == 0
    assert not grads.flat.any()


def test_all_begin_alike_with_and_without():
    """The same seed gives the other parameters the same numbers; ARNet's weights are drawn after them."""
    model, without = (CaptioningRNN(WORD_TO_IDX, D, W, H, rng=3, **options) for options in (ARNET, {}))
    for name, array in without.params.items():
        np.testing.assert_array_equal(model.params[name], array)
    assert all(model.params[f"arnet_{name}"].any() for name in ("Wx", "Wh", "W"))
    assert not any(model.params[f"arnet_{name}"].any() for name in ("b", "b_out"))


def test_units_are_those_of_the_layer_if_left_out():
    assert build(reconstruction=0.1).params["arnet_Wh"].shape == (H, 4 * H)
    model = build_seq2seq(encoder_reconstruction=0.1, encoder_dim=2)
    assert model.params["encoder_arnet_backward_Wh"].shape == (2, 8)
    assert "arnet_Wx" not in model.params
    again = Seq2Seq.from_config(model.config())
    assert again.params.shapes == model.params.shapes


# ---------------------------------------------------------------- the encoder


@pytest.mark.parametrize("options", [{}, {"attention": None}], ids=["attention", "none"])
def test_each_direction_of_the_encoder_is_reconstructed_in_its_own_order(options, rng):
    options |= {"num_layers": 2, "encoder_reconstructor_dim": 3}
    model, (source, target) = build_seq2seq(**options), pairs()
    expected, _ = model.loss(source, target)
    tokens = model._inputs("test", source)[0]
    memory = model.encoder.forward(model.params, tokens)[0].memory
    for direction, states in (("forward", memory[:, :, :H]), ("backward", memory[:, :, H:])):
        for n, length in enumerate(tokens.lengths):
            read = states[n : n + 1, :length]
            read = read[:, ::-1] if direction == "backward" else read
            prefix = f"encoder_arnet_{direction}_"
            expected += 0.2 * arnet_forward(read.copy(), None, model.params.scope(prefix))[0] / len(source)
    model.encoder_reconstruction = 0.2
    assert model.loss(source, target)[0] == pytest.approx(expected, rel=1e-12)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reconstruction": -0.1}, "reconstruction is -0.1, expected a finite number of at least 0"),
        ({"reconstruction": np.nan}, "reconstruction is nan, expected a finite number of at least 0"),
        ({"reconstructor_dim": 0}, "reconstructor_dim is 0, expected an integer of at least 1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=f"CaptioningRNN: {message}"):
        CaptioningRNN(WORD_TO_IDX, D, W, H, **options)
    with pytest.raises(ValueError, match=f"Seq2Seq: encoder_{message}"):
        Seq2Seq(SOURCE, TARGET, W, H, **{f"encoder_{name}": value for name, value in options.items()})


def test_a_weight_without_an_arnet(rng):
    model = build()
    model.reconstruction = 0.1
    message = (
        "CaptioningRNN: reconstruction is 0.1, but the model was made without .*: give it reconstructor_dim"
    )
    with pytest.raises(ValueError, match=message):
        model.loss(*batch(rng))
    model = build_seq2seq()
    model.encoder_reconstruction = 0.1
    with pytest.raises(
        ValueError, match=r"Seq2Seq: encoder_reconstruction .* give it encoder_reconstructor_dim"
    ):
        model.loss(*pairs())


def test_a_weight_of_a_loss_that_the_model_has_not(rng):
    model = build_seq2seq()
    model.doubly_stochastic = 0.5
    with pytest.raises(
        ValueError,
        match=r"Seq2Seq.loss: doubly_stochastic is 0\.5, but a Seq2Seq has no such loss, only recon",
    ):
        model.loss(*pairs())
    model = build()
    model.encoder_reconstruction = 0.5
    with pytest.raises(ValueError, match="a CaptioningRNN has no such loss, only reconstruction, label_s"):
        model.loss(*batch(rng))
