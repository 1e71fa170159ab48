"""A reviewer from the recipe to its captions: likelihood, discriminative supervision, and then the reward."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data import write_shapes
from rnnlab.gradcheck import projected_check
from rnnlab.recipes.shipped import text
from rnnlab.training import load_checkpoint, load_model

from .staged import Killed, acting_at, contents, kill, train

pytest.importorskip("pycocoevalcap")
pytestmark = pytest.mark.usefixtures("no_pictures")

STAGES = [
    {"num_epochs": 1, "optim_config": {"learning_rate": 1e-2}},
    {"num_epochs": 2, "losses": {"discriminative": 0.3}},
    {"num_epochs": 2, "monitor": "CIDEr", "self_critical": {"samples": 3, "max_length": 8}},
]
ITERATIONS = 3  # of an epoch
SIZE = {"discriminative_words": 6}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 24, "val": 5, "test": 6})
    return folder


@pytest.fixture(scope="module")
def no_pictures():
    """Drawing is most of the time that runs as short as these take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rnnlab.training.run_directory.RunDirectory.plot", lambda *args, **options: None)
        yield


def tables_of(shapes, *, stages=STAGES, seed=0, **model):
    """The recipe with fewer units and images, in stages."""
    tables = tomllib.loads(text("shapes_rnm"))
    del tables["data"]["max_train"], tables["training"]["num_epochs"], tables["training"]["optim_config"]
    tables["data"] |= {"directory": str(shapes), "captions_per_image": 2}
    tables["model"] |= {"attention_dim": 5, "wordvec_dim": 6, "hidden_dim": 8} | model
    tables["training"] |= {"batch_size": 8, "checkpoint_every": 2, "seed": seed}
    tables["stage"] = stages
    tables["evaluation"] = {"metrics": ["BLEU", "CIDEr"], "each_epoch": ["CIDEr"]}
    return tables


@pytest.fixture(scope="module")
def run(shapes, tmp_path_factory, no_pictures):
    path = tmp_path_factory.mktemp("runs") / "first"
    return train(tables_of(shapes, **SIZE), path)


@pytest.fixture(scope="module")
def second(shapes, run):
    """With other parameters, which one stage gives."""
    tables = tables_of(shapes, stages=STAGES[:1], **SIZE, seed=1)
    return train(tables, run.directory.with_name("second"))


@pytest.mark.slow
def test_each_stage_trains_what_its_losses_reach(run):
    fresh, path = runs.new_model(run.recipe, run.data), run.directory
    first, middle, last = (load_checkpoint(path / f"{stage}last.h5") for stage in ("stage1/", "stage2/", ""))
    assert [len(each.losses) for each in (first, middle, last)] == [
        ITERATIONS,
        2 * ITERATIONS,
        2 * ITERATIONS,
    ]
    words = "discriminative_W"
    assert first.parameters[words].tobytes() == fresh.params[words].tobytes()
    assert middle.parameters[words].tobytes() != first.parameters[words].tobytes()
    before = load_checkpoint(path / "stage2/best.h5").parameters
    assert last.parameters[words].tobytes() == before[words].tobytes()
    reviewer = [name for name in fresh.params if name.startswith("reviewer")]
    assert reviewer
    for name in reviewer:
        states = [each.parameters[name].tobytes() for each in (first, middle, last)]
        assert len({fresh.params[name].tobytes(), *states}) == 4, name
    columns = {"discriminative", "reward"}
    assert [columns & set(each.history[-1]) for each in (first, middle, last)] == [
        set(),
        {"discriminative"},
        {"reward"},
    ]
    written = (path / "stage2/history.csv").read_text().splitlines()
    assert [float(row.split(",")[written[0].split(",").index("discriminative")]) for row in written[1:]] == [
        row["discriminative"] for row in middle.history
    ]


@pytest.mark.slow
@pytest.mark.parametrize("iteration", [3, 6, 9, 12, 15])
def test_a_killed_run_resumes_to_the_same_bits(run, shapes, tmp_path, iteration):
    """In each stage, with the reviewer's dropout, captions that are drawn, and sampled ones."""
    path = tmp_path / "run"
    with acting_at("_iterate", iteration, kill), pytest.raises(Killed):
        train(tables_of(shapes, **SIZE), path)
    resumed = runs.resume(path, progress=False)
    for name in ("stage1/last.h5", "stage2/last.h5", "stage2/best.h5", "last.h5", "best.h5"):
        assert contents(path / name) == contents(run.directory / name), name
    assert resumed.model.params.flat.tobytes() == run.model.params.flat.tobytes()


@pytest.mark.parametrize("stage", ["", "stage1", "stage2"])
def test_a_stage_s_model_is_loaded_as_it_was_saved(run, stage):
    directory = run.directory / stage
    model = load_model(directory)
    np.testing.assert_array_equal(model.params.flat, load_checkpoint(directory / "best.h5").parameters.flat)
    assert model.discriminative == (0.3 if stage == "stage2" else 0)
    test = run.data.split("test")
    reviewed = model.review(test.features)
    assert [thoughts.shape for thoughts in reviewed.thoughts] == [(6, 2, 8)] * 2
    weights = model.align(test.features[test.image_idxs], test.captions)
    alive = weights.sum(axis=2) > 0
    np.testing.assert_allclose(weights.sum(axis=2)[alive], 1, rtol=1e-5)


@pytest.mark.slow
def test_the_commands_take_the_run(run, tmp_path, capsys):
    directory, picture, numbers = str(run.directory), tmp_path / "attention.png", tmp_path / "scores.json"
    assert cli.main(["evaluate", directory, "--json", str(numbers)]) == 0
    scores = json.loads(numbers.read_text())
    assert 1 < scores["corpus"]["perplexity"] < np.inf
    assert len(scores["images"]) == 6
    options = ["--max-images", "2", "--show-attention", str(picture)]
    capsys.readouterr()
    assert cli.main(["caption", directory, "test", *options]) == 0
    printed = capsys.readouterr().out.splitlines()
    captions = [f"{image['name']}: {image['caption']}" for image in scores["images"][:2]]
    assert [line.split(maxsplit=1)[-1] for line in printed] == [
        line.split(maxsplit=1)[-1] for line in captions
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert cli.main(["discrepancy", directory, "--split", "val"]) == 0
    assert capsys.readouterr().out.split()[:2] == ["sentences", "5"]


def test_two_runs_are_an_ensemble(run, second, tmp_path, capsys):
    directories, numbers = [str(run.directory), str(second.directory)], tmp_path / "scores.json"
    assert cli.main(["evaluate", *directories, "--json", str(numbers)]) == 0
    found = json.loads(numbers.read_text())["corpus"]["perplexity"]
    single = [runs.evaluate(each).perplexity for each in (run, second)]
    assert min(single) * 0.5 < found < max(single)
    picture = tmp_path / "attention.png"
    capsys.readouterr()
    options = ["--max-images", "1", "--show-attention", str(picture)]
    assert cli.main(["caption", *directories, "test", *options]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_gradient_of_the_trained_model(run):
    trained = load_model(run.directory / "stage2")
    model = type(trained).from_config(trained.config() | {"dtype": "float64"})
    model.params.flat[...] = trained.params.flat
    val = run.data.split("val")
    batch = val.features[:2], val.captions[:4].reshape(2, 2, -1)

    def loss():
        return model.loss(*batch, rng=np.random.default_rng(3))

    assert projected_check(lambda: loss()[0], model.params.flat, loss()[1].flat) < 1e-7


# ------------------------------------------------------------------ word scores that a stage needs


def test_a_model_without_word_scores_is_refused_before_training(shapes, tmp_path):
    message = r"stage\.2\.losses\.discriminative is 0\.3, .* set model\.discriminative_words"
    with pytest.raises(ValueError, match=message):
        train(tables_of(shapes), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match=r"stage\.2\.losses: .*needs the thought vectors of a reviewer: set"):
        train(tables_of(shapes, reviewer={}), tmp_path / "run")
    with pytest.raises(ValueError, match=r"stage\.3\.losses\.discriminative is 0\.1, expected 0 in self-c"):
        train(tables_of(shapes, stages=[{}, {}, STAGES[2] | {"losses": {"discriminative": 0.1}}]), tmp_path)


def test_word_scores_are_new_to_a_warm_start(shapes, tmp_path, capsys):
    train(tables_of(shapes, stages=STAGES[:1]), tmp_path / "without")
    tables = tables_of(shapes, stages=STAGES[1:2], **SIZE)
    tables["training"] |= {"warm_start": str(tmp_path / "without")}
    capsys.readouterr()
    run = train(tables, tmp_path / "with")
    assert "parameters loaded; new discriminative_W." in capsys.readouterr().out
    assert runs.load_run(tmp_path / "with").model.params.flat.tobytes() == run.model.params.flat.tobytes()


def test_a_weight_of_the_model_is_off_in_a_self_critical_stage(shapes, tmp_path):
    """The saved model still has the word scores."""
    stages = [{"num_epochs": 1}, STAGES[2] | {"num_epochs": 1}]
    run = train(tables_of(shapes, stages=stages, discriminative=0.2), tmp_path / "run")
    found = runs.load_run(tmp_path / "run").model
    assert (found.discriminative, run.model.discriminative) == (0, 0)
    assert found.params.flat.tobytes() == run.model.params.flat.tobytes()
    assert load_model(tmp_path / "run/stage1").discriminative == 0.2
