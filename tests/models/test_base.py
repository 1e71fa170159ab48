"""The base class of models: configuration, loss weights, gradients to add into, devices."""

import copy
import json
import pickle

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.base import averaging_size
from rnnlab.models.parts.losses import LOSSES

from .cases import NAMES, case_called
from .toys import WORD_TO_IDX, batch, build


def test_arguments_are_json_values():
    model = CaptioningRNN(WORD_TO_IDX, 3, 2, 4, dtype=np.float64, regularisation={"zoneout_h": 0.1})
    config = model.config()
    assert config["dtype"] == "float64"
    assert config["regularisation"]["zoneout_h"] == 0.1
    assert not {"self", "rng", "device"} & config.keys()
    config["word_to_idx"]["new"] = 9  # a copy
    assert "new" not in model.config()["word_to_idx"]


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_numbers_of_numpy_are_arguments_like_others(kind):
    words = {word: kind(token) for word, token in WORD_TO_IDX.items()}
    options = {"reconstruction": np.float32(0.5), "regularisation": {"zoneout_h": np.float16(0.25)}}
    model = CaptioningRNN(words, kind(3), kind(2), kind(4), attention="additive", **options)
    reviewer = {"blocks": kind(1), "steps": kind(2), "dropout": np.float32(0.5)}
    reviewed = Seq2Seq(words, words, kind(2), kind(4), attention="additive", reviewer=reviewer)
    for each in (model, reviewed):
        again = type(each).from_config(json.loads(json.dumps(each.config())))
        assert again.params.shapes == each.params.shapes
        assert again.config() == each.config()
    model.reconstruction = np.float32(0.25)
    assert json.dumps(model.config()["reconstruction"]) == "0.25"


def test_an_argument_of_another_type_is_named():
    with pytest.raises((TypeError, ValueError), match="SequenceClassifier: hidden_dim is 'many'"):
        SequenceClassifier(3, hidden_dim="many")


def test_the_configuration_has_the_current_loss_weights():
    model = build(reconstruction=0.3, label_smoothing=0.1)
    model.reconstruction = 0.0
    config = model.config()
    assert (config["reconstruction"], config["label_smoothing"]) == (0.0, 0.1)
    assert CaptioningRNN.from_config(config).reconstruction == 0.0


@pytest.mark.one_in(8)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_of_python_computes_with_its_own_parameters(name, copied):
    model, given = case_called(name)
    other, loss = copied(model), model.loss(*given)[0]
    other.params.flat[...] *= 1.5
    changed = other.loss(*given)[0]
    assert changed != loss
    assert model.loss(*given)[0] == loss
    again = type(model).from_config(model.config())
    again.params.flat[...] = 1.5 * model.params.flat
    assert again.loss(*given)[0] == changed


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_biases_have_one_dimension(name):
    """Which weight_decay recognises them by."""
    model, _ = case_called(name)
    new = type(model).from_config(model.config()).params
    assert {param for param in new if not new[param].any()} <= {
        param for param in new if new[param].ndim == 1
    }


WEIGHTS = ["reconstruction", "encoder_reconstruction", "discriminative"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_model_whose_loss_is_turned_off_keeps_the_part(weight, size):
    option = LOSSES[weight].part.size
    reviewer = {"blocks": 1, "steps": 2} if weight == "discriminative" else None
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3, "b": 4, "c": 5}
    model = Seq2Seq(words, words, 3, 4, reviewer=reviewer, **{weight: 0.3, option: size})
    assert model.config()[option] == size
    setattr(model, weight, 0.0)
    config = model.config()
    assert config[option] == (size or {"discriminative": 3}.get(weight, 4))
    again = Seq2Seq.from_config(config)
    assert again.params.shapes == model.params.shapes
    assert again.config() == config
    setattr(again, weight, 0.1)
    again.loss(np.array([[3, 4, 2]]), np.array([[1, 3, 2]]))


@pytest.mark.parametrize(
    ("name", "value"), [("label_smoothing", 1.0), ("reconstruction", -1), ("doubly_stochastic", np.nan)]
)
def test_a_loss_weight_set_to_an_invalid_value(name, value, rng):
    model = build()
    setattr(model, name, value)
    with pytest.raises(ValueError, match=f"CaptioningRNN.loss: {name} is {value}"):
        model.loss(*batch(rng))


def termed(rng, kind):
    """A model with losses beside the cross-entropy, without label smoothing, and a batch for it."""
    if kind == "classifier":
        model = SequenceClassifier(3, 2, 4, "gru", dtype=np.float64, reconstruction=0.3)
        return model, (rng.standard_normal((5, 4, 2)), np.array([0, 2, 1, 1, 0]), np.array([4, 1, 3, 2, 4]))
    options = {"attention": "additive", "reviewer": {"blocks": 2, "steps": 2}, "reconstruction": 0.3}
    options |= {"discriminative": 0.7, "cell_type": "lstm", "dtype": np.float64, "loss_average": "batch"}
    if kind == "captioner":
        options |= {"doubly_stochastic": 0.2}
        return CaptioningRNN(WORD_TO_IDX, 3, 2, 4, **options), batch(rng, **options)
    model = Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, 2, 4, **options, encoder_reconstruction=0.5)
    source = np.array([[3, 4, 5, 2], [4, 3, 2, 0], [5, 5, 2, 0], [3, 2, 0, 0], [4, 4, 4, 2]])
    return model, (source, batch(rng, **options)[1])


TERMS = {
    "captioner": {"doubly_stochastic", "reconstruction", "discriminative"},
    "translator": {"reconstruction", "encoder_reconstruction", "discriminative"},
    "classifier": {"reconstruction"},
}


@pytest.mark.parametrize("kind", TERMS)
def test_terms_of_the_loss_are_known_before_their_weights(kind, rng):
    model, given = termed(rng, kind)
    assert model.last_terms == {}
    loss, terms = model.loss(*given)[0], model.last_terms
    assert set(terms) == TERMS[kind]
    weighted = {name: getattr(model, name) * term for name, term in terms.items()}
    assert loss == pytest.approx(model.nll(*given)[0] / len(given[0]) + sum(weighted.values()), rel=1e-12)
    for name, term in terms.items():
        weight = getattr(model, name)
        setattr(model, name, 0.0)
        assert loss - model.loss(*given)[0] == pytest.approx(weight * term, rel=1e-9)
        assert set(model.last_terms) == set(terms) - {name}
        setattr(model, name, 3 * weight)
        model.loss(*given)
        assert model.last_terms == pytest.approx(terms, rel=1e-12)
        setattr(model, name, weight)


@pytest.mark.parametrize("kind", TERMS)
def test_terms_of_parts_add_up_to_those_of_the_batch(kind, rng):
    model, given = termed(rng, kind)
    model.loss(*given)
    terms, tokens, summed = model.last_terms, model.nll(*given)[1], dict.fromkeys(TERMS[kind], 0.0)
    grads = model.params.zeros_like()
    for rows in (slice(2), slice(2, 5)):
        model.loss(*(array[rows] for array in given), part_of=(5, tokens), grads=grads)
        summed = {name: summed[name] + term for name, term in model.last_terms.items()}
    assert summed == pytest.approx(terms, rel=1e-12)
    model.padded_loss(model.padded(*given), grads=grads)
    assert model.last_terms == pytest.approx(terms, rel=1e-12)


def test_gradients_are_overwritten_or_added(rng):
    model, given = build(), batch(rng)
    _, expected = model.loss(*given)
    grads = model.params.zeros_like()
    grads.flat[...] = 7
    assert model.loss(*given, grads=grads)[1] is grads
    np.testing.assert_array_equal(grads.flat, expected.flat)
    tokens = model.nll(*given)[1]
    model.loss(*given, grads=grads, part_of=(5, tokens))
    np.testing.assert_allclose(grads.flat, 2 * expected.flat, rtol=1e-12)


def test_gradients_that_are_not_of_this_model(rng):
    model, given = build(), batch(rng)
    before = model.params.flat.copy()
    with pytest.raises(
        ValueError, match="loss: grads are in the memory of the parameters, expected their own"
    ):
        model.loss(*given, grads=model.params)
    other = build(reconstruction=0.1).params.zeros_like()
    with pytest.raises(ValueError, match="loss: grads has parameters of other shapes or of dtype float64"):
        model.loss(*given, grads=other)
    np.testing.assert_array_equal(model.params.flat, before)


def test_averaging_size():
    assert averaging_size("f", 3, 7, None) == (3, 7)
    size = averaging_size("f", 3, 7, (np.int64(5), np.int64(9)))
    assert size == (5, 9)
    assert [type(number) for number in size] == [int, int]
    for too_small in ((2, 9), (5, 6)):
        with pytest.raises(ValueError, match="f: part_of is .*, expected at least the part's own 3 examples"):
            averaging_size("f", 3, 7, too_small)
    for wrong in ((5.5, 9), (5, 9, 1), (5,), 9, "59", np.array([5, 9])):
        with pytest.raises(TypeError, match="f: part_of is .*, expected two integers"):
            averaging_size("f", 3, 7, wrong)


def test_prefetch_leaves_integers_where_they_are(device, rng):
    model = build(dtype=np.float32).to("gpu")
    features, captions = batch(rng)
    fetched = model.prefetch((features, captions))
    assert type(fetched[0]) is device.ndarray
    assert fetched[0].dtype == np.float32
    assert fetched[1] is captions
    padded = model.prefetch_padded(model.padded(features, captions))
    assert {type(array) for array in padded.arrays.values()} == {device.ndarray}


def test_devices_that_do_not_exist():
    with pytest.raises(ValueError, match="device|tpu"):
        build().to("tpu")
    assert build().device == "cpu"
