import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rnnlab import layers
from rnnlab.layers import (
    arnet_backward,
    arnet_forward,
    temporal_affine_backward,
    temporal_affine_forward,
)
from rnnlab.layers.checks import (
    as_float_mask,
    as_generator,
    as_mask,
    as_tokens,
    check_float,
    check_gradient,
    check_real,
    check_rng,
    check_shapes,
)


def zeros(*shape):
    return np.zeros(shape)


def test_the_sizes_of_the_letters():
    sizes = check_shapes("f", x=(zeros(2, 3), "N D"), Wx=(zeros(3, 20), "D 4H"), h=(zeros(2, 5), "N H"))
    assert sizes == {"N": 2, "D": 3, "H": 5}
    assert check_shapes("f", h=(zeros(2, 5), "N H"), Wh=(zeros(5, 20), "H 4H"), b=(zeros(20), "4H")) == {
        "N": 2,
        "H": 5,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"h": (zeros(2, 4), "N H"), "Wx": (zeros(5, 12), "D 4H")}, "Wx has shape (5, 12), expected (D, 4H)"),
        (
            {"x": (zeros(2, 5), "N D"), "h": (zeros(2, 4), "N H"), "Wx": (zeros(5, 12), "D 4H")},
            "Wx has shape (5, 12), expected (D, 4H) = (5, 16)",
        ),
        (
            {"h": (zeros(2, 4), "N H"), "Wh": (zeros(4, 5), "H H")},
            "Wh has shape (4, 5), expected (H, H) = (4, 4)",
        ),
        ({"Wh": (zeros(4, 5), "H H")}, "Wh has shape (4, 5), expected (H, H) = (4, 4)"),
        ({"x": (zeros(2), "N D")}, "x has shape (2,), expected (N, D)"),
        ({"x": (zeros(2, 3), "N D"), "b": (zeros(2, 3), "D")}, "b has shape (2, 3), expected (D,) = (3,)"),
        ({"x": (zeros(0, 3), "N D"), "y": (zeros(2), "N")}, "y has shape (2,), expected (N,) = (0,)"),
    ],
)
def test_wrong_shapes(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape('f: ' + message)}"):
        check_shapes("f", **arguments)


def test_dtypes():
    with pytest.raises(TypeError, match="f: y has dtype float32, expected float64 as x"):
        check_shapes("f", x=(zeros(2), "N"), y=(np.zeros(2, np.float32), "N"))
    with pytest.raises(TypeError, match="f: x has dtype int64, expected float32 or float64"):
        check_shapes("f", x=(np.zeros(2, int), "N"))
    with pytest.raises(TypeError, match="f: x is a list, expected an array"):
        check_shapes("f", x=([0.0], "N"))


WRONG_DTYPES = [np.float16, ">f4", ">f8", np.longdouble, np.complex64, np.complex128, np.int64, bool]


@pytest.mark.parametrize("dtype", WRONG_DTYPES)
def test_only_float32_and_float64_in_native_byte_order(dtype):
    wrong = np.zeros((2, 3), dtype)
    message = re.escape(f"f: x has dtype {wrong.dtype}, expected float32 or float64 in native byte order")
    for check in (
        lambda: check_float("f", "x", wrong),
        lambda: check_shapes("f", x=(wrong, "N D")),
        lambda: check_shapes("f", ok=(zeros(2, 3), "N D"), x=(wrong, "N D")),
    ):
        with pytest.raises(TypeError, match=message):
            check()
    for dtype in (np.float32, np.float64, "=f4"):
        check_float("f", "x", np.zeros(2, dtype))


def layer_calls(dtype, make=np.zeros):
    """A forward of every kind of layer on arrays of a dtype."""

    def arrays(*shapes):
        return [make(shape, dtype) for shape in shapes]

    def mapped(**shapes):
        return dict(zip(shapes, arrays(*shapes.values()), strict=True))

    tokens = np.zeros((2, 3), int)
    calls = {
        "affine": lambda: layers.affine_forward(*arrays((2, 3), (3, 4), (4,))),
        "temporal_affine": lambda: layers.temporal_affine_forward(*arrays((2, 3, 3), (3, 4), (4,))),
        "word_embedding": lambda: layers.word_embedding_forward(tokens, *arrays((5, 3))),
        "dropout": lambda: layers.dropout_forward(*arrays((2, 3)), 0.5, rng=np.random.default_rng(0)),
        "dropout in inference": lambda: layers.dropout_forward(*arrays((2, 3)), 0.5, rng=None),
        "relu": lambda: layers.relu_forward(*arrays((2, 3))),
        "tanh": lambda: layers.tanh_forward(*arrays((2, 3))),
        "softmax": lambda: layers.softmax_loss(*arrays((2, 5)), tokens[:, 0]),
        "temporal_softmax": lambda: layers.temporal_softmax_loss(*arrays((2, 3, 5)), tokens, tokens == 0),
        "arnet": lambda: layers.arnet_forward(*arrays((2, 3, 4)), None, mapped(**layers.arnet_shapes(4, 5))),
        "attention_keys": lambda: layers.attention_keys_forward(
            *arrays((2, 3, 4)), mapped(Wq=(4, 5), Wm=(4, 5), b=(5,), v=(5,))
        ),
        "selector": lambda: layers.selector_forward(*arrays((2, 3), (2, 4), (4,), (1,))),
        "doubly_stochastic": lambda: layers.doubly_stochastic_loss(*arrays((2, 3, 4))),
        "target_attention": lambda: layers.target_attention_forward(
            *arrays((2, 3, 4), (2, 4)), {}, score="dot"
        ),
    }
    for cell, gates in (("rnn", 1), ("lstm", 4), ("gru", 3), ("simplified_gru", 2)):
        shapes = (2, 3, 3), (2, 4), (3, 4 * gates), (4, 4 * gates), (4 * gates,)
        forward = getattr(layers, f"{cell}_forward")
        calls[cell] = lambda forward=forward, shapes=shapes: forward(*arrays(*shapes))
    return calls


BACKWARDS = [
    *(f"{cell}_{kind}" for cell in ("rnn", "lstm", "gru", "simplified_gru") for kind in ("step", "sequence")),
    *("attention_keys", "attention_step", "attentive", "target_attention", "selector"),
    *("arnet", "review", "discriminative"),
    *("affine", "temporal_affine", "word_embedding", "dropout", "relu", "tanh"),
]


@pytest.mark.parametrize("name", BACKWARDS)
def test_backwards_refuse_the_cache_of_another_forward(name):
    function = f"{name.removesuffix('_sequence')}_backward"
    gradients = [zeros(2, 3)] * (2 if name in ("lstm_step", "attentive", "review") else 1)
    for cache in ((1, 2), SimpleNamespace()):
        forward = function.replace("_backward", "_forward")
        message = rf"^{function}: cache is a {type(cache).__name__}, expected the \w+Cache of {forward}$"
        with pytest.raises(TypeError, match=message):
            getattr(layers, function)(*gradients, cache)


@pytest.mark.parametrize("layer", layer_calls(np.float64))
def test_every_layer_refuses_other_dtypes_in_its_forward(layer):
    layer_calls(np.float32)[layer]()
    for dtype in (np.float16, ">f4", ">f8", np.complex64):
        expected = re.escape(f"has dtype {np.dtype(dtype)}, expected float32 or float64 in native byte order")
        with pytest.raises(TypeError, match=rf"^\w+_(forward|loss): \w+ {expected}"):
            layer_calls(dtype)[layer]()


@pytest.mark.parametrize("layer", layer_calls(np.float64))
def test_every_layer_refuses_masked_arrays(layer):
    """NumPy and the compiled kernels would disagree about the hidden elements."""
    with pytest.raises(TypeError, match=r"^\w+_(forward|loss): \w+ is a MaskedArray, expected a plain array"):
        layer_calls(np.float64, np.ma.zeros)[layer]()


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "simplified_gru"])
def test_steps_refuse_a_matrix_as_gradient(cell):
    """Its ``*`` is a matrix product."""
    gates = {"rnn": 1, "lstm": 4, "gru": 3, "simplified_gru": 2}[cell]
    state = [zeros(2, 2)] * (2 if cell == "lstm" else 1)
    params = zeros(2, 2 * gates), zeros(2, 2 * gates), zeros(2 * gates)
    cache = getattr(layers, f"{cell}_step_forward")(zeros(2, 2), *state, *params)[-1]
    gradients = [zeros(2, 2).view(np.matrix)] * len(state)
    with pytest.raises(TypeError, match=rf"^{cell}_step_backward: \w+ is a matrix, expected a plain array"):
        getattr(layers, f"{cell}_step_backward")(*gradients, cache)


def test_memory_of_a_file_is_a_plain_array(tmp_path):
    x = np.memmap(tmp_path / "x", np.float64, "w+", shape=(2, 3))
    assert layers.relu_forward(x)[0].shape == (2, 3)


def test_real_numbers():
    for dtype in (bool, np.uint8, np.int64, np.float16, ">f4"):
        check_real("f: x", np.zeros(2, dtype))
    for dtype in (np.complex64, object, "U3"):
        with pytest.raises(TypeError, match=f"^f: x has dtype {np.dtype(dtype)}, expected real numbers$"):
            check_real("f: x", np.zeros(2, dtype))
    tensor = SimpleNamespace(dtype="torch.float32", shape=(2,))
    with pytest.raises(TypeError, match="^f: x is a SimpleNamespace, expected a NumPy or CuPy array$"):
        check_real("f: x", tensor)


# ---------------------------------------------------------------- tokens and masks

INTEGERS = st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">i2", ">u4"])


@given(INTEGERS, st.lists(st.integers(0, 120), max_size=8), st.integers(0, 140))
@settings(max_examples=60)
def test_tokens_of_any_integer_dtype(dtype, values, size):
    """In range they come back as int64; out of range the error names the first extreme."""
    tokens = np.array(values, dtype)
    if max(values, default=-1) < size:
        found = as_tokens("f", "x", tokens, size)
        assert found.dtype == np.int64
        assert found.dtype.isnative
        assert found.tolist() == values
    else:
        with pytest.raises(
            IndexError, match=f"f: x holds the token {max(values)}, the vocabulary has {size}"
        ):
            as_tokens("f", "x", tokens, size)


@pytest.mark.parametrize("name", ["mask", "lengths"])
def test_hidden_steps(name):
    arrays = zeros(2, 3, 3), zeros(2, 4), zeros(3, 4), zeros(4, 4), zeros(4)
    hidden = np.ma.ones((2, 3) if name == "mask" else 2, dtype=np.int64)
    with pytest.raises(TypeError, match=f"^rnn_forward: {name} is a MaskedArray, expected a plain array"):
        layers.rnn_forward(*arrays, **{name: hidden})


def test_hidden_tokens():
    with pytest.raises(TypeError, match="^f: y is a MaskedArray, expected a plain array"):
        as_tokens("f", "y", np.ma.masked_array([1, 2], [0, 1]), 3)


def test_tokens():
    tokens = np.array([0, 4])
    assert as_tokens("f", "x", tokens, 5) is tokens
    assert as_tokens("f", "x", np.zeros((0, 3), int), 0).shape == (0, 3)
    with pytest.raises(IndexError, match="f: x holds the token -1, the vocabulary has 5 words"):
        as_tokens("f", "x", np.array([-1]), 5)
    with pytest.raises(IndexError, match=f"f: x holds the token {2**63 + 1}, the vocabulary has 5 words"):
        as_tokens("f", "x", np.array([2**63 + 1], np.uint64), 5)
    with pytest.raises(IndexError, match="f: y holds 5, expected classes from 0 to 4"):
        as_tokens("f", "y", np.array([5]), 5, of="classes")
    with pytest.raises(TypeError, match="f: x has dtype bool, expected integers"):
        as_tokens("f", "x", np.array([True]), 5)


MASKS = npst.arrays(
    st.sampled_from([np.bool_, np.uint8, np.int64, np.float16, np.float32, np.float64]),
    npst.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4),
    elements={"min_value": 0, "max_value": 1},
)


@given(MASKS)
@settings(max_examples=60)
def test_a_mask_of_any_dtype(mask):
    """Zeros and ones come back as booleans; any other number is an error."""
    if mask.dtype == bool or np.isin(mask, (0, 1)).all():
        found = as_mask("f", "mask", mask, mask.shape, "N, T")
        assert found.dtype == bool
        np.testing.assert_array_equal(found, mask == 1)
    else:
        with pytest.raises(ValueError, match="f: mask holds .*, expected booleans, or 0 and 1 only"):
            as_mask("f", "mask", mask, mask.shape, "N, T")


@pytest.mark.parametrize("value", [np.nan, 0.5, -1.0, 2.0, np.inf])
def test_what_is_no_mask(value):
    mask = np.array([[1.0, 0.0], [value, 1.0]])
    message = f"f: mask holds {value}, expected booleans, or 0 and 1 only"
    with pytest.raises(ValueError, match=message):
        as_mask("f", "mask", mask, (2, 2), "N, T")
    with pytest.raises(ValueError, match=message):
        as_float_mask("f", "mask", mask, (2, 2), mask)


def test_masks_of_a_wrong_shape_or_kind():
    with pytest.raises(ValueError, match=re.escape("f: mask has shape (2, 2), expected (N, L) = (2, 3)")):
        as_mask("f", "mask", np.ones((2, 2), bool), (2, 3), "N, L")
    with pytest.raises(TypeError, match="f: mask has dtype complex128, expected real numbers"):
        as_mask("f", "mask", np.ones((2, 2), complex), (2, 2), "N, L")
    with pytest.raises(TypeError, match="f: mask has shape .* and dtype float32, expected .* and float64"):
        as_float_mask("f", "mask", np.ones((2, 2), np.float32), (2, 2), zeros(1))
    assert as_mask("f", "mask", [[1, 0]], (1, 2), "N, T").tolist() == [[True, False]]
    for dtype in (bool, np.uint8, np.int64):
        mask = as_float_mask("f", "mask", np.array([[1, 0]], dtype), (1, 2), zeros(1))
        assert (mask.dtype, mask.tolist()) == (np.float64, [[1, 0]])


def mask_calls(mask):
    """Every function that takes a mask (2, 3)."""
    x, h0, Wx, Wh, b = zeros(2, 3, 3), zeros(2, 4), zeros(3, 16), zeros(4, 16), zeros(16)
    attentive = layers.attentive_shapes("rnn", input_dim=3, hidden_dim=4, attention_dim=2, memory_dim=3)
    params = {name: zeros(*shape) for name, shape in attentive.items()}
    arnet = {name: zeros(*shape) for name, shape in layers.arnet_shapes(3, 5).items()}
    rnn = Wx[:, :4], Wh[:, :4], b[:4]
    return {
        "rnn": lambda: layers.rnn_forward(x, h0, *rnn, mask=mask),
        "lstm": lambda: layers.lstm_forward(x, h0, Wx, Wh, b, mask=mask),
        "gru": lambda: layers.gru_forward(x, h0, Wx[:, :12], Wh[:, :12], b[:12], mask=mask),
        "simplified_gru": lambda: layers.simplified_gru_forward(
            x, h0, Wx[:, :8], Wh[:, :8], b[:8], mask=mask
        ),
        "attention_step": lambda: layers.attention_step_forward(
            zeros(2, 3), x, x, {}, score="dot", mask=mask
        ),
        "attentive": lambda: layers.attentive_forward(x, (h0,), x, params, cell="rnn", memory_mask=mask),
        "attentive steps": lambda: layers.attentive_forward(x, (h0,), x, params, cell="rnn", mask=mask),
        "attentive_start": lambda: layers.attentive_start((h0,), x, params, cell="rnn", memory_mask=mask),
        "doubly_stochastic": lambda: layers.doubly_stochastic_loss(x, mask=mask),
        "doubly_stochastic memory": lambda: layers.doubly_stochastic_loss(x, memory_mask=mask),
        "temporal_softmax": lambda: layers.temporal_softmax_loss(x, np.zeros((2, 3), int), mask),
        "arnet": lambda: layers.arnet_forward(x, None, arnet, loss_mask=mask),
        "arnet steps": lambda: layers.arnet_forward(x, None, arnet, mask=mask),
        "target_attention": lambda: layers.target_attention_forward(x, x[:, 0], {}, score="dot", mask=mask),
    }


@pytest.mark.parametrize("call", mask_calls(None))
def test_every_mask_is_checked(call):
    mask = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    mask_calls(mask)[call]()
    for value in (np.nan, 0.5, -1.0):
        wrong = mask.copy()
        wrong[0, 1] = value
        with pytest.raises(
            ValueError, match=rf": (memory_|loss_)?mask holds {value}, expected booleans, or 0 and 1"
        ):
            mask_calls(wrong)[call]()


def test_the_shape_of_a_mask_on_a_device(device):
    """Its values are not read, which would wait for the device."""
    x, h0 = device.zeros((2, 1, 3)), device.zeros((2, 4))
    shapes = layers.attentive_shapes("rnn", input_dim=3, hidden_dim=4, attention_dim=2, memory_dim=3)
    params = {name: device.zeros(shape) for name, shape in shapes.items()}
    mask = device.asarray(np.ones((2, 5), np.int64))
    message = "attentive_forward: memory_mask has shape (2, 5), expected (N, L) = (2, 6)"
    with pytest.raises(ValueError, match=re.escape(message)):
        layers.attentive_forward(x, (h0,), device.zeros((2, 6, 3)), params, cell="rnn", memory_mask=mask)


def test_gradients():
    check_gradient("f", zeros(2), (2,), np.dtype(np.float64))
    with pytest.raises(ValueError, match=re.escape("f: dy has shape (2,), expected (3,)")):
        check_gradient("f", zeros(2), (3,), np.float64, "dy")
    with pytest.raises(TypeError, match="f: dout has dtype float64, expected float32"):
        check_gradient("f", zeros(2), (2,), np.dtype(np.float32))


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("dloss", [None, "1", np.ones(1), np.ones(3)])
def test_the_gradient_of_a_loss_is_a_number(rng, dloss):
    h = rng.standard_normal((2, 3, 4))
    shapes = {"Wx": (4, 8), "Wh": (2, 8), "b": (8,), "W": (2, 4), "b_out": (4,)}
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    _, cache = arnet_forward(h, None, params)
    with pytest.raises(TypeError, match=r"arnet_backward: dloss is .*, expected a number"):
        arnet_backward(dloss, cache)
    expected, given = arnet_backward(0.5, cache)[0], arnet_backward(np.array(0.5, np.float32), cache)[0]
    np.testing.assert_array_equal(expected, given)


def test_tensors_of_other_libraries(rng):
    torch = pytest.importorskip("torch")
    x, w, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 5)), rng.standard_normal(5)
    _, cache = temporal_affine_forward(x, w, b)
    with pytest.raises(
        TypeError, match="temporal_affine_backward: dout is a Tensor, expected a NumPy or CuPy"
    ):
        temporal_affine_backward(torch.zeros(2, 3, 5), cache)
    h0 = torch.zeros(2, 4, dtype=torch.float64)
    with pytest.raises(TypeError, match="h0 is an array with dtype torch.float64, expected a NumPy or CuPy"):
        check_shapes("f", x=(x, "N T D"), h0=(h0, "N H"))


def test_generators():
    check_rng("f", None)
    check_rng("f", np.random.default_rng(0))
    with pytest.raises(TypeError, match="f: rng is 3, expected a numpy Generator or None"):
        check_rng("f", 3)


def test_generators_from_seeds(rng):
    assert as_generator("f", rng) is rng
    for seed in (3, np.int64(3), [3, 4], np.random.SeedSequence(3)):
        assert as_generator("f", seed).random() == np.random.default_rng(seed).random()
    expected = "expected a numpy Generator or a seed, an integer of at least 0"
    for wrong in (None, True, np.False_, 0.5, "a"):
        with pytest.raises(TypeError, match=f"^f: rng is {re.escape(repr(wrong))}, {expected}"):
            as_generator("f", wrong)
    with pytest.raises(ValueError, match=f"^f: rng is -1, {expected}"):
        as_generator("f", -1)
