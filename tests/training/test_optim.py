from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rnnlab.ops.numpy import optim
from rnnlab.training.optim import UPDATE_RULES, Adam, make_update_rule, runs_on_device
from rnnlab.training.update_rule import UpdateRule

P = 1000  # several blocks, and a shorter one at the end


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(optim, "_BLOCK_BYTES", 1024)


# The definitions of cs231n and of the papers, plainly: (w, g, state, rate, t, hyperparameters) -> w


def sgd(w, g, s, rate, t, h):
    return w - rate * g


def momentum(w, g, s, rate, t, h):
    s["velocity"] = h.momentum * s.get("velocity", 0) - rate * g
    return w + s["velocity"]


def rmsprop(w, g, s, rate, t, h):
    s["cache"] = h.decay_rate * s.get("cache", 0) + (1 - h.decay_rate) * g**2
    return w - rate * g / (np.sqrt(s["cache"]) + h.epsilon)


def adagrad(w, g, s, rate, t, h):
    s["cache"] = s.get("cache", 0) + g**2
    return w - rate * g / (np.sqrt(s["cache"]) + h.epsilon)


def adadelta(w, g, s, rate, t, h):
    s["cache"] = h.decay_rate * s.get("cache", 0) + (1 - h.decay_rate) * g**2
    old = s.get("delta_cache", 0)
    delta = np.sqrt(old + h.epsilon) / np.sqrt(s["cache"] + h.epsilon) * g
    s["delta_cache"] = h.decay_rate * old + (1 - h.decay_rate) * delta**2
    return w - rate * delta


def adam(w, g, s, rate, t, h):
    s["m"] = h.beta1 * s.get("m", 0) + (1 - h.beta1) * g
    s["v"] = h.beta2 * s.get("v", 0) + (1 - h.beta2) * g**2
    m, v = s["m"] / (1 - h.beta1**t), s["v"] / (1 - h.beta2**t)
    return w - rate * m / (np.sqrt(v) + h.epsilon)


def adamw(w, g, s, rate, t, h):
    return adam(w - rate * h.weight_decay * w, g, s, rate, t, h)


REFERENCES = (sgd, momentum, rmsprop, adagrad, adadelta, adam, adamw)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_rule_follows_its_definition(reference, scale, rng, small_blocks):
    rule = make_update_rule(reference.__name__)
    w = rng.standard_normal(P)
    expected, state = w.copy(), {}
    for t in range(1, 8):
        dw, rate = rng.standard_normal(P), 1 / t
        before = dw.copy()
        expected = reference(expected, scale * dw, state, rule.learning_rate * rate, t, rule)
        rule.step(w, dw, scale=scale, multiplier=rate)
        np.testing.assert_array_equal(dw, before)
        np.testing.assert_allclose(w, expected, rtol=1e-12, atol=1e-14)
    for name, array in state.items():
        np.testing.assert_allclose(rule.state()[name], array, rtol=1e-12, atol=1e-30)


def torch_rules(torch):
    return {
        "sgd": (torch.optim.SGD, {"lr": 1e-2}),
        "momentum": (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9}),
        "rmsprop": (torch.optim.RMSprop, {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8}),
        "adagrad": (torch.optim.Adagrad, {"lr": 1e-2, "eps": 1e-8}),
        "adadelta": (torch.optim.Adadelta, {"lr": 1.0, "rho": 0.95, "eps": 1e-6}),
        "adam": (torch.optim.Adam, {"lr": 1e-3}),
        "adamw": (torch.optim.AdamW, {"lr": 1e-3, "weight_decay": 1e-2}),
    }


@pytest.mark.parametrize("name", UPDATE_RULES)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-10), ("float32", 2e-5)])
def test_rule_agrees_with_pytorch(name, dtype, rtol, rng):
    torch = pytest.importorskip("torch")
    optimiser, arguments = torch_rules(torch)[name]
    w = rng.standard_normal(P).astype(dtype)
    theirs = torch.nn.Parameter(torch.from_numpy(w.copy()))
    optimiser = optimiser([theirs], **arguments)
    rule = make_update_rule(name)
    for _ in range(20):
        dw = rng.standard_normal(P).astype(dtype)
        rule.step(w, dw)
        theirs.grad = torch.from_numpy(dw)
        optimiser.step()
    assert w.dtype == dtype
    np.testing.assert_allclose(w, theirs.detach().numpy(), rtol=rtol, atol=rtol / 100)


@pytest.mark.parametrize("name", UPDATE_RULES)
def test_rule_finds_a_minimum(name, rng):
    rule = make_update_rule(name, {"learning_rate": {"adadelta": 10.0, "adagrad": 0.5}.get(name, 0.05)})
    target = rng.standard_normal(20)
    w = target + rng.standard_normal(20)
    start = np.abs(w - target).sum()
    for _ in range(300):
        rule.step(w, w - target)
    assert np.abs(w - target).sum() < 0.1 * start


@pytest.mark.parametrize("name", UPDATE_RULES)
def test_steps_after_the_first_allocate_only_blocks(name, rng):
    size = 500_000
    w, dw = np.zeros(size, np.float32), rng.standard_normal(size, dtype=np.float32)
    rule = make_update_rule(name)
    rule.step(w, dw)
    tracemalloc.start()
    rule.step(w, dw, scale=0.5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * optim._BLOCK_BYTES < w.nbytes


@pytest.mark.parametrize("name", UPDATE_RULES)
def test_state_continues_bit_for_bit(name, rng):
    gradients = rng.standard_normal((6, P)).astype(np.float32)
    one = np.ones(P, np.float32)
    rule = make_update_rule(name)
    for dw in gradients[:3]:
        rule.step(one, dw)
    other = one.copy()
    resumed = make_update_rule(name)
    resumed.load_state({key: np.copy(value) for key, value in rule.state().items()}, other)
    for dw in gradients[3:]:
        rule.step(one, dw)
        resumed.step(other, dw)
    np.testing.assert_array_equal(one, other)
    assert resumed.steps == 6


def test_state_before_the_first_step():
    rule = make_update_rule("adam")
    assert rule.state() == {"steps": 0}
    rule.load_state({"steps": 0}, np.zeros(3))
    rule.step(np.zeros(3), np.ones(3))
    assert set(rule.state()) == {"steps", "m", "v"}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"steps": 1}, r"state has steps, expected steps, m, v"),
        ({"steps": 1, "velocity": np.zeros(3)}, r"state has steps, velocity, expected steps, m, v"),
        (
            {"steps": 1, "m": np.zeros(3), "v": np.zeros(4)},
            r"v is float64 of shape \(4,\), expected",
        ),
        ({"steps": 1, "m": np.zeros(3, "f"), "v": np.zeros(3)}, r"m is float32 .* expected float64 of shape"),
    ],
)
def test_state_of_another_rule_is_refused(state, message):
    with pytest.raises(ValueError, match=message):
        make_update_rule("adam").load_state(state, np.zeros(3))


def test_decayed_averages_become_zero_not_subnormal():
    """A subnormal number times 0.9 is rounded to itself in the end, and never becomes zero."""
    rule = make_update_rule("momentum")
    w = np.zeros(4, np.float32)
    rule.step(w, np.array([1e-34, 1e-36, 0, -1], np.float32))
    for _ in range(200):
        rule.step(w, np.array([0, 0, 0, -1], np.float32))
    np.testing.assert_array_equal(rule.state()["velocity"][:3], 0)
    assert rule.state()["velocity"][3] == pytest.approx(0.1)


def test_flush_leaves_other_numbers():
    x = np.array([1e-39, -1e-39, 2e-38, -2e-38, 0, 1], np.float32)
    expected = np.array([0, 0, 2e-38, -2e-38, 0, 1], np.float32)
    optim.flush_subnormals(x)
    np.testing.assert_array_equal(x, expected)


def test_tiny_gradients_of_adam_count(rng):
    """A parameter whose gradients are all tiny moves as in float64: no state becomes zero too early."""
    dw = 10.0 ** rng.uniform(-32, -10, 500) * rng.choice([-1, 1], 500)
    results = []
    for dtype in (np.float32, np.float64):
        rule, w = make_update_rule("adam", {"learning_rate": 0.1}), np.zeros(500, dtype)
        for _ in range(200):
            rule.step(w, dw.astype(dtype))
        results.append(w.astype(np.float64))
    np.testing.assert_allclose(*results, rtol=1e-4)


def test_config_names_every_hyperparameter():
    config = {"learning_rate": 1, "beta1": 0.5, "beta2": 0.75, "epsilon": 1e-3}
    rule = make_update_rule("adam", config)
    assert rule.config() == config
    assert all(type(value) is float for value in rule.config().values())
    assert make_update_rule("adam", rule.config()) == rule


@pytest.mark.parametrize(
    ("name", "config", "error", "message"),
    [
        ("adamax", None, ValueError, "update_rule is 'adamax', expected one of sgd, momentum, .*adamw"),
        ("sgd", [1], TypeError, r"optim_config is \[1\], expected a mapping of hyperparameters"),
        ("sgd", {"lr": 1}, ValueError, "unknown key 'lr'; sgd has learning_rate"),
        ("adam", {"momentum": 0.9}, ValueError, "unknown key 'momentum'; adam has learning_rate, beta1"),
        ("sgd", {"learning_rate": 0}, ValueError, "learning_rate is 0, expected a positive number"),
        ("sgd", {"learning_rate": float("nan")}, ValueError, "learning_rate is nan"),
        ("sgd", {"learning_rate": "1e-3"}, ValueError, "learning_rate is '1e-3', expected a positive number"),
        ("sgd", {"learning_rate": True}, ValueError, "learning_rate is True"),
        ("momentum", {"momentum": 1}, ValueError, r"momentum is 1, expected a probability in \[0, 1\)"),
        ("rmsprop", {"decay_rate": -0.1}, ValueError, "decay_rate is -0.1"),
        (
            "adamw",
            {"weight_decay": -1},
            ValueError,
            "weight_decay is -1, expected a finite number of at least 0",
        ),
    ],
)
def test_bad_configurations(name, config, error, message):
    with pytest.raises(error, match=message):
        make_update_rule(name, config)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["rmsprop", "adagrad", "adadelta", "adam", "adamw"])
def test_a_tiny_epsilon_divides_nothing_by_zero(name, dtype):
    for epsilon in (1e-39, 1e-300, 5e-324):
        w, rule = np.ones(4, dtype), make_update_rule(name, {"epsilon": epsilon})
        for dw in (0, 1, 0):
            rule.step(w, np.full(4, dw, dtype))
        assert np.isfinite(w).all()


def test_adadelta_of_huge_gradients():
    w, rule = np.ones(4, np.float32), make_update_rule("adadelta")
    rule.step(w, np.full(4, 1e18, np.float32))
    np.testing.assert_allclose(w, 1 - 1e-3 / np.sqrt(0.05), rtol=1e-5)


def test_every_rule_is_a_primitive():
    for name, rule in UPDATE_RULES.items():
        assert issubclass(rule, UpdateRule)
        assert callable(getattr(optim, name))
        assert runs_on_device(name)


def test_a_rule_with_an_update_of_its_own_is_not_for_the_device(monkeypatch):
    class Renamed(Adam):
        pass

    class Signed(Adam):
        def update(self, w, dw, m, v, *, learning_rate, scale):
            w -= learning_rate * np.sign(dw)

    members = dict.fromkeys(["config", "learning_rate", "load_state", "slots", "state", "step", "steps"])
    rules = {"renamed": Renamed, "signed": Signed, "another": type("Another", (), members)}
    monkeypatch.setattr(UPDATE_RULES, "_classes", rules)
    assert [runs_on_device(name) for name in rules] == [True, False, False]


@pytest.mark.parametrize("name", UPDATE_RULES)
def test_a_rule_is_for_parameters_of_one_shape(name):
    rule, w = make_update_rule(name), np.ones(4)
    cases = [(np.ones((2, 2)), np.ones((2, 2)), r"w has shape \(2, 2\), expected \(P,\)")]
    cases += [(w, dw, "dw is .*, expected float64 of shape") for dw in (np.ones(1), np.ones(4, np.float32))]
    for parameters, gradient, message in cases:
        with pytest.raises(ValueError, match=rf"{type(rule).__name__}\.step: {message}"):
            rule.step(parameters, gradient)
    assert rule.steps == 0
    np.testing.assert_array_equal(w, 1)
    rule.step(w, np.ones(4))
    if rule.slots:
        with pytest.raises(
            ValueError, match=r"w is float64 of shape \(5000,\), but the state .* is .*\(4,\)"
        ):
            rule.step(np.ones(5000), np.ones(5000))
        with pytest.raises(ValueError, match=r"w is float32 .*; make a rule for each array of parameters"):
            rule.step(np.ones(4, np.float32), np.ones(4, np.float32))
    assert rule.steps == 1
