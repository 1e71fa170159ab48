"""Factors of the learning rates of single parameters, against PyTorch's parameter groups."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.optim import UPDATE_RULES
from rnnlab.training.parameter_groups import ParameterGroups
from rnnlab.training.solver import Solver

NAMES = Parameters({"W_embed": (2, 3), "Wx": (3, 1), "b": (2,), "Wh": (2, 1), "W_vocab": (2, 2)})


@pytest.mark.parametrize(
    ("factors", "trains", "expected"),
    [
        (None, None, [(0, 17, 1.0)]),
        ({"*": 0.5}, None, [(0, 17, 0.5)]),
        ({"W_embed": 0.1, "W*": 2.0}, None, [(0, 6, 0.1), (6, 9, 2.0), (9, 11, 1.0), (11, 17, 2.0)]),
        ({"W_*": 0.1}, ["!Wx", "!b"], [(0, 6, 0.1), (11, 13, 1.0), (13, 17, 0.1)]),
        (None, ["W_*"], [(0, 6, 1.0), (13, 17, 1.0)]),
    ],
)
def test_parts(factors, trains, expected):
    groups = ParameterGroups(NAMES, trains, factors)
    assert [(part.start, part.stop, factor) for part, factor in groups.rates] == expected


def trained(model, data, **options):
    defaults = {"num_epochs": 2, "batch_size": 10, "optim_config": {"learning_rate": 0.05}}
    solver = Solver(model, data, restore_best=False, verbose=False, **defaults | options)
    solver.train()
    return solver


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_one_factor_of_all_is_another_learning_rate(make_model, data, rule):
    """With weight decay, by the rule or by the solver."""
    options = {"update_rule": rule, "schedule": {"name": "warmup", "over": 5}}
    if rule != "adamw":
        options["weight_decay"] = 0.3
    one, other = make_model(), make_model()
    trained(one, data, learning_rate_factors={"*": 0.25}, optim_config={"learning_rate": 0.08}, **options)
    trained(other, data, optim_config={"learning_rate": 0.02}, **options)
    np.testing.assert_allclose(one.params.flat, other.params.flat, rtol=1e-12)
    assert not np.array_equal(one.params.flat, make_model().params.flat)


@pytest.mark.parametrize("rule", ["adam", "sgd", "adamw"])
def test_pytorch(make_model, data, rule):
    torch = pytest.importorskip("torch")
    theirs = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[rule]
    model = make_model(dropout=0)
    W, b = (torch.nn.Parameter(torch.from_numpy(model.params[name].copy())) for name in ("W", "b"))
    groups = [{"params": [W], "lr": 0.05 * 0.2}, {"params": [b], "lr": 0.05 * 3}]
    optimiser = theirs(groups, weight_decay=0.3) if rule == "adamw" else theirs(groups)
    order = Solver(model, data, num_epochs=2, batch_size=10, verbose=False)._state.order
    for _ in range(2):
        for indices in order.batches():
            x, y = map(torch.from_numpy, data.batch("train", indices))
            optimiser.zero_grad()
            (0.5 * ((x @ W + b - y) ** 2).sum() / len(x)).backward()
            optimiser.step()
        order.end_epoch()
    config = {"learning_rate": 0.05} | ({"weight_decay": 0.3} if rule == "adamw" else {})
    trained(model, data, update_rule=rule, optim_config=config, learning_rate_factors={"W": 0.2, "b": 3})
    np.testing.assert_allclose(model.params["W"], W.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(model.params["b"], b.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_a_factor_scales_the_weight_decay_of_the_solver(make_model, data):
    """One step: the difference to a step without decay is rate x factor x decay x w."""
    one, other, start = (make_model(dropout=0) for _ in range(3))
    batch = {"num_epochs": 1, "batch_size": 50, "learning_rate_factors": {"W": 0.5}}
    trained(one, data, weight_decay={"W": 0.3, "b": 0.2}, **batch)
    trained(other, data, **batch)
    for name, decay in (("W", 0.05 * 0.5 * 0.3), ("b", 0.05 * 0.2)):
        expected = other.params[name] - decay * start.params[name]
        np.testing.assert_allclose(one.params[name], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("no_pictures")
def test_a_run_with_factors_resumes(make_model, make_data, data, tmp_path):
    factors = {"learning_rate_factors": {"W": 0.3}}
    reference = trained(make_model(), data, **factors)
    trained(make_model(), data, num_epochs=1, run_dir=tmp_path, **factors)
    solver = Solver.resume(tmp_path, make_model(), make_data(), num_epochs=2)
    solver.train()
    np.testing.assert_array_equal(solver.model.params.flat, reference.model.params.flat)
