"""Decoupled weight decay, by patterns of names, against PyTorch and against one step by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.optim import UPDATE_RULES, register_update_rule
from rnnlab.training.parameter_groups import ParameterGroups
from rnnlab.training.solver import Solver
from rnnlab.training.update_rule import UpdateRule

NAMES = Parameters({"W_embed": (2, 3), "Wx": (3, 1), "b": (2,), "Wh": (2, 1), "W_vocab": (2, 2)})
RULES = [rule for rule in UPDATE_RULES if rule != "adamw"]


def parts(weight_decay, trains=None):
    decays = ParameterGroups(NAMES, trains, weight_decay=weight_decay).decays
    return [(part.start, part.stop, value) for part, value in decays]


@pytest.mark.parametrize(
    ("weight_decay", "expected"),
    [
        (None, []),
        (0, []),
        (0.1, [(0, 9, 0.1), (11, 17, 0.1)]),
        ({"b": 0.1}, [(9, 11, 0.1)]),
        ({"*": 0.1}, [(0, 17, 0.1)]),
        ({"W_embed": 0, "W*": 0.1}, [(6, 9, 0.1), (11, 17, 0.1)]),
        ({"W_*": 0.2, "W*": 0.1}, [(0, 6, 0.2), (6, 9, 0.1), (11, 13, 0.1), (13, 17, 0.2)]),
    ],
)
def test_patterns(weight_decay, expected):
    assert parts(weight_decay) == expected


def test_frozen_parameters_do_not_decay():
    assert parts(0.1, ["!W_embed", "!Wh"]) == [(6, 9, 0.1), (13, 17, 0.1)]


def trained(model, data, **options):
    options = {"num_epochs": 2, "batch_size": 10, "optim_config": {"learning_rate": 0.05}, **options}
    solver = Solver(model, data, restore_best=False, verbose=False, **options)
    solver.train()
    return solver


@pytest.mark.parametrize("rule", RULES)
def test_the_decay_comes_before_each_update(make_model, data, rule):
    """One step: without decay from the decayed parameters, with the gradient of those before."""
    model, other = make_model(dropout=0), make_model(dropout=0)
    batch = {"num_epochs": 1, "batch_size": 50, "update_rule": rule}
    schedule = {"name": "warmup", "over": 2}
    trained(model, data, weight_decay={"W": 0.3}, schedule=schedule, **batch)
    start = make_model().params.copy()
    trained(other, data, schedule=schedule, **batch)
    np.testing.assert_allclose(
        model.params["W"], other.params["W"] - 0.05 / 2 * 0.3 * start["W"], rtol=1e-12, atol=1e-15
    )
    np.testing.assert_array_equal(model.params["b"], other.params["b"])


def torch_training(torch, optimiser, model, data):
    """The parameters of PyTorch after the same batches."""
    W, b = (torch.nn.Parameter(torch.from_numpy(model.params[name].copy())) for name in ("W", "b"))
    optimiser = optimiser([{"params": [W], "weight_decay": 0.3}, {"params": [b], "weight_decay": 0.0}])
    order = Solver(model, data, num_epochs=2, batch_size=10, verbose=False)._state.order
    for _ in range(2):
        for indices in order.batches():
            x, y = map(torch.from_numpy, data.batch("train", indices))
            loss = 0.5 * ((x @ W + b - y) ** 2).sum() / len(x)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        order.end_epoch()
    return W.detach().numpy(), b.detach().numpy()


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_pytorch(make_model, data, rule):
    """Adam is AdamW; without momentum, SGD is that with the gradient of the penalty."""
    torch = pytest.importorskip("torch")
    theirs = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}[rule]
    expected = torch_training(torch, lambda groups: theirs(groups, lr=0.05), make_model(dropout=0), data)
    model = make_model(dropout=0)
    trained(model, data, update_rule=rule, weight_decay=0.3)
    np.testing.assert_allclose(model.params["W"], expected[0], rtol=1e-9)
    np.testing.assert_allclose(model.params["b"], expected[1], rtol=1e-9, atol=1e-12)


def test_adam_with_the_decay_of_all_is_adamw(make_model, data):
    one, other = make_model(), make_model()
    trained(one, data, weight_decay={"*": 0.1}, clip_norm=0.5)
    rates = {"learning_rate": 0.05, "weight_decay": 0.1}
    trained(other, data, update_rule="adamw", optim_config=rates, clip_norm=0.5)
    np.testing.assert_allclose(one.params.flat, other.params.flat, rtol=1e-12)


@pytest.mark.usefixtures("no_pictures")
def test_a_run_with_decay_resumes(make_model, make_data, data, tmp_path):
    reference = trained(make_model(), data, weight_decay={"W": 0.3})
    trained(make_model(), data, weight_decay={"W": 0.3}, num_epochs=1, run_dir=tmp_path)
    solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=2)
    solver.train()
    np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)


def test_a_rule_from_outside(make_model, data):
    """A rule without a decay of its own takes that of the solver."""

    @dataclass(kw_only=True)
    class Sign(UpdateRule):
        def update(self, w, dw, *, learning_rate, scale):
            w -= learning_rate * np.sign(dw)

    one, other = make_model(dropout=0), make_model(dropout=0)
    start, batch = one.params.copy(), {"num_epochs": 1, "batch_size": 50}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UPDATE_RULES, "_classes", dict(UPDATE_RULES._classes))
        register_update_rule("sign", Sign)
        trained(one, data, update_rule="sign", weight_decay=0.3, **batch)
        trained(other, data, update_rule="sign", **batch)
    np.testing.assert_allclose(one.params["W"], other.params["W"] - 0.05 * 0.3 * start["W"], rtol=1e-12)
