import re

import numpy as np
import pytest

from rnnlab.layers.checks import check_probability, check_shapes, check_tokens


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
    with pytest.raises(TypeError, match="f: x has dtype int64, expected a floating-point array"):
        check_shapes("f", x=(np.zeros(2, int), "N"))
    with pytest.raises(TypeError, match="f: x is a list, expected an array"):
        check_shapes("f", x=([0.0], "N"))


def test_tokens():
    check_tokens("f", "x", np.array([0, 4]), 5)
    check_tokens("f", "x", np.zeros((0, 3), int), 0)
    with pytest.raises(IndexError, match="f: x holds the token 5, the vocabulary has 5 words"):
        check_tokens("f", "x", np.array([5]), 5)
    with pytest.raises(TypeError, match="f: x has dtype bool, expected integers"):
        check_tokens("f", "x", np.array([True]), 5)


def test_probability():
    check_probability("f", "p", 0.0)
    for p in (1.0, -0.01):
        with pytest.raises(ValueError, match=rf"f: p is {p}, expected a probability in \[0, 1\)"):
            check_probability("f", "p", p)
