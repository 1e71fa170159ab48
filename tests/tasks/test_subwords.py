"""A translation run on pieces of words: trained, resumed, evaluated and used without its data."""

import shutil

import h5py
import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data import Subwords
from rnnlab.recipes.recipe import RecipeError, load_recipe
from rnnlab.recipes.tables import TranslationEvaluationTable
from rnnlab.training import CheckpointError, load_checkpoint

from .letters import RECIPE

pytest.importorskip("sentencepiece")
pytestmark = pytest.mark.usefixtures("no_pictures")

WORDS = {
    "dog": "Hund",
    "dogs": "Hunde",
    "cat": "Katze",
    "cats": "Katzen",
    "house": "Haus",
    "houses": "Häuser",
}


def write(folder, splits):
    rng = np.random.default_rng(3)
    for split, count in splits.items():
        pairs = [rng.choice(list(WORDS), rng.integers(2, 4)) for _ in range(count)]
        for ending, sentences in (
            ("src", [f"the {' and '.join(words)}." for words in pairs]),
            ("trg", [f"{' und '.join(WORDS[word] for word in words)}." for words in pairs]),
        ):
            (folder / f"{split}.{ending}").write_text("\n".join(sentences) + "\n")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    write(folder, {"train": 200, "val": 20})
    path = folder / "words.toml"
    tables = RECIPE.format(directory=folder).replace("max_length = 8", "max_length = 40")
    path.write_text(
        tables.replace('"spaces"', '"sentencepiece"\nvocabulary_size = 40') + 'each_epoch = ["BLEU"]\n'
    )
    return path


@pytest.fixture(scope="module")
def run(file, tmp_path_factory):
    pytest.importorskip("sacrebleu")
    path = tmp_path_factory.mktemp("runs") / "run"
    fast = ["num_epochs=3", "batch_size=8", "optim_config.learning_rate=3e-2"]
    recipe = load_recipe(file, [*(f"training.{option}" for option in fast), "model.hidden_dim=32"])
    runs.train(recipe, path, progress=False)
    return path


def test_the_checkpoint_has_the_models_as_bytes(run, file):
    data = runs.open_data(load_recipe(file).data)
    with h5py.File(run / "best.h5") as file:
        saved = [file[f"preprocessing/{name}"] for name in ("source_subwords", "subwords")]
        assert all(dataset.dtype == np.uint8 for dataset in saved)
        assert tuple(Subwords(dataset[()].tobytes()) for dataset in saved) == data.subwords


def test_new_sentences_are_split_and_put_together_without_the_data(run, monkeypatch, capsys):
    monkeypatch.delattr(runs, "open_data")
    assert cli.main(["translate", str(run), "the dogs and cats.", "the house and 日本."]) == 0
    printed = capsys.readouterr()
    first, *others = printed.out.splitlines()
    assert len(others) == 1
    assert "▁" not in printed.out
    assert set(first.replace(".", " .").split()) <= {*WORDS.values(), "und", "."}
    assert " und " in first
    assert "sentence 2: read as <UNK>: 日本" in printed.err


def test_bleu_is_that_of_13a_on_texts(run, file):
    from sacrebleu.metrics import BLEU

    opened = runs.load_run(run)
    evaluated = runs.evaluate(opened)
    references = (file.parent / "val.trg").read_text().splitlines()
    report = evaluated.report()["sentences"]
    assert [entry["references"] for entry in report] == [[line] for line in references]
    assert [entry["source"] for entry in report] == (file.parent / "val.src").read_text().splitlines()
    found = [entry["translation"] for entry in report]
    expected = BLEU(smooth_method="none").corpus_score(found, [references])
    assert evaluated.scores.corpus["BLEU"] == pytest.approx(expected.score)
    assert "tok:13a" in evaluated.scores.signature
    assert "perplexity: of a piece of a word, so not comparable with that of words" in evaluated.notes()
    history = load_checkpoint(run / "best.h5").history
    assert expected.score > 20  # it learns to translate some of the words
    assert history[-1]["BLEU"] > 20


@pytest.mark.slow
def test_a_resumed_run_ends_where_an_unbroken_one_does(file, tmp_path):
    short = load_recipe(file, ["training.num_epochs=2", "evaluation.each_epoch=[]"])
    runs.train(short, tmp_path / "whole", progress=False)
    runs.train(runs.with_epochs(short, 1), tmp_path / "broken", progress=False)
    runs.resume(tmp_path / "broken", num_epochs=2, progress=False)
    one, other = (load_checkpoint(tmp_path / name / "last.h5") for name in ("whole", "broken"))
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)


def test_other_training_sentences_are_reported(run, file):
    train = file.parent / "train.trg"
    kept = train.read_text()
    train.write_text(kept.replace("Katze", "Mieze"))
    try:
        with pytest.raises(CheckpointError, match="vocabulary"):
            runs.load_run(run)
    finally:
        train.write_text(kept)


def test_an_ensemble_reads_the_same_pieces(run, tmp_path, capsys):
    shutil.copytree(run, tmp_path / "other")
    assert cli.main(["translate", str(run), str(tmp_path / "other"), "the dog and cat."]) == 0
    assert "▁" not in capsys.readouterr().out


def test_keystrokes_are_of_words(run, file):
    with pytest.raises(
        RecipeError, match=r"evaluation.metrics has 'CS-k', expected BLEU alone with data.tokenizer"
    ):
        load_recipe(file, ['evaluation.metrics=["CS-k"]'])
    with pytest.raises(ValueError, match="evaluation.metrics has 'CS-k'"):
        runs.evaluate(runs.load_run(run), evaluation=TranslationEvaluationTable("val", metrics=["CS-k"]))


def test_a_recipe_names_the_number_of_pieces(file):
    with pytest.raises(RecipeError, match=r"data.vocabulary_size is missing, expected an integer"):
        load_recipe(file, ["data.vocabulary_size=none"])


def test_reports_have_sentences(run, tmp_path):
    pytest.importorskip("jinja2")
    assert cli.main(["report", str(run), "--out", str(tmp_path / "report.html")]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Hund und Katze" in page or "Hunde und" in page  # of a reference
