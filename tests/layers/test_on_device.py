"""Every layer on a GPU, or CuPy's stand-in, against the same on NumPy; and against numeric gradients."""

import importlib

import numpy as np
import pytest

from rnnlab import gradcheck, gradcheck_cases
from rnnlab.ops import ops_for

NAMES = [case.name for case in gradcheck_cases.layer_cases(np.random.default_rng(0))]

# What stands for the rest where the numeric gradients are taken as well, which takes longer.
SOME = ["lstm, final state, lengths", "gru, final state", "word_embedding", "arnet", "selector"]


def case_called(name):
    return next(case for case in gradcheck_cases.layer_cases(np.random.default_rng(0)) if case.name == name)


@pytest.fixture
def ops(device):
    return importlib.import_module("rnnlab.ops.cupy_ops")


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
@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("attention_keys", "attention_step"))])
def test_in_single_precision(name, ops):
    case = case_called(name)
    for a, e in zip(run(single(case), ops), run(case, ops_for(np.zeros(1))), strict=True):
        assert np.asarray(a).dtype == np.float32 or np.shape(a) == ()
        np.testing.assert_allclose(a, e, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("attention_keys", "attention_step"))])
def test_in_single_precision_with_products_in_bfloat16(name, ops, monkeypatch):
    monkeypatch.setattr(importlib.import_module("rnnlab.ops.cupy_blas"), "MATMUL", "bfloat16")
    case = case_called(name)
    for a, e in zip(run(single(case), ops), run(case, ops_for(np.zeros(1))), strict=True):
        assert np.asarray(a).dtype == np.float32 or np.shape(a) == ()
        assert np.linalg.norm(a - e) <= 0.05 * np.linalg.norm(e) + 1e-3


@pytest.mark.parametrize("name", SOME)
def test_numeric_gradients(name, ops):
    case = gradcheck.on_device(case_called(name), ops)
    row = gradcheck.check_case(case, tolerance=1e-7, rng=np.random.default_rng(1))
    assert row.passed, row


def test_two_runs_are_identical_to_the_bit(ops):
    case = case_called("attentive, gru, additive, selector and target")
    for once, again in zip(run(case, ops), run(case, ops), strict=True):
        np.testing.assert_array_equal(once, again)


def test_arrays_of_two_libraries_are_refused(ops):
    case = case_called("lstm")
    mixed = case.inputs | {"Wh": ops.asarray(case.inputs["Wh"])}
    with pytest.raises(TypeError, match="expected arrays of one library, got NumPy and CuPy arrays together"):
        case.forward(**mixed)
