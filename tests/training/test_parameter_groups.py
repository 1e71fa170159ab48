"""Frozen parameters neither decay nor have a learning rate; factors scale the decay."""

from types import SimpleNamespace

import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.parameter_groups import ParameterGroups


def options(**given):
    return SimpleNamespace(**{"trains": None, "learning_rate_factors": None, "weight_decay": None} | given)


def test_the_parts_of_the_flat_buffer():
    params = Parameters({"W_embed": (2, 3), "Wx": (3, 4), "b": (4,)})
    given = options(trains=["!W_embed"], learning_rate_factors={"Wx": 0.5}, weight_decay=0.2)
    found = ParameterGroups.of(params, given)
    assert (found.trained, found.frozen) == (("Wx", "b"), ("W_embed",))
    assert found.rates == [(slice(6, 18), 0.5), (slice(18, 22), 1.0)]
    assert found.decays == [(slice(6, 18), 0.1)]


@pytest.mark.parametrize(
    "given", [{"trains": ["x"]}, {"learning_rate_factors": {"x": 2.0}}, {"weight_decay": {"x": 0.1}}], ids=str
)
def test_a_pattern_without_a_parameter(given):
    with pytest.raises(ValueError, match=f"^{next(iter(given))} has 'x', which matches none of Wx"):
        ParameterGroups.of(Parameters({"Wx": (3, 4)}), options(**given))
