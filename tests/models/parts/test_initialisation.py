import numpy as np
import pytest

from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.models.parts.initialisation import initialise, set_forget_bias
from rnnlab.parameters import Parameters

SHAPES = {"W_embed": (300, 50), "Wx": (100, 400), "b": (400,), "W_vocab": (400, 300), "b_vocab": (300,)}


def filled(kind, *, seed=0, scale=0.08, dtype=np.float64):
    params = Parameters(SHAPES, dtype)
    params.flat[...] = 7
    initialise(params, kind, scale=scale, rng=np.random.default_rng(seed))
    return params


def test_course():
    params = filled("course")
    for name, std in (("W_embed", 1 / 100), ("Wx", 1 / np.sqrt(100)), ("W_vocab", 1 / np.sqrt(400))):
        assert params[name].std() == pytest.approx(std, rel=0.03)
        assert abs(params[name].mean()) < 0.03 * std
        assert np.abs(params[name]).max() > 3 * std  # normal, not uniform


def test_a_vector_is_a_weight_with_and_without_a_prefix():
    params = Parameters(dict.fromkeys(("v", "w", "layer1_v", "selector_w", "b", "layer1_b", "view"), (50,)))
    initialise(params, "course", scale=0.08, rng=np.random.default_rng(0))
    random = {name for name, view in params.items() if view.any()}
    assert random == {"v", "w", "layer1_v", "selector_w"}


@pytest.mark.parametrize("output", ["linear", "deep"])
def test_tied_word_vectors_have_the_scale_of_a_weight(output):
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2} | {f"w{k}": k for k in range(3, 300)}
    for tied, std in ((False, 1 / 100), (True, 1 / np.sqrt(50))):
        model = CaptioningRNN(words, 8, 50, 50, "gru", output=output, tied_embeddings=tied)
        assert model.params["W_embed"].std() == pytest.approx(std, rel=0.03)
        assert ("W_vocab" in model.params) is not tied


def test_each_memory_of_a_reviewer_has_its_own_fan_in():
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}
    model = CaptioningRNN(
        words,
        900,
        2,
        100,
        cell_type="lstm",
        attention="additive",
        attention_dim=400,
        reviewer={"blocks": 3, "steps": 1},
    )
    first, second, last = (model.params[f"reviewer_block{block}_step1_Wm"] for block in (1, 2, 3))
    for rows, fan_in in ((first, 900), (second[:900], 900), (second[900:], 100), (last[900:], 100)):
        assert rows.std() == pytest.approx(1 / np.sqrt(fan_in), rel=0.03)
    assert model.params["reviewer_block3_step1_v"].std() == pytest.approx(1 / np.sqrt(400), rel=0.1)
    assert len(last) == 900 + 100 + 100


@pytest.mark.parametrize("scale", [0.08, 0.5])
def test_uniform(scale):
    params = filled("uniform", scale=scale)
    for name in ("W_embed", "Wx", "W_vocab"):
        assert params[name].std() == pytest.approx(scale / np.sqrt(3), rel=0.03)
        assert 0.99 * scale < np.abs(params[name]).max() <= scale


@pytest.mark.parametrize("kind", ["course", "uniform"])
def test_biases_are_zero_and_the_seed_decides_the_rest(kind):
    one, again, other = filled(kind), filled(kind), filled(kind, seed=1)
    assert not one["b"].any()
    assert not one["b_vocab"].any()
    np.testing.assert_array_equal(one.flat, again.flat)
    assert (one["Wx"] != other["Wx"]).all()


def test_float32_has_the_same_numbers():
    np.testing.assert_allclose(filled("course", dtype=np.float32).flat, filled("course").flat, rtol=1e-6)


class LongMemory:
    """A cell whose forget gate is the last of three blocks."""

    num_gates, forget_gate = 4, 2


def test_forget_gates_start_at_the_bias():
    shapes = {"Wx": (2, 8), "b": (8,), "arnet_Wx": (2, 8), "arnet_b": (8,), "encoder_forward1_Wx": (1, 4)}
    params = Parameters(shapes | {"encoder_forward1_b": (4,), "b_vocab": (8,)}, np.float64)
    set_forget_bias("f", params, cell_for("f", "lstm"), 1.5)
    np.testing.assert_array_equal(params["b"], [0, 0, 1.5, 1.5, 0, 0, 0, 0])
    np.testing.assert_array_equal(params["encoder_forward1_b"], [0, 1.5, 0, 0])
    assert not params["arnet_b"].any()
    assert not params["b_vocab"].any()
    set_forget_bias("f", params, LongMemory(), -1.0)
    np.testing.assert_array_equal(params["b"], [0, 0, 1.5, 1.5, -1, -1, 0, 0])


def test_a_cell_without_a_forget_gate_takes_no_bias():
    params = Parameters({"Wx": (2, 2), "b": (2,)}, np.float64)
    set_forget_bias("f", params, cell_for("f", "rnn"), 0.0)
    assert not params.flat.any()
    with pytest.raises(
        ValueError, match="f: forget_bias is 1.0, but cell 'rnn' has no forget gate, expected 0"
    ):
        set_forget_bias("f", params, cell_for("f", "rnn"), 1.0)


@pytest.mark.parametrize("image_input", ["initial_state", "second_layer"])
def test_every_recurrent_layer_of_a_captioning_model_has_the_forget_bias(image_input):
    options = {"image_input": image_input, "reconstruction": 0.1, "forget_bias": 2.0}
    params = CaptioningRNN({"<NULL>": 0, "<START>": 1, "<END>": 2}, 3, 4, 5, "lstm", **options).params
    biased = {name for name in params if (params[name] == 2.0).any()}
    assert biased == ({"b"} if image_input == "initial_state" else {"layer1_b", "layer2_b"})


def test_encoder_and_decoder_of_a_translator_have_the_forget_bias():
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2}
    params = Seq2Seq(words, words, 3, 4, "lstm", encoder_dim=2, forget_bias=2.0).params
    for name, H in (("b", 4), ("encoder_forward1_b", 2), ("encoder_backward1_b", 2)):
        np.testing.assert_array_equal(params[name], np.repeat([0, 2.0, 0, 0], H))
    with pytest.raises(ValueError, match="Seq2Seq: forget_bias is 2.0, but cell 'gru' has no forget gate"):
        Seq2Seq(words, words, 3, 4, forget_bias=2.0)
