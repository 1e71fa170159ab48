import pytest

from rnnlab.data import write_shapes
from rnnlab.recipes.recipe import recipe_from_dict

TABLES = {
    "model": {
        "cell_type": "lstm",
        "wordvec_dim": 64,
        "hidden_dim": 96,
        "state_activation": "tanh",
        "project_cell": True,
    },
    "training": {"num_epochs": 6, "optim_config": {"learning_rate": 6e-3}, "clip_norm": 5.0},
    "decoding": {"method": "greedy", "max_length": 15},
    "evaluation": {"split": "test", "metrics": ["BLEU"]},
}


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    return of_shapes(tmp_path_factory, {"train": 60, "val": 20, "test": 10})


@pytest.fixture(scope="session")
def learnable(tmp_path_factory):
    """The same with images enough for captions that fit them."""
    return of_shapes(tmp_path_factory, {"train": 700, "val": 60, "test": 150})


def of_shapes(tmp_path_factory, sizes):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, sizes)
    return recipe_from_dict({"data": {"kind": "shapes", "directory": str(folder)}, **TABLES})
