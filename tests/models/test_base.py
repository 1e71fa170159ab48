"""The base class of models: configuration, loss weights, gradients to add into, devices."""

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.base import LOSS_PARTS, averaging_size

from .toys import WORD_TO_IDX, batch, build


def test_arguments_are_json_values():
    model = CaptioningRNN(WORD_TO_IDX, 3, 2, 4, dtype=np.float64, regularisation={"zoneout_h": 0.1})
    config = model.config()
    assert config["dtype"] == "float64"
    assert config["regularisation"]["zoneout_h"] == 0.1
    assert not {"self", "rng", "device"} & config.keys()
    config["word_to_idx"]["new"] = 9  # a copy
    assert "new" not in model.config()["word_to_idx"]


def test_an_argument_of_another_type_is_named():
    with pytest.raises((TypeError, ValueError), match="SequenceClassifier: hidden_dim is 'many'"):
        SequenceClassifier(3, hidden_dim="many")


def test_the_configuration_has_the_current_loss_weights():
    model = build(reconstruction=0.3, label_smoothing=0.1)
    model.reconstruction = 0.0
    config = model.config()
    assert (config["reconstruction"], config["label_smoothing"]) == (0.0, 0.1)
    assert CaptioningRNN.from_config(config).reconstruction == 0.0


WEIGHTS = ["reconstruction", "encoder_reconstruction", "discriminative"]


@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_model_whose_loss_is_turned_off_keeps_the_part(weight, size):
    option = LOSS_PARTS[weight][1]
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


def test_averaging_size():
    assert averaging_size("f", 3, 7, None) == (3, 7)
    size = averaging_size("f", 3, 7, (np.int64(5), np.int64(9)))
    assert size == (5, 9)
    assert [type(number) for number in size] == [int, int]
    for too_small in ((2, 9), (5, 6)):
        with pytest.raises(ValueError, match="f: part_of is .*, expected at least the part's own 3 examples"):
            averaging_size("f", 3, 7, too_small)


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
