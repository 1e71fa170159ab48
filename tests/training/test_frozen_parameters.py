"""Some parameters train, the others do not change."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.optim import UPDATE_RULES
from rnnlab.training.parameter_groups import ParameterGroups
from rnnlab.training.solver import Solver


def quiet(model, data, **options):
    options = {"num_epochs": 2, "batch_size": 8, "optim_config": {"learning_rate": 0.05}, **options}
    return Solver(model, data, verbose=False, restore_best=False, **options)


NAMES = Parameters({"W_embed": (2, 3), "Wx": (3,), "none": (0,), "Wh": (2,), "b": (2,), "W_vocab": (4,)})


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (None, tuple(NAMES)),
        (["*"], tuple(NAMES)),
        (["Wx", "W?", "none"], ("Wx", "none", "Wh")),
        (["W_*"], ("W_embed", "W_vocab")),
        (["b", "W_vocab", "[b]"], ("b", "W_vocab")),
        (["!W_embed"], ("Wx", "none", "Wh", "b", "W_vocab")),
        (["!Wh", "W*", "!W_*"], ("Wx",)),
    ],
)
def test_patterns_of_names(patterns, names):
    groups = ParameterGroups(NAMES, patterns)
    assert groups.trained == names
    assert groups.frozen == tuple(name for name in NAMES if name not in names)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ([], "trains is empty"),
        (["!w_embed"], "trains has '!w_embed', which matches none of W_embed, Wx"),
        (["W*", "!*"], r"trains is \['W\*', '!\*'\], which leaves none of W_embed"),
        (["W_*", "w_vocab"], "trains has 'w_vocab', which matches none of W_embed, Wx"),
        ("W*", r"trains is 'W\*', expected a list of strings"),
        (3, "trains is 3, expected a list of strings"),
    ],
)
def test_bad_patterns(model, data, patterns, message):
    with pytest.raises(ValueError, match=message):
        ParameterGroups(NAMES, patterns) if isinstance(patterns, list) else quiet(
            model, data, trains=patterns
        )


@pytest.mark.parametrize("rule", UPDATE_RULES)
@pytest.mark.parametrize("frozen", ["W", "b"])
def test_the_frozen_stays_bit_for_bit(make_model, data, rule, frozen):
    model = make_model()
    model.params["b"] = [1e-40, -0.0, 3.0]
    before = model.params.copy()
    (trains,) = set(model.params) - {frozen}
    optim_config = {"learning_rate": 0.05} | ({"weight_decay": 0.5} if rule == "adamw" else {})
    solver = quiet(model, data, update_rule=rule, optim_config=optim_config, trains=[trains])
    solver.train()
    assert model.params[frozen].tobytes() == before[frozen].tobytes()
    assert (model.params[trains] != before[trains]).all()
    for name, array in solver._state.rule.state().items():
        if name != "steps":
            assert not array[model.params.place(frozen)].any()


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_the_rest_trains_as_if_it_were_alone(make_model, data, rule):
    """A model whose only parameter is b, the other a constant."""

    class Alone(make_model):
        def __init__(self):
            super().__init__()
            self.whole, self.params = self.params, Parameters({"b": (3,)}, "float64")

        def loss(self, x, y, *, rng=None, grads=None):
            self.whole["b"] = self.params["b"]
            alone, self.params = self.params, self.whole
            loss, found = super().loss(x, y, rng=rng)
            self.params = alone
            grads["b"] = found["b"]
            return loss, grads

    options = {
        "update_rule": rule,
        "clip_norm": 0.3,
        "clip_value": 0.2,
        "evaluate": lambda _: {"val_loss": 1},
    }
    one, other = make_model(), Alone()
    solvers = [quiet(one, data, trains=["b"], **options), quiet(other, data, **options)]
    for solver in solvers:
        solver.train()
    np.testing.assert_allclose(one.params["b"], other.params["b"], rtol=1e-13)
    assert solvers[0].loss_history == pytest.approx(solvers[1].loss_history, rel=1e-13)
    for first, second in zip(solvers[0].history, solvers[1].history, strict=True):
        assert first["gradient_norm"] == pytest.approx(second["gradient_norm"], rel=1e-13)


def test_training_all_is_training_without_patterns(make_model, data):
    one, other = quiet(make_model(), data), quiet(make_model(), data, trains=["W", "*"])
    one.train()
    other.train()
    assert one.loss_history == other.loss_history
    np.testing.assert_array_equal(one.model.params.flat, other.model.params.flat)


def test_a_frozen_gradient_is_not_looked_at(model, data):
    class Overflowing(type(model)):
        def loss(self, *batch, **options):
            loss, grads = super().loss(*batch, **options)
            grads["W"][0, 0] = np.inf
            return loss, grads

    quiet(Overflowing(), data, trains=["b"]).train()
    with pytest.raises(NonFiniteError, match="the gradient of 'W' has inf"):
        quiet(Overflowing(), data, trains=["W"]).train()
