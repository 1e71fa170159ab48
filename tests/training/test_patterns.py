"""Values of parameters, by patterns of their names."""

import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.patterns import matching, places_of_values, values_by_name

NAMES = Parameters({"W_embed": (2, 3), "Wx": (3,), "none": (0,), "Wh": (2,), "b": (2,), "W_vocab": (4,)})


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [([], set()), (["W?"], {"Wx", "Wh"}), (["b", "[b]"], {"b"}), (["w*"], set()), (["*"], set(NAMES))],
)
def test_matching(patterns, expected):
    assert matching(NAMES, patterns) == expected


def test_the_first_pattern_that_matches_has_the_value():
    values = values_by_name("rates", {"W_e*": 2.0, "W*": 3.0, "b": 4.0}, NAMES, 1.0)
    assert values == {"W_embed": 2.0, "Wx": 3.0, "none": 1.0, "Wh": 3.0, "b": 4.0, "W_vocab": 3.0}


def test_a_pattern_after_one_that_matches_all_its_parameters():
    with pytest.raises(ValueError, match="^rates has 'Wx' after 'W\\*', which matches the same parameters"):
        values_by_name("rates", {"W*": 3.0, "b": 2.0, "Wx": 4.0}, NAMES, 1.0)
    values = values_by_name("rates", {"W*": 3.0, "b": 2.0, "none": 2.0, "*": 4.0}, NAMES, 1.0)
    assert set(values.values()) == {2.0, 3.0}


def test_a_pattern_that_matches_nothing():
    with pytest.raises(ValueError, match="^rates has 'w', which matches none of W_embed, Wx, none, Wh, b, W"):
        values_by_name("rates", {"*": 1.0, "w": 2.0}, NAMES, 1.0)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (tuple(NAMES), [(0, 6, 1.0), (6, 11, 2.0), (11, 17, 1.0)]),
        (("Wx", "Wh", "W_vocab"), [(6, 11, 2.0), (13, 17, 1.0)]),
        (("W_embed", "b"), [(0, 6, 1.0), (11, 13, 1.0)]),
        ((), []),
    ],
)
def test_places(names, expected):
    values = values_by_name("rates", {"W?": 2.0, "none": 2.0}, NAMES, 1.0)
    places = places_of_values(NAMES, names, values)
    assert [(place.start, place.stop, value) for place, value in places] == expected
