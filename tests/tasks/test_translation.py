"""Sentence pairs from files to scores: a model learns to turn sentences round, and all commands know it."""

import csv
import json
import os
from dataclasses import replace

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data import ParallelData
from rnnlab.decoding import read_lexicon
from rnnlab.extras import Library
from rnnlab.metrics import TRANSLATION_SCORERS
from rnnlab.models import Seq2Seq
from rnnlab.recipes.recipe import load_recipe, recipe_from_dict
from rnnlab.recipes.tables import DecodingTable, TranslationEvaluationTable
from rnnlab.tasks import translation
from rnnlab.tasks.translation import best_words, translate
from rnnlab.training import Solver, load_checkpoint

from .letters import RECIPE, reversing, write_letters

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    write_letters(folder)
    return folder


@pytest.fixture(scope="module")
def file(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("recipes") / "letters.toml"
    path.write_text(RECIPE.format(directory=folder))
    return path


@pytest.mark.slow
def test_a_model_learns_to_turn_sentences_round(rng):
    data = ParallelData({"train": reversing(rng, 900), "val": reversing(rng, 100)})
    model = Seq2Seq(
        data.source_vocabulary.word_to_idx, data.vocabulary.word_to_idx, wordvec_dim=16, hidden_dim=32
    )
    Solver(
        model,
        data,
        num_epochs=14,
        batch_size=32,
        optim_config={"learning_rate": 1e-2},
        schedule={"name": "exponential", "decay": 0.85},
        clip_norm=1.0,
        verbose=False,
    ).train()
    val = data.split("val")
    found = translate(model, val.source, DecodingTable(max_length=10), return_alignments=True)
    right = [words == target for words, target in zip(best_words(found), val.target, strict=True)]
    assert np.mean(right) > 0.9
    # the first word that is written comes from the last that was read
    looks_back = [
        best.hypothesis.alignment[0, : len(source)].argmax() >= len(source) - 2
        for (best, *_), source in zip(found, val.source, strict=True)
    ]
    assert np.mean(looks_back) > 0.9


def test_a_run_has_the_files_and_scores_of_every_run(run):
    assert {"best.h5", "last.h5", "config.json", "history.csv", "loss.png"} <= {
        path.name for path in run.iterdir()
    }
    rows = list(csv.DictReader((run / "history.csv").read_text().splitlines()))
    assert float(rows[1]["val_perplexity"]) < float(rows[0]["val_perplexity"])


@pytest.mark.slow
def test_a_resumed_run_ends_where_an_unbroken_one_does(file, run, tmp_path):
    broken = tmp_path / "broken"
    assert cli.main(["train", str(file), "--out", str(broken), "--epochs", "1", "--no-progress"]) == 0
    assert cli.main(["train", "--resume", str(broken), "--epochs", "2", "--no-progress"]) == 0
    one, other = (load_checkpoint(path / "last.h5") for path in (run, broken))
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)


def test_scores_by_hand(run):
    pytest.importorskip("sacrebleu")
    opened = runs.load_run(run)
    evaluated = runs.evaluate(opened, "test_small")
    assert len(evaluated.sources) == len(evaluated.translations) == 9
    nats, tokens = opened.model.nll(*opened.data.batch("test_small", np.arange(9)))
    assert evaluated.perplexity == pytest.approx(np.exp(nats / tokens), rel=1e-5)
    expected = translation.corpus_bleu(best_words(evaluated.translations), evaluated.references)
    assert evaluated.scores == expected
    assert list(evaluated.statistics()) == ["BLEU"]
    options = replace(opened.recipe.decoding, max_length=1)
    few = runs.evaluate(
        opened, decoding=options, evaluation=TranslationEvaluationTable("val", max_sentences=4)
    )
    assert few.sources == opened.data.split("val").source[:4]
    assert [len(words) for words in best_words(few.translations)] == [1] * 4
    assert max(map(len, best_words(evaluated.translations))) > 1


def test_keystrokes_by_hand(run):
    """Of the teacher-forced distributions, sentence by sentence, without translating anything."""
    opened = runs.load_run(run)
    evaluated = runs.evaluate(opened, evaluation=TranslationEvaluationTable("test_small", metrics=["CS-k"]))
    assert evaluated.translations is evaluated.scores is None
    data, model = opened.data, opened.model
    pairs, words = data.split("test_small"), data.vocabulary.idx_to_word
    for k, target in enumerate(pairs.target):
        source, row = data.batch("test_small", np.array([k]))
        state, saved = model.start(source), 0
        for token, word in zip(row[0], target, strict=False):
            log_probs, state = model.advance(state, np.array([token]))
            first = max(words[4:], key=lambda other: log_probs[0, words.index(other)])
            saved += first == word  # letters: one character, typed or saved
        assert evaluated.keystrokes.sentences["CS-1"][k] == pytest.approx(100 * saved / len(target))
    assert evaluated.corpus().keys() == {"perplexity", "CS-1", "CS-2", "CS-3", "CS-4", "CS-5"}
    assert evaluated.corpus()["CS-5"] > evaluated.corpus()["CS-1"]
    assert list(evaluated.statistics()) == [f"CS-{k}" for k in range(1, 6)]
    for name, statistics in evaluated.statistics().items():
        assert statistics.examples.mean() == pytest.approx(evaluated.corpus()[name])


def test_keystrokes_of_words_that_the_vocabulary_lacks(run):
    opened = runs.load_run(run)
    pairs = [(list("ab"), ["B", "Zebra"]), (list("a"), [])]
    train = opened.data.split("train")
    both = {"train": zip(train.source, train.target, strict=True), "strange": pairs}
    opened.data.splits["strange"] = ParallelData(both).split("strange")
    evaluation = TranslationEvaluationTable("strange", metrics=["CS-k"])
    found = runs.evaluate(opened, evaluation=evaluation).keystrokes
    assert found.characters == 6
    assert found.sentences["CS-5"][1] is None
    assert found.corpus["CS-5"] == found.sentences["CS-5"][0] <= 100 / 6


def test_the_discrepancy_of_pairs(run, capsys):
    opened = runs.load_run(run)
    found = runs.discrepancy(opened, "test_small")
    assert found.teacher_forced.shape == found.free_running.shape == (9, 16)
    source, target = opened.data.batch("test_small", np.arange(9))
    np.testing.assert_allclose(found.teacher_forced, opened.model.last_states(source, target), rtol=1e-6)
    assert 0 < found.pointwise < 2
    few = runs.discrepancy(opened, "test_small", first=4)
    np.testing.assert_allclose(few.free_running, found.free_running[:4], rtol=1e-5)
    assert cli.main(["discrepancy", str(run), "--split", "test_small"]) == 0
    assert f"d_pw            {found.pointwise:.4f}" in capsys.readouterr().out
    with pytest.raises(KeyError, match="not 'dev'"):
        runs.discrepancy(opened, "dev")


def test_reconstruction_in_a_recipe(file, tmp_path):
    """In the decoder, and in both directions of the encoder."""
    keys = ["reconstruction=0.1", "encoder_reconstruction=0.2", "encoder_reconstructor_dim=3"]
    recipe = load_recipe(file, [f"model.{key}" for key in keys] + ["training.num_epochs=1"])
    run = runs.train(recipe, tmp_path / "run", progress=False)
    names = {name for name in run.model.params if "arnet" in name}
    assert len(names) == 15
    again = runs.load_run(tmp_path / "run").model
    assert (again.reconstruction, again.encoder_reconstruction) == (0.1, 0.2)
    assert again.params["encoder_arnet_forward_Wh"].shape == (3, 12)


@pytest.mark.slow
def test_bleu_of_each_epoch_steers_training(file, tmp_path):
    pytest.importorskip("sacrebleu")
    recipe = load_recipe(file, ["training.monitor=BLEU", "evaluation.each_epoch=['BLEU']"])
    run = runs.train(recipe, tmp_path / "run", progress=False)
    rows = list(csv.DictReader((tmp_path / "run" / "history.csv").read_text().splitlines()))
    greedy = recipe.decoding.changed(method="greedy")
    found = runs.evaluate(run, "val", decoding=greedy).corpus()["BLEU"]
    assert max(float(row["BLEU"]) for row in rows) == pytest.approx(found)


def test_a_recipe_that_wants_bleu_fails_before_training_without_the_extra(file, tmp_path, monkeypatch):
    def missing(_):
        raise ImportError('pip install "rnnlab[translation]"')

    monkeypatch.setattr(Library, "require", missing)
    recipe = load_recipe(file, ["evaluation.each_epoch=['BLEU']"])
    with pytest.raises(ImportError, match=r"rnnlab\[translation\]"):
        runs.train(recipe, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_sentences_are_translated_as_one_by_one(run):
    opened = runs.load_run(run, with_data=False)
    assert opened.data is None
    sources = [list("abc"), [], list("hgfedc"), ["unseen", "a"]]
    options = DecodingTable(beam_size=3, n_best=2, max_length=7)
    together = translate(opened.model, sources, options, return_alignments=True)
    for source, found in zip(sources, together, strict=True):
        (alone,) = translate(opened.model, [source], options, return_alignments=True)
        assert [one.words for one in found] == [one.words for one in alone]
        for one in found:
            steps = len(one.words) + one.hypothesis.finished
            assert one.hypothesis.alignment.shape == (steps, len(source) + 1)
    assert translate(opened.model, [], options) == []


def test_a_sample_depends_on_its_source_and_place(run):
    opened = runs.load_run(run, with_data=False)
    sources = [list("hgfedc"), list("abc"), list("ab"), [], list("gfedcba"), list("a")]
    options = DecodingTable(method="sample", max_length=6)
    together = translate(opened.model, sources, options, rng=3)
    assert together[3][0].words == []
    for first in (1, 2, 4, 5):
        found = translate(opened.model, sources[:first], options, rng=3)
        assert [each[0].words for each in found] == [each[0].words for each in together[:first]]


def test_a_lexicon_puts_words_in_the_place_of_unknown_ones(run):
    model = runs.load_run(run, with_data=False).model
    model.params["b_vocab"][model.word_to_idx["<UNK>"]] = 50.0
    options = DecodingTable(method="greedy", max_length=2)
    assert "<UNK>" not in translate(model, [["a"]], options)[0][0].words
    (found,), (empty,) = translate(model, [["a"], []], options, lexicon={"a": "Alpha"})
    assert found.words == ["Alpha", "Alpha"]
    assert empty.words == []
    assert translate(model, [["q"]], options, lexicon={})[0][0].words == ["q", "q"]


@pytest.mark.parametrize("lexicon", [None, {"a": "Alpha"}])
def test_an_empty_sentence_has_the_empty_translation(run, lexicon):
    model = runs.load_run(run, with_data=False).model
    options = DecodingTable(method="beam", n_best=2)
    (nothing,), found, (also_nothing,) = translate(model, [[], ["a"], []], options, lexicon=lexicon)
    assert nothing.words == also_nothing.words == []
    assert nothing.hypothesis.finished
    assert (nothing.hypothesis.alignment is None) == (lexicon is None)
    assert [one.words for one in found] == [
        one.words for one in translate(model, [["a"]], options, lexicon=lexicon)[0]
    ]
    assert [[one.words for one in some] for some in translate(model, [[]], options)] == [[[]]]


def test_inputs_of_a_run_alone(run, folder, monkeypatch):
    """Tokenizer and vocabularies are the checkpoint's: the data need not be there."""
    monkeypatch.setattr("rnnlab.runs.loading.open_data", None)
    opened = runs.load_run(run, with_data=False)
    inputs = opened.inputs
    assert inputs.vocabulary.word_to_idx == opened.model.word_to_idx
    assert inputs.tokenize("a B  q") == ["a", "B", "q"]
    assert inputs.unknown_words(["a", "B", "q", "B"]) == ["B", "q"]


def test_a_lexicon_of_the_models_own_attention(run, folder, tmp_path, capsys, monkeypatch):
    opened = runs.load_run(run)
    pairs = opened.data.split("train")

    def last_is_first(source, target):  # what a model that turns sentences round should look at
        weights = np.zeros((len(source), target.shape[1] - 1, source.shape[1]))
        for n, row in enumerate(source):
            words = np.count_nonzero(row) - 1  # without <END>
            weights[n, np.arange(words), words - 1 - np.arange(words)] = 1
        return weights

    monkeypatch.setattr(opened.model, "align", last_is_first)
    expected = {letter: letter.upper() for words in pairs.source for letter in words}
    assert translation.lexicon(opened.model, opened.data, batch_size=7) == expected

    assert cli.main(["lexicon", str(run), str(tmp_path / "lexicon.tsv")]) == 0
    assert f"{len(expected)} source words" in capsys.readouterr().out
    assert set(read_lexicon(tmp_path / "lexicon.tsv")) == set(expected)
    assert cli.main(["translate", str(run), "a b", "--lexicon", str(tmp_path / "lexicon.tsv")]) == 0


def test_without_attention(folder):
    tables = {
        "data": {"kind": "parallel", "directory": str(folder), "source": "src", "target": "trg"},
        "model": {"attention": "none", "hidden_dim": 4},
    }
    recipe = recipe_from_dict(tables)
    model = runs.new_model(recipe, runs.open_data(recipe.data))
    assert translate(model, [["a"]], recipe.decoding)
    with pytest.raises(ValueError, match="does not attend"):
        translate(model, [["a"]], recipe.decoding, lexicon={})


# ---------------------------------------------------------------- commands


def test_evaluation_prints_a_table_and_writes_json(run, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    path = tmp_path / "scores.json"
    (tmp_path / "lexicon").write_text("a\tA\n")
    options = ["--split", "test_small", "--beam", "3", "--lexicon", str(tmp_path / "lexicon")]
    assert cli.main(["evaluate", str(run), *options, "--json", str(path), "--max-sentences", "5"]) == 0
    printed, report = capsys.readouterr().out, json.loads(path.read_text())
    assert f"{report['corpus']['BLEU']:.2f}" in printed
    assert report["signature"] in printed
    assert len(report["sentences"]) == 5
    assert set(report["sentences"][0]) == {"source", "translation", "references"}
    assert "by_length" not in report


def test_evaluation_by_the_length_of_the_source(run, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    path = tmp_path / "scores.json"
    options = ["--split", "test_small", "--json", str(path)]
    assert cli.main(["evaluate", str(run), *options, "--by-length", "4", "5"]) == 0
    printed, report = capsys.readouterr().out, json.loads(path.read_text())
    lengths = [len(sentence["source"].split()) for sentence in report["sentences"]]
    short, middle, long = report["by_length"]
    assert (short["least"], short["most"], middle["least"], long["most"]) == (0, 3, 4, None)
    assert short["sentences"] == sum(length < 4 for length in lengths)
    assert sum(each["sentences"] for each in report["by_length"]) == len(lengths)
    assert f"{'5 or more':<14}{long['sentences']:>10}" in printed
    assert cli.main(["evaluate", str(run), *options, "--by-length"]) == 0
    assert "10 to 19" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "option"), [(["--beam-size", "4"], "--beam"), (["--method", "greedy"], "--method")]
)
def test_keystrokes_need_no_options_of_translations(words, option, run, capsys):
    assert cli.main(["evaluate", str(run), "--metrics", "CS-k", *words]) == 2
    message = f"{option} is for translations, which --metrics CS-k does not need: add BLEU to the metrics"
    assert message in capsys.readouterr().err


def test_evaluation_of_keystrokes_prints_and_writes_them(run, tmp_path, capsys):
    path = tmp_path / "scores.json"
    options = ["--split", "test_small", "--metrics", "CS-k", "--json", str(path)]
    assert cli.main(["evaluate", str(run), *options]) == 0
    printed, report = capsys.readouterr().out, json.loads(path.read_text())
    assert f"CS-1             {report['corpus']['CS-1']:5.2f}" in printed
    assert "characters of the references" in printed
    assert set(report["sentences"][0]) == {"source", "references", "scores"}
    assert set(report["sentences"][0]["scores"]) == {f"CS-{k}" for k in range(1, 6)}
    assert "signature" not in report


def test_training_ends_with_translations(file, tmp_path, capsys):
    assert cli.main(["train", str(file), "--out", str(tmp_path / "run"), "--epochs", "1"]) == 0
    printed = capsys.readouterr().out
    assert ("translation  " in printed) == TRANSLATION_SCORERS.installed
    assert ("pip install" in printed) != TRANSLATION_SCORERS.installed


def test_data_are_described(file, capsys):
    assert cli.main(["data", "info", str(file)]) == 0
    assert "120" in capsys.readouterr().out


def test_a_warm_start_says_what_it_loaded(file, run, tmp_path, capsys):
    changes = [f"training.warm_start={run}", "model.target_attention=true", "training.num_epochs=1"]
    options = [option for change in changes for option in ("--set", change)]
    assert cli.main(["train", str(file), "--out", str(tmp_path / "warm"), "--no-progress", *options]) == 0
    printed = capsys.readouterr().out
    assert f"Warm start from {run / 'best.h5'}: " in printed
    assert "loaded into the first rows of W_deep_z; new " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["caption", "RUN", "val"], "holds a model that translates: rnnlab translate"),
        (["translate", "RUN", "a", "--file", "x"], "either sentences or --file"),
        (["translate", "RUN", "--file", "x", "a"], "either sentences or --file"),
        (
            ["train", "RECIPE", "--set", "evaluation.split=tset", "--out", "OUT"],
            "evaluation.split is 'tset', and letters",
        ),
        (["translate", "RUN", "--file", "nowhere.txt"], "nowhere.txt"),
        (["translate", "RUN", "a", "--lexicon", "nowhere.txt"], "nowhere.txt"),
        (["evaluate", "RUN", "--metrics", "CIDEr"], "--metrics CIDEr is for captions, but the model of"),
        (["evaluate", "RUN", "--by-length", "9", "3"], "--by-length is 9 3, expected increasing numbers"),
        (["evaluate", "RUN", "--by-length", "--metrics", "CS-k"], "--by-length is for translations, which"),
        (["evaluate", "RUN", "--split", "test"], "has the splits train, val, test_small, not 'test'"),
        (
            ["train", "RECIPE", "--set", "training.warm_start=nowhere.h5", "--out", "OUT"],
            "training.warm_start: nowhere.h5",
        ),
        (["train", "RECIPE", "--set", "training.monitor=BLEU"], "expected one of val_loss, val_perplexity"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message, run, file, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    places = {"RUN": str(run), "RECIPE": str(file), "OUT": str(tmp_path / "out")}
    assert cli.main([places.get(argument, argument) for argument in arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")
def test_a_step_on_real_code():
    recipe = load_recipe("habeas_attention", ["model.hidden_dim=8"])
    data = runs.open_data(recipe.data)
    model = runs.new_model(recipe, data)
    batch = data.batch("train", data.epoch("train", 4, np.random.default_rng(0))[0])
    assert np.isfinite(model.loss(*batch)[0])
