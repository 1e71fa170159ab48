"""Shapes, a recipe and a trained run, which the tests of the commands share and do not change."""

import pytest

from rnnlab.data import write_shapes

from .. import quick_runs


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 60, "val": 10, "test": 12})
    return folder


@pytest.fixture(scope="session")
def recipe(shapes, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "tiny.toml"
    path.write_text(
        f"""
        [data]
        kind = "shapes"
        directory = "{shapes}"
        [model]
        hidden_dim = 24
        wordvec_dim = 16
        output_dropout = 0.1
        [training]
        num_epochs = 2
        optim_config.learning_rate = 1e-2
        [decoding]
        max_length = 12
        [evaluation]
        split = "test"
        metrics = ["BLEU"]
        """
    )
    return path


@pytest.fixture(scope="session")
def run(recipe, tmp_path_factory):
    return quick_runs.train(recipe, tmp_path_factory.mktemp("runs") / "tiny")


@pytest.fixture(scope="session")
def second_run(recipe, run):
    """A run of the same recipe with other initial parameters, beside the first."""
    return quick_runs.train(recipe, run.with_name("second"), "training.seed=1")


@pytest.fixture(scope="session")
def attending_run(recipe, run):
    """A run on the grids of the same images."""
    changes = ["data.features=local", "model.attention=additive"]
    return quick_runs.train(recipe, run.with_name("attending"), *changes)
