"""Shapes, a recipe and a trained run, which the tests of the commands share and do not change."""

import pytest

from rnnlab import cli
from rnnlab.data import write_shapes


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
    out = tmp_path_factory.mktemp("runs") / "tiny"
    assert cli.main(["train", str(recipe), "--out", str(out), "--no-progress"]) == 0
    return out


@pytest.fixture(scope="session")
def second_run(recipe, run):
    """A run of the same recipe with other initial parameters, beside the first."""
    out = run.with_name("second")
    command = ["train", str(recipe), "--out", str(out), "--no-progress", "--set", "training.seed=1"]
    assert cli.main(command) == 0
    return out


@pytest.fixture(scope="session")
def attending_run(recipe, run):
    """A run on the grids of the same images."""
    out = run.with_name("attending")
    changes = ["data.features=local", "model.attention=additive"]
    options = [option for change in changes for option in ("--set", change)]
    assert cli.main(["train", str(recipe), "--out", str(out), "--no-progress", *options]) == 0
    return out
