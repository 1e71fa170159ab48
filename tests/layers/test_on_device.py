"""Every layer on a GPU, or CuPy's stand-in, against the same on NumPy; and against numeric gradients."""

import importlib

import numpy as np
import pytest

from rnnlab.gradcheck import run as gradcheck
from rnnlab.gradcheck.layer_cases import layer_cases
from rnnlab.layers import recurrent_backward, recurrent_forward
from rnnlab.layers.attention.source_rows import SourceRows
from rnnlab.ops import ops_for
from rnnlab.ops.precision import products_in

NAMES = [case.name for case in layer_cases(np.random.default_rng(0))]

# What stands for the rest where the numeric gradients are taken as well, which takes longer.
SOME = ["lstm, final state, lengths", "gru, final state", "word_embedding", "arnet", "selector"]


def case_called(name):
    return next(case for case in layer_cases(np.random.default_rng(0)) if case.name == name)


@pytest.fixture
def ops(device):
    return importlib.import_module("rnnlab.ops.cuda")


def run(case, ops):
    """Outputs and gradients of a case on a device."""
    case = gradcheck.on_device(case, ops)
    *outs, cache = case.forward(**case.inputs)
    rng = np.random.default_rng(1)
    grads = case.backward(*(rng.standard_normal(np.shape(out)) for out in outs), cache)
    return [*outs, *grads]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_as_on_numpy(name, ops):
    case = case_called(name)
    for actual, expected in zip(run(case, ops), run(case, ops_for(np.zeros(1))), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def single(case):
    """The case in single precision."""
    backward = case.backward

    def narrow(*arguments):
        *douts, cache = arguments
        return backward(*(d.astype(np.float32) for d in douts), cache)

    inputs = {key: array.astype(np.float32) for key, array in case.inputs.items()}
    return case._replace(inputs=inputs, backward=narrow)


# the others hold parameters of their own, in double precision
@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("attention_keys", "attention_step"))])
def test_in_single_precision(name, ops):
    case = case_called(name)
    for a, e in zip(run(single(case), ops), run(case, ops_for(np.zeros(1))), strict=True):
        assert np.asarray(a).dtype == np.float32 or np.shape(a) == ()
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=2e-5)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("attention_keys", "attention_step"))])
def test_in_single_precision_with_products_in_bfloat16(name, ops):
    case = case_called(name)
    with products_in("bfloat16"):
        found = run(single(case), ops)
    for a, e in zip(found, run(case, ops_for(np.zeros(1))), strict=True):
        assert np.asarray(a).dtype == np.float32 or np.shape(a) == ()
        assert np.linalg.norm(a - e) <= 0.1 * np.linalg.norm(e) + 3e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_numeric_gradients(name, ops):
    case = gradcheck.on_device(case_called(name), ops)
    row = gradcheck.check_case(case, tolerance=1e-7, rng=np.random.default_rng(1))
    assert row.passed, row


def test_two_runs_are_identical_to_the_bit(ops):
    case = case_called("attentive, gru, additive, selector and target")
    for once, again in zip(run(case, ops), run(case, ops), strict=True):
        np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize("seed", [7, None], ids=["noise", "inference"])
@pytest.mark.parametrize(
    ("cell", "gates", "launches"),
    [
        ("rnn", 1, {"rnn_regularised": 1}),
        ("lstm", 4, {"lstm_regularised": 1}),
        ("gru", 3, {"gru_gates": 1, "gru_candidate_regularised": 1}),  # there is a product between the two
        ("simplified_gru", 2, {"simplified_gru_regularised": 1}),
    ],
)
def test_a_step_with_noise_has_one_launch_beside_its_products(cell, gates, launches, seed, simulated, rng):
    cupy_ops, (N, T, D, H) = importlib.import_module("rnnlab.ops.cuda"), (3, 5, 2, 4)
    shapes = (N, T, D), (D, gates * H), (H, gates * H), (gates * H,)
    x, *weights = (cupy_ops.asarray(rng.standard_normal(shape)) for shape in shapes)
    noise = {"zoneout_h": 0.3}
    if cell != "rnn":
        noise |= {"recurrent_dropout": 0.25, "recurrent_dropout_on": "candidate"}
    if cell == "lstm":
        noise["zoneout_c"] = 0.4
    state = tuple(cupy_ops.zeros((N, H)) for _ in range(2 if cell == "lstm" else 1))
    generator = None if seed is None else np.random.default_rng(seed)
    simulated.launches.clear()
    params = dict(zip(("Wx", "Wh", "b"), weights, strict=True))
    h, _, cache = recurrent_forward(x, state, params, cell=cell, regularisation=noise, rng=generator)
    assert of_steps(simulated.launches) == {f"{name}_forward": T * n for name, n in launches.items()}
    simulated.launches.clear()
    recurrent_backward(h, cache)
    assert of_steps(simulated.launches) == {f"{name}_backward": T * n for name, n in launches.items()}


def of_steps(launches):
    """Without what is done for all steps of a chunk at once."""
    return {name: count for name, count in launches.items() if name not in ("take", "put", "column_sums")}


def test_arrays_of_two_libraries_are_refused(ops):
    case = case_called("lstm")
    mixed = case.inputs | {"Wh": ops.asarray(case.inputs["Wh"])}
    with pytest.raises(TypeError, match="expected arrays of one library, got NumPy and CuPy arrays together"):
        case.forward(**mixed)


def test_a_mask_on_a_device_has_the_shape_and_holds_integers(ops, rng):
    memory = ops.asarray(rng.standard_normal((2, 3, 5)))
    for mask, error, message in (
        (
            np.ones((2, 2), bool),
            ValueError,
            r"f: memory_mask has shape \(2, 2\), expected \(N, L\) = \(2, 3\)",
        ),
        (np.ones((2, 3)), TypeError, "f: memory_mask has dtype float64, expected booleans or integers"),
    ):
        with pytest.raises(error, match=message):
            SourceRows.of("f", memory, ops.asarray(mask))
    for dtype in (bool, np.int64, np.uint8):
        rows, slots, _ = SourceRows.of("f", memory, ops.asarray(np.array([[1, 0, 1], [0, 1, 1]], dtype)))
        np.testing.assert_array_equal(ops.asnumpy(slots), [[0, -1, 2], [-1, 4, 5]])
        assert rows.shape == (6, 5)
