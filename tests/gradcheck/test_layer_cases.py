import numpy as np
import pytest

from rnnlab import layers
from rnnlab.gradcheck.layer_cases import layer_cases
from rnnlab.gradcheck.model_cases import model_cases
from rnnlab.gradcheck.side_effects import check_threads


def test_every_public_layer_has_a_case():
    names = {case.name.split(",")[0] for case in layer_cases(np.random.default_rng(0))}
    without_backward = {name for name in layers.__all__ if name.endswith("_shapes")} | {
        "Cell", "Regularisation", "attentive_start", "attentive_step", "cell_names", "frequent_words",
        "register_cell", "reversed_in_time",
    }  # fmt: skip
    for name in set(layers.__all__) - without_backward:
        layer = name.removesuffix("_forward").removesuffix("_backward")
        assert layer in names, f"{layer} has no case"


def test_names_are_unique_and_the_seed_decides_the_inputs():
    one, other = (list(layer_cases(np.random.default_rng(3))) for _ in range(2))
    models = [name for name, _, _ in model_cases(np.random.default_rng(3))]
    names = [case.name for case in one] + models
    assert len(set(names)) == len(names)
    for case, same in zip(one, other, strict=True):
        for name, array in case.inputs.items():
            np.testing.assert_array_equal(array, same.inputs[name])
            assert array.dtype == np.float64


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in layer_cases(np.random.default_rng(0))])
def test_one_cache_serves_several_threads(name):
    """A backward that worked in arrays of its cache would give other gradients here."""
    case = next(case for case in layer_cases(np.random.default_rng(0)) if case.name == name)
    *outs, _ = case.forward(**case.inputs)
    douts = tuple(np.cos(out) for out in outs)
    assert check_threads(case.forward, case.backward, case.inputs, douts, repetitions=3) == []
