"""Recipes with pretrained word vectors: training, freezing, resuming, and recipes that do not fit."""

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data import write_shapes
from rnnlab.recipes.recipe import RecipeError, load_recipe, recipe_from_dict
from rnnlab.training import load_checkpoint

from .letters import LETTERS, RECIPE, write_letters

pytestmark = pytest.mark.usefixtures("no_pictures")


def write_vectors(path, words, dim):
    vectors = np.random.default_rng(2).standard_normal((len(words), dim)).astype(np.float32)
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, vectors, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return dict(zip(words, vectors, strict=True))


@pytest.fixture
def letters(tmp_path, monkeypatch):
    """A recipe of translation with files of word vectors in $RNNLAB_DATA, and their contents."""
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    write_letters(tmp_path)
    source = write_vectors(tmp_path / "source.txt", LETTERS, 12)
    target = write_vectors(tmp_path / "target.txt", [*LETTERS[:6].upper(), "Z"], 12)
    path = tmp_path / "letters.toml"
    keys = 'word_vectors = "$RNNLAB_DATA/target.txt"\nsource_word_vectors = "$RNNLAB_DATA/source.txt"\n'
    path.write_text(RECIPE.format(directory=tmp_path).replace("[model]\n", f"[model]\n{keys}"))
    return path, source, target


def train(path, out, *options):
    return cli.main(["train", str(path), "--out", str(out), "--no-progress", *options])


def rows(params, model, name):
    words = model.source_word_to_idx if name == "W_source" else model.word_to_idx
    return {word: params[name][token] for word, token in words.items()}


def test_frozen_word_vectors_stay_as_they_are_and_others_train(letters, tmp_path, capsys):
    path, source, target = letters
    path.write_text(path.read_text() + '[[stage]]\ntrains = ["!W_source"]\nnum_epochs = 1\n')
    assert train(path, tmp_path / "run") == 0
    printed = capsys.readouterr().out
    assert "word vectors: 6 of 8 words from $RNNLAB_DATA/target.txt to W_embed; without a vector" in printed
    assert "word vectors: 8 of 8 words from $RNNLAB_DATA/source.txt to W_source." in printed
    run = runs.load_run(tmp_path / "run", with_data=False)
    fresh = runs.new_model(run.recipe, runs.open_data(run.recipe.data))
    found = rows(run.model.params, run.model, "W_source")
    for word, row in rows(fresh.params, fresh, "W_source").items():
        np.testing.assert_array_equal(found[word], source.get(word, row))
    found = rows(run.model.params, run.model, "W_embed")
    initial = rows(fresh.params, fresh, "W_embed") | {word: target[word] for word in LETTERS[:6].upper()}
    moved = {word: np.abs(found[word] - row).max() for word, row in initial.items()}
    read = [*LETTERS.upper(), "<START>"]
    assert all(0 < moved[word] < 0.5 for word in read)  # of the file's and of random vectors
    assert np.abs(found["A"]).max() > 0.5


@pytest.mark.slow
def test_a_run_resumes_without_the_files(letters, tmp_path):
    path, _, _ = letters
    assert train(path, tmp_path / "whole") == 0
    assert train(path, tmp_path / "run", "--epochs", "1") == 0
    for name in ("source.txt", "target.txt"):
        (tmp_path / name).unlink()
    assert cli.main(["train", "--resume", str(tmp_path / "run"), "--epochs", "2", "--no-progress"]) == 0
    one, other = (load_checkpoint(tmp_path / name / "last.h5") for name in ("run", "whole"))
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)
    assert cli.main(["translate", str(tmp_path / "run"), "a b c"]) == 0


def test_later_stages_start_from_the_first_and_not_from_the_file(letters, tmp_path, capsys):
    path, _, target = letters
    stages = '[[stage]]\nnum_epochs = 1\n[[stage]]\nnum_epochs = 1\ntrains = ["!W_embed"]\n'
    path.write_text(path.read_text() + stages)
    assert train(path, tmp_path / "run") == 0
    assert capsys.readouterr().out.count("word vectors: ") == 2
    first, last = (load_checkpoint(tmp_path / "run" / name) for name in ("stage1/best.h5", "last.h5"))
    np.testing.assert_array_equal(last.parameters["W_embed"], first.parameters["W_embed"])
    token = runs.load_run(tmp_path / "run", with_data=False).model.word_to_idx["A"]
    assert np.abs(first.parameters["W_embed"][token] - target["A"]).max() > 0


def test_captions(tmp_path, capsys):
    write_shapes(tmp_path / "shapes", {"train": 24, "val": 6, "test": 6})
    vectors = write_vectors(tmp_path / "vectors.txt", ["red", "a", "absent"], 8)
    tables = {
        "data": {"kind": "shapes", "directory": str(tmp_path / "shapes")},
        "model": {"wordvec_dim": 8, "hidden_dim": 8, "word_vectors": str(tmp_path / "vectors.txt")},
        "stage": [{"num_epochs": 1, "trains": ["!W_embed"]}],
        "evaluation": {"metrics": []},
    }
    run = runs.train(recipe_from_dict(tables), tmp_path / "run", progress=False)
    assert "word vectors: 2 of " in capsys.readouterr().out
    for word in ("red", "a"):
        np.testing.assert_array_equal(run.model.params["W_embed"][run.model.word_to_idx[word]], vectors[word])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.wordvec_dim=9"], "target.txt:1: found vectors of 12 numbers, expected 9, as wordvec_dim is"),
        (["model.word_vectors=nowhere.txt"], "nowhere.txt"),
        (
            ["training.warm_start=other"],
            "model.word_vectors is given, expected 'none' with training.warm_start",
        ),
    ],
)
def test_errors_come_before_there_is_a_run(letters, tmp_path, capsys, changes, message):
    options = [option for change in changes for option in ("--set", change)]
    assert train(letters[0], tmp_path / "run", *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_models_without_words_have_no_such_key():
    with pytest.raises(RecipeError, match=r"--set: model.word_vectors is unknown"):
        load_recipe("digits_lstm", ["model.word_vectors=glove.txt"])
