"""The course's own expected values for its update rules."""

import numpy as np
import pytest

from rnnlab.cs231n.optim import adam, rmsprop, sgd, sgd_momentum
from rnnlab.gradcheck.numeric import rel_error

N, D = 4, 5
W = np.linspace(-0.4, 0.6, num=N * D).reshape(N, D)
DW = np.linspace(-0.6, 0.4, num=N * D).reshape(N, D)


def test_sgd_subtracts_the_gradient():
    next_w, config = sgd(W, DW, {"learning_rate": 0.1})
    assert rel_error(next_w, W - 0.1 * DW) < 1e-12
    assert config["learning_rate"] == 0.1


def test_momentum_has_the_values_of_the_course():
    velocity = np.linspace(0.6, 0.9, num=N * D).reshape(N, D)
    next_w, config = sgd_momentum(W, DW, {"learning_rate": 1e-3, "velocity": velocity})
    assert rel_error(next_w[0], [0.1406, 0.20738947, 0.27417895, 0.34096842, 0.40775789]) < 1e-7
    assert rel_error(config["velocity"][0], [0.5406, 0.55475789, 0.56891579, 0.58307368, 0.59723158]) < 1e-7


def test_rmsprop_has_the_values_of_the_course():
    cache = np.linspace(0.6, 0.9, num=N * D).reshape(N, D)
    next_w, config = rmsprop(W, DW, {"learning_rate": 1e-2, "cache": cache})
    assert rel_error(next_w[0], [-0.39223849, -0.34037513, -0.28849239, -0.23659121, -0.18467247]) < 1e-7
    assert rel_error(config["cache"][0], [0.5976, 0.6126277, 0.6277108, 0.64284931, 0.65804321]) < 1e-7


def test_adam_has_the_values_of_the_course():
    m = np.linspace(0.6, 0.9, num=N * D).reshape(N, D)
    v = np.linspace(0.7, 0.5, num=N * D).reshape(N, D)
    next_w, config = adam(W, DW, {"learning_rate": 1e-2, "m": m, "v": v, "t": 5})
    assert rel_error(next_w[0], [-0.40094747, -0.34836187, -0.29577703, -0.24319299, -0.19060977]) < 1e-7
    assert rel_error(config["v"][0], [0.69966, 0.68908382, 0.67851319, 0.66794809, 0.65738853]) < 1e-7
    assert rel_error(config["m"][0], [0.48, 0.49947368, 0.51894737, 0.53842105, 0.55789474]) < 1e-7
    assert config["t"] == 6


@pytest.mark.parametrize(
    "given", [{}, {"t": 0}, {"m": 0.1, "v": 0.2}, {"t": 5}, {"m": 0.1, "v": 0.2, "t": 0}]
)
def test_adam_counts_as_the_course(given):
    """``config.setdefault("t", 0)``, and ``t`` is increased before it is used."""
    config = {name: value if name == "t" else np.full_like(W, value) for name, value in given.items()}
    next_w, config = adam(W, DW, config)
    t = given.get("t", 0) + 1
    m, v = (beta * given.get(slot, 0) for beta, slot in ((0.9, "m"), (0.999, "v")))
    m, v = m + 0.1 * DW, v + 0.001 * DW**2
    expected = W - 1e-3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert config["t"] == t
    np.testing.assert_allclose(next_w, expected, rtol=1e-12)


def test_the_state_goes_from_call_to_call():
    w, config = W, None
    for _ in range(3):
        w, config = adam(w, DW, config)
    assert config["t"] == 3
    assert not np.shares_memory(w, W)
    assert rel_error(W, np.linspace(-0.4, 0.6, num=N * D).reshape(N, D)) == 0


@pytest.mark.parametrize(
    ("rule", "slot"), [(sgd, None), (sgd_momentum, "velocity"), (rmsprop, "cache"), (adam, "m")]
)
def test_a_gradient_of_another_shape_is_refused(rule, slot):
    with pytest.raises(ValueError, match=r"dw has shape \(3, 3\), expected \(30, 30\) as w"):
        rule(np.zeros((30, 30)), np.ones((3, 3)), None)
    if slot is not None:
        with pytest.raises(ValueError, match=r"is float64 of shape \(3,\), expected float64 of shape \(4,\)"):
            rule(np.zeros((2, 2)), np.ones((2, 2)), {slot: np.zeros(3)})


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        (sgd, {"learnig_rate": 1.0}, "config has 'learnig_rate', expected learning_rate, t$"),
        (
            sgd_momentum,
            {"learning_rate": 1.0, "beta1": 0.9},
            "config has 'beta1', expected learning_rate, momentum",
        ),
        (rmsprop, {"decay": 0.9, "m": W}, "config has 'decay', 'm', expected learning_rate, decay_rate"),
        (adam, {"lr": 1.0}, "config has 'lr', expected learning_rate, beta1, beta2, epsilon, m, v, t$"),
    ],
)
def test_a_key_that_the_rule_does_not_have_is_refused(rule, given, expected):
    config = dict(given)
    with pytest.raises(ValueError, match=expected):
        rule(W, DW, config)
    assert config.keys() == given.keys()


@pytest.mark.parametrize("rule", [sgd, sgd_momentum, rmsprop, adam])
def test_all_keys_that_a_rule_returns_may_be_given(rule):
    _, config = rule(W, DW, None)
    rule(W, DW, dict(config))
