"""Runs with models that were not trained, of several tasks, and scores that are made up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnnlab.data import ParallelData, RunningText, TextData, write_shapes
from rnnlab.metrics import CaptionScores
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.reporting.results import Results
from rnnlab.runs import Run, new_model, open_data
from rnnlab.tasks import captioning
from rnnlab.tasks.search import decode

from ...tasks.letters import reversing


@pytest.fixture(scope="session")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "scenes"
    write_shapes(folder, {"train": 20, "val": 12, "test": 2})
    return folder


@pytest.fixture(scope="session")
def captioned(scenes):
    """A function that makes a run that captions the scenes."""

    def make(name="one", *, attention="additive", seed=0, max_length=4):
        recipe = recipe_from_dict(
            {
                "data": {
                    "kind": "shapes",
                    "directory": str(scenes),
                    "features": "local" if attention else "pca",
                },
                "model": {"hidden_dim": 8, "wordvec_dim": 8, "attention": attention},
                "training": {"seed": seed},
                "decoding": {"max_length": max_length, "min_length": 2},
            }
        )
        data = open_data(recipe.data)
        return Results(Run(Path(name), recipe, data, new_model(recipe, data)), "val", None)

    return make


@pytest.fixture(scope="session")
def scored():
    """A function that adds captions with made-up scores: image k of n has CIDEr (7 k) mod n."""

    def add(results, count=12):
        run = results.run
        split = run.data.split("val")
        found = decode(run.model, split.model_inputs, run.recipe.decoding, first=count)
        names, references = split.names[:count], split.references[:count]
        cider = [float(7 * k % count) for k in range(count)]
        scores = CaptionScores({"CIDEr": 0.5}, {"CIDEr": cider}, [])
        sentences = captioning.written(found, run.data)
        evaluation = captioning.CaptioningEvaluation(
            "val", names, found, sentences, references, 2.0, scores, "simple"
        )
        return replace(results, evaluation=evaluation)

    return add


@pytest.fixture(scope="session")
def translated():
    """A function that makes a run that translates letters."""

    def make(name="one", *, attention="additive", seed=0):
        rng = np.random.default_rng(seed)
        data = ParallelData({"train": reversing(rng, 40), "val": reversing(rng, 9)})
        recipe = recipe_from_dict(
            {
                "data": {"kind": "parallel", "directory": "nowhere"},
                "model": {"hidden_dim": 8, "wordvec_dim": 8, "attention": attention},
                "decoding": {"max_length": 5},
            }
        )
        return Results(Run(Path(name), recipe, data, new_model(recipe, data)), "val", None)

    return make


@pytest.fixture(scope="session")
def writing():
    """A function that makes a run that writes letters."""

    def make(name="one", *, kind="text", **decoding):
        lines = {"train": [list("a<b"), list("b")]}
        data = (TextData if kind == "text" else RunningText)(lines, tokenizer="characters")
        recipe = recipe_from_dict(
            {
                "data": {"kind": kind, "train": "nowhere"},
                "model": {"hidden_dim": 8, "wordvec_dim": 8},
                "decoding": {"method": "sample", "max_length": 6} | decoding,
            }
        )
        return Results(
            Run(Path(name), recipe, data, new_model(recipe, data), inputs=data.inputs), "val", None
        )

    return make
