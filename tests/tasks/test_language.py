"""Language models from recipes: data, perplexity, sentences and ensembles."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data.text_inputs import TextInputs
from rnnlab.ensembles import load_ensemble
from rnnlab.models import LanguageModel
from rnnlab.recipes import LanguageRecipe, load_recipe
from rnnlab.tasks import language, task_of

from .. import quick_runs
from .letter_lines import LETTERS, RECIPE, write_lines


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    write_lines(folder)
    path = folder / "lines.toml"
    path.write_text(RECIPE.format(directory=folder))
    return path


@pytest.fixture(scope="module")
def second(file, run):
    return quick_runs.train(file, run.with_name("second"), "training.seed=1")


def test_the_command_trains_writes_and_scores(file, tmp_path, capsys):
    assert cli.main(["train", str(file), "--out", str(tmp_path / "run"), "--no-progress"]) == 0
    written = capsys.readouterr().out
    sentences = written.partition("Sentences:\n\n")[2].partition("\n\n")[0].splitlines()
    assert len(sentences) == 8
    assert all(set(line.split()) <= set(LETTERS) for line in sentences)
    assert re.search(r"Scores of the val split:\n\nsentences +20\ntokens +\d+\nperplexity +\d", written)
    assert "note: the best epoch was chosen on val" in written


@pytest.mark.slow
def test_the_command_shows_scores_of_an_n_best_list(file, tmp_path, capsys):
    changes = ["decoding.method=beam", "decoding.n_best=2", "training.num_epochs=1"]
    options = [word for change in changes for word in ("--set", change)]
    assert cli.main(["train", str(file), "--out", str(tmp_path / "run"), "--no-progress", *options]) == 0
    shown = capsys.readouterr().out.partition("Sentences:\n\n")[2].partition("\n\n")[0].splitlines()
    scores = [float(line.split()[0]) for line in shown]
    assert len(scores) == 2
    assert 0 > scores[0] >= scores[1]


def test_a_run_is_opened_with_and_without_its_data(run):
    opened = runs.load_run(run)
    assert isinstance(opened.recipe, LanguageRecipe)
    assert isinstance(opened.model, LanguageModel)
    assert isinstance(opened.inputs, TextInputs)
    assert opened.data.vocabulary == opened.inputs.vocabulary
    alone = runs.load_run(run, with_data=False)
    assert (alone.data, alone.inputs) == (None, opened.inputs)


def test_perplexity_is_that_of_the_model(run):
    opened = runs.load_run(run)
    found = runs.evaluate(opened)
    nats, tokens = opened.model.nll(*opened.data.batch("val", np.arange(20)))
    assert found.perplexity == pytest.approx(np.exp(nats / tokens))
    assert (found.split, found.sentences, found.tokens) == ("val", 20, tokens)
    assert found.corpus() == {"perplexity": found.perplexity}
    assert found.rows()[2] == ("perplexity", f"{found.perplexity:.3f}")
    assert found.statistics() == {}
    assert found.examples() == (20, tokens)
    assert json.loads(json.dumps(found.report()))["corpus"] == found.corpus()
    five = runs.evaluate(opened, evaluation=dataclasses.replace(opened.recipe.evaluation, max_sentences=5))
    assert five.sentences == 5
    with pytest.raises(KeyError, match="'test'"):
        runs.evaluate(opened, "test")


def test_a_split_must_exist_before_training(file, tmp_path):
    with pytest.raises(KeyError, match=r"evaluation.split is 'test', and .* has the splits train, val"):
        runs.train(load_recipe(file, ["evaluation.split=test"]), tmp_path / "run")


def test_there_is_no_search_to_score_and_no_discrepancy(run):
    opened = runs.load_run(run)
    with pytest.raises(ValueError, match="the scores of a model that writes sentences need no search"):
        runs.evaluate(opened, decoding=opened.recipe.decoding)
    with pytest.raises(ValueError, match="a model that writes sentences, expected one that captions"):
        runs.discrepancy(opened)
    assert task_of(opened.recipe).epoch_scores(opened.recipe, opened.data) is None


def test_sentences_of_each_method(run):
    opened = runs.load_run(run, with_data=False)
    decoding = opened.recipe.decoding

    def write(decoding, **options):
        return language.write(opened.model, opened.inputs, "b c", decoding, **options)

    drawn = write(decoding, count=6, rng=0)
    assert len(drawn) == 6
    assert len({each.tokens for each in drawn}) > 1
    assert drawn == write(decoding, count=6, rng=0)
    assert drawn != write(decoding, count=6, rng=1)
    beam = write(decoding.changed(method="beam", beam_size=4, n_best=3))
    assert len(beam) == 3
    (greedy,) = write(decoding.changed(method="greedy"), count=6)
    assert opened.inputs.text(greedy.tokens)[0] == "d"
    assert not any({0, 1, 3} & set(each.tokens) for each in [*drawn, *beam])  # <NULL>, <START>, <UNK>


def test_an_ensemble(run, second):
    together = load_ensemble([run, second])
    singles = [runs.evaluate(runs.load_run(each)).perplexity for each in (run, second)]
    assert runs.evaluate(together).perplexity < max(singles)
    sentences = together.data.batch("val", np.arange(5))
    twice = load_ensemble([run, second], average="log_probabilities")
    assert twice.model.nll(*sentences)[1] == together.model.nll(*sentences)[1]
    found = language.write(together.model, together.inputs, "a", together.recipe.decoding, count=2)
    assert len(found) == 2


def test_an_ensemble_of_different_text(file, run, tmp_path):
    write_lines(tmp_path, end="")
    changes = [f"data.{split}={tmp_path}/{split}.txt" for split in ("train", "val")]
    changes += ["data.tokenizer=characters", "training.num_epochs=1"]
    other = quick_runs.train(file, tmp_path / "run", *changes)
    notes = runs.evaluate(runs.load_run(other)).notes()
    assert "perplexity: of a character, so not comparable with that of words" in notes
    with pytest.raises(ValueError, match="tokenizer: found 'characters', expected 'spaces'"):
        load_ensemble([run, other])
    lines = (tmp_path / "val.txt").read_text().splitlines()
    (tmp_path / "val.txt").write_text("\n".join(" ".join(line) for line in lines[1:]))
    changes = [f"data.train={file.parent}/train.txt", f"data.val={tmp_path}/val.txt", "training.num_epochs=1"]
    another = quick_runs.train(file, tmp_path / "another", *changes)
    with pytest.raises(ValueError, match="found another split val, .* read the same sentences"):
        load_ensemble([run, another])


# ---------------------------------------------------------------- running text


@pytest.fixture(scope="module")
def running(file):
    """The recipe of the same files as running text."""
    recipe = RECIPE.format(directory=file.parent).replace(
        'kind = "text"', 'kind = "running_text"\nwindow = 9'
    )
    path = file.with_name("running.toml")
    path.write_text(recipe)
    return path


def test_running_text_is_trained_written_and_scored(running, tmp_path, capsys):
    assert cli.main(["train", str(running), "--out", str(tmp_path / "run"), "--no-progress"]) == 0
    written = capsys.readouterr().out
    assert re.search(r"Scores of the val split:\n\nlines +20\ntokens +\d+\nperplexity +\d", written)
    texts = written.partition("Text:\n\n")[2].partition("\n\nLosses")[0].split(f"\n{'-' * 40}\n")
    assert len(texts) == 8
    opened = runs.load_run(tmp_path / "run")
    found = language.write(opened.model, opened.inputs, "a b\nc", opened.recipe.decoding, count=3)
    assert [len(each.tokens) for each in found] == [12] * 3
    assert not any(each.finished for each in found)
    assert cli.main(["write", str(tmp_path / "run"), "c d", "--beam", "2"]) == 0
    assert capsys.readouterr().out.startswith("c d e")
    scores = runs.evaluate(opened)
    nats, tokens = opened.model.nll(opened.data.streams("val", 16))
    assert scores.perplexity == pytest.approx(np.exp(nats / tokens), rel=1e-4)
    assert (scores.sentences, scores.tokens, scores.report()["lines"]) == (20, tokens, 20)
    assert cli.main(["evaluate", str(tmp_path / "run"), "--max-sentences", "5"]) == 2
    message = "max_sentences is 5, expected none: val is a running text, which is scored whole"
    assert message in capsys.readouterr().err
    assert cli.main(["compare", str(tmp_path / "run"), "--max-sentences", "5"]) == 0
    assert f"no scores: {message}" in capsys.readouterr().out


def test_an_ensemble_of_running_text(running, run, tmp_path):
    alone = quick_runs.train(running, tmp_path / "alone", "training.num_epochs=1")
    second = quick_runs.train(running, tmp_path / "second", "training.num_epochs=1", "training.seed=1")
    copy = shutil.copytree(alone, tmp_path / "copy")
    twice = [runs.evaluate(load_ensemble([alone, copy])), runs.evaluate(runs.load_run(alone))]
    assert twice[0].perplexity == pytest.approx(twice[1].perplexity, rel=1e-4)
    assert twice[0].tokens == twice[1].tokens
    text = (running.parent / "val.txt").read_text()
    (tmp_path / "val.txt").write_text(text + "a b\n")
    changes = [f"data.val={tmp_path}/val.txt", "training.num_epochs=1", "training.seed=2"]
    another = quick_runs.train(running, tmp_path / "another", *changes)
    with pytest.raises(ValueError, match="found another split val, .* read the same sentences"):
        load_ensemble([alone, another])
    singles = [runs.evaluate(runs.load_run(each)).perplexity for each in (alone, second)]
    assert runs.evaluate(load_ensemble([alone, second])).perplexity < max(singles)
    with pytest.raises(ValueError, match="running text: found True, expected False|vocabulary: found"):
        load_ensemble([run, alone])


def test_it_resumes_to_the_bit(file, run, tmp_path):
    part = quick_runs.train(file, tmp_path / "part", "training.num_epochs=2")
    resumed = runs.resume(part, num_epochs=4, progress=False)
    np.testing.assert_array_equal(resumed.model.params.flat, runs.load_run(run).model.params.flat)
