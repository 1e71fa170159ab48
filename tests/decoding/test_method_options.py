import inspect

import pytest

from rnnlab.decoding import beam_search, greedy, sample
from rnnlab.decoding.method_options import METHOD_OPTIONS, unmet_needs


def test_each_option_is_an_argument_of_one_function():
    functions = {"greedy": greedy, "beam": beam_search, "sample": sample}
    arguments = {
        method: set(inspect.signature(function).parameters) for method, function in functions.items()
    }
    for method, options in METHOD_OPTIONS.items():
        others = set().union(*(arguments[other] for other in functions if other != method))
        assert set(options) == arguments[method] - others - {"rng", "count"}


@pytest.mark.parametrize(
    ("values", "unmet"),
    [
        ({"num_groups": 2, "length_penalty": 0.7}, {}),
        ({"num_groups": 1, "length_penalty": 0.7}, {"diversity": "num_groups of at least 2"}),
        ({"num_groups": 2, "length_penalty": 0.0}, {"normalisation": "length_penalty above 0"}),
    ],
)
def test_needs_of_beam_search(values, unmet):
    of_beams = {
        name: " ".join(need)
        for name, need in unmet_needs({"method": "beam", **values}).items()
        if name in METHOD_OPTIONS["beam"]
    }
    assert of_beams == unmet


def test_options_of_another_method_need_that_method():
    unmet = unmet_needs({"method": "sample", "num_groups": 1, "length_penalty": 0.0})
    assert unmet == dict.fromkeys(METHOD_OPTIONS["beam"], ("method", "beam"))
