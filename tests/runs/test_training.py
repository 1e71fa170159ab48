"""The built-in data from end to end: a model learns to say what is in a picture, and needs it for that."""

from dataclasses import replace

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.extras import Library
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.recipes.tables import CaptioningEvaluationTable
from rnnlab.training.callbacks import JSONLines


def test_a_name_is_no_recipe(tmp_path):
    with pytest.raises(
        TypeError, match="train: recipe is 'shapes', expected a recipe, as load_recipe returns"
    ):
        runs.train("shapes", tmp_path / "run")


@pytest.mark.slow
def test_captions_need_the_picture(learnable, tmp_path, monkeypatch):
    pytest.importorskip("pycocoevalcap")
    seeing = runs.evaluate(runs.train(learnable, tmp_path / "seeing", progress=False))

    opened = runs.open_data

    def open_blind(table):
        data = opened(table)
        data.splits = {
            name: replace(split, features=np.zeros_like(split.features))
            for name, split in data.splits.items()
        }
        return data

    monkeypatch.setattr("rnnlab.runs.training.open_data", open_blind)
    blind = runs.evaluate(runs.train(learnable, tmp_path / "blind", progress=False))
    assert seeing.perplexity < 0.75 * blind.perplexity
    assert seeing.scores.corpus["BLEU-4"] > blind.scores.corpus["BLEU-4"] + 0.15
    assert len(set(seeing.sentences)) > 50  # not the same caption for every image
    assert len(set(blind.sentences)) == 1


@pytest.mark.slow
def test_a_score_that_chooses_no_epoch_is_noted(recipe, tmp_path, capsys):
    pytest.importorskip("pycocoevalcap")
    tables = recipe.to_dict()
    tables["training"] |= {"num_epochs": 2, "monitor": "BLEU-4", "optim_config": {"learning_rate": 1e-12}}
    tables["evaluation"] |= {"each_epoch": ["BLEU"], "max_images": 5}
    runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    assert "in all 2 epochs, so the first one counts as the best" in capsys.readouterr().out


@pytest.mark.slow
def test_scores_of_each_epoch_steer_training(recipe, tmp_path):
    pytest.importorskip("pycocoevalcap")
    tables = recipe.to_dict()
    tables["training"] |= {"num_epochs": 2, "monitor": "BLEU-4"}
    tables["evaluation"] |= {"each_epoch": ["BLEU"]}
    runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    header = (tmp_path / "run" / "history.csv").read_text().splitlines()[0]
    assert "BLEU-4" in header.split(",")
    run = runs.load_run(tmp_path / "run")
    assert run.recipe.training.monitor == "BLEU-4"
    assert runs.evaluate(
        run, "val", evaluation=CaptioningEvaluationTable(metrics=["BLEU"], max_images=5)
    ).names == (
        "val_00000.png",
        "val_00001.png",
        "val_00002.png",
        "val_00003.png",
        "val_00004.png",
    )


def test_a_recipe_that_wants_scores_fails_before_training_without_the_extra(recipe, tmp_path, monkeypatch):
    def missing(_):
        raise ImportError('pip install "rnnlab[eval]"')

    tables = recipe.to_dict()
    tables["training"] |= {"monitor": "BLEU-4"}
    tables["evaluation"] |= {"each_epoch": ["BLEU"]}
    monkeypatch.setattr(Library, "require", missing)
    with pytest.raises(ImportError, match="rnnlab\\[eval\\]"):
        runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_folder_of_runs_is_no_run_with_stages(recipe, tmp_path):
    """A run may have the name of a stage."""
    run = tmp_path / "experiments" / "stage1"
    runs.train(replace(recipe, training=recipe.training.with_changes(num_epochs=1)), run, progress=False)
    with pytest.raises(ValueError, match=f"{run} is a separate run, not a stage of one in .*: resume {run}$"):
        runs.resume(run.parent, num_epochs=2)


def test_graphs_are_of_all_stages(tmp_path, simulated):
    """An option of a later stage that rules them out is an error before the data are read."""
    tables = {"data": {"kind": "shapes", "directory": str(tmp_path / "none")}}
    options = {"device": "gpu", "graphs": True, "progress": False}
    sampling = {"scheduled_sampling": {"name": "constant", "value": 0.1}}
    recipe = recipe_from_dict(tables | {"stage": [{}, sampling]})
    with pytest.raises(ValueError, match=r"^stage\.2: graphs is true, but scheduled_sampling is given"):
        runs.train(recipe, tmp_path / "run", **options)
    recipe = recipe_from_dict(tables | {"training": sampling})
    with pytest.raises(ValueError, match="^graphs is true, but scheduled_sampling is given"):
        runs.train(recipe, tmp_path / "run", **options)
    assert not list(tmp_path.iterdir())


def test_a_log_of_several_stages_has_no_path(tmp_path):
    """Each stage counts its iterations from 1."""
    tables = {"data": {"kind": "shapes", "directory": str(tmp_path / "none")}, "stage": [{}, {}]}
    with pytest.raises(ValueError, match=r"^callbacks has a JSONLines with path '.*all\.jsonl', ex"):
        runs.train(recipe_from_dict(tables), tmp_path / "run", callbacks=[JSONLines(tmp_path / "all.jsonl")])
    assert not list(tmp_path.iterdir())
