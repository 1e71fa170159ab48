from __future__ import annotations

import json

import numpy as np
import pytest

from rnnlab.training import Solver
from rnnlab.training.options import CHANGEABLE, Options, with_changes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update_rule": "adamax"}, "update_rule is 'adamax', expected one of sgd, momentum"),
        ({"optim_config": {"lr": 1}}, "optim_config: unknown key 'lr'; adam has learning_rate, beta1"),
        ({"schedule": {"name": "cosin"}}, "schedule: name is 'cosin'"),
        (
            {"schedule": 3},
            "Solver: schedule is 3, expected a mapping such as .*, a function of iteration and",
        ),
        ({"schedule": "cosine"}, "Solver: schedule is 'cosine', expected a mapping such as"),
        ({"schedule": {"nam": "step"}}, "schedule has no name, but 'nam'; expected one of constant"),
        (
            {"weight_decay": -1},
            "weight_decay is -1, expected a finite number of at least 0 or a mapping",
        ),
        ({"weight_decay": {"W": "1"}}, r"weight_decay\['W'\] is '1', expected a finite number of at least 0"),
        ({"weight_decay": 0.1, "update_rule": "adamw"}, "the update rule has optim_config.weight_decay 0.01"),
        ({"learning_rate_factors": 0.1}, "learning_rate_factors is 0.1, expected a mapping"),
        (
            {"learning_rate_factors": {"W": 0}},
            r"learning_rate_factors\['W'\] is 0, expected a positive number; trains freezes",
        ),
        (
            {"learning_rate_factors": {"W": 2, "w*": 1}},
            r"learning_rate_factors has 'w\*', which matches none of W, b",
        ),
        ({"weight_decay": {"w*": 1e-4}}, r"weight_decay has 'w\*', which matches none of W, b"),
        ({"num_epochs": 0}, "Solver: num_epochs is 0, expected an integer of at least 1"),
        ({"num_epochs": len}, "Solver: num_epochs is <built-in function len>, expected an integer"),
        ({"clip_norm": abs}, "Solver: clip_norm is <built-in function abs>, expected a positive number"),
        ({"graphs": print}, "Solver: graphs is <built-in function print>, expected True or False"),
        ({"batch_size": -1}, "Solver: batch_size is -1, expected an integer of at least 1"),
        ({"batch_size": 2.5}, "Solver: batch_size is 2.5"),
        ({"print_every": 0}, "Solver: print_every is 0"),
        ({"patience": 0}, "Solver: patience is 0"),
        ({"checkpoint_every": 0}, "Solver: checkpoint_every is 0"),
        ({"clip_norm": 0}, "Solver: clip_norm is 0, expected a positive number"),
        ({"clip_value": float("inf")}, "Solver: clip_value is inf"),
        ({"seed": -1}, "Solver: seed is -1, expected an integer of at least 0"),
        ({"seed": None}, "Solver: seed is None"),
        ({"prefetch": -1}, "Solver: prefetch is -1, expected an integer of at least 0"),
        ({"prefetch": None}, "Solver: prefetch is None"),
        ({"verbose": "no"}, "Solver: verbose is 'no', expected True or False"),
        ({"trains": [3]}, r"Solver: trains is \[3\], expected a list of strings"),
    ],
)
def test_bad_arguments(model, data, options, message):
    with pytest.raises(ValueError, match=message):
        Solver(model, data, **options)


def test_config_that_json_cannot_hold(model, data, tmp_path):
    with pytest.raises(TypeError, match="config cannot be represented in JSON: .*PosixPath"):
        Solver(model, data, config={"path": tmp_path})


def test_options_are_completed_and_plain(model, data):
    solver = Solver(
        model,
        data,
        optim_config={"beta1": np.float32(0.5)},
        schedule={"name": "step", "every": 2},
        num_epochs=np.int64(3),
        trains=("W",),
        verbose=np.False_,
    )
    options = solver.options.to_dict()
    assert json.loads(json.dumps(options)) == options
    assert options["optim_config"] == {"learning_rate": 1e-3, "beta1": 0.5, "beta2": 0.999, "epsilon": 1e-8}
    assert options["schedule"] == {"name": "step", "factor": 0.5, "every": 2, "unit": "epochs"}
    assert (options["num_epochs"], options["trains"], options["verbose"]) == (3, ["W"], False)
    assert options["monitor_mode"] == "min"
    assert not {"model", "data", "device", "evaluate", "run_dir", "config", "self"} & set(options)
    assert Options.of(Solver, options)[0] == solver.options


def test_changes_of_a_run():
    options = {"num_epochs": 3, "seed": 1}
    assert with_changes(options, {"num_epochs": 5}) == {"num_epochs": 5, "seed": 1}
    assert options["num_epochs"] == 3
    with pytest.raises(
        ValueError, match="resume: seed cannot change within a run, only num_epochs, patience"
    ):
        with_changes(options, {"seed": 2})
    assert "seed" not in CHANGEABLE
    saved = {"optim_config": {"learning_rate": 0.1, "beta1": 0.5}}
    assert with_changes(saved, {}, 0.2) == {"optim_config": {"learning_rate": 0.2, "beta1": 0.5}}
    assert saved["optim_config"]["learning_rate"] == 0.1


def test_the_docstring_of_resume_lists_what_can_change():
    text = " ".join(Solver.resume.__doc__.split())
    assert text.partition("New values of ")[2].partition(". ")[0] == ", ".join(CHANGEABLE)
