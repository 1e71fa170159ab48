"""Ensembles of runs: the scores of one model, the average of several, and runs that do not fit together."""

import dataclasses

import h5py
import numpy as np
import pytest

from rnnlab import runs
from rnnlab.data import write_shapes
from rnnlab.decoding import Ensemble, beam_search
from rnnlab.ensembles import load_ensemble
from rnnlab.models import ClassifierEnsemble
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.recipes.tables import CaptioningEvaluationTable, TranslationEvaluationTable
from rnnlab.tasks.search import decode

from . import quick_runs
from .tasks.letters import write_letters

TRAINING = {"num_epochs": 1, "optim_config": {"learning_rate": 1e-2}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensembles")
    write_shapes(folder / "shapes", {"train": 60, "val": 8, "test": 12})
    write_shapes(folder / "others", {"train": 60, "val": 8, "test": 9})
    (folder / "letters").mkdir()
    write_letters(folder / "letters")
    return folder


def trained(config, path):
    """The directory of a run of a recipe, trained once."""
    return path if path.exists() else quick_runs.train(config, path)


@pytest.fixture(scope="module")
def captioner(folder):
    def train(name, seed=0, data="shapes", table=(), **model):
        tables = {
            "data": {"kind": "shapes", "directory": str(folder / data), **dict(table)},
            "model": {"hidden_dim": 16, "wordvec_dim": 8, **model},
            "training": {**TRAINING, "seed": seed},
            "decoding": {"method": "beam", "beam_size": 2, "max_length": 12},
            "evaluation": {"metrics": ["BLEU"]},
        }
        return trained(recipe_from_dict(tables), folder / name)

    return train


@pytest.fixture(scope="module")
def translator(folder):
    def train(name, seed=0, table=(), **model):
        letters = {"directory": str(folder / "letters"), "source": "src", "target": "trg"}
        tables = {
            "data": {"kind": "parallel", **letters, "tokenizer": "spaces", **dict(table)},
            "model": {"hidden_dim": 12, "wordvec_dim": 8, **model},
            "training": {**TRAINING, "seed": seed},
            "evaluation": {"split": "test_small"},
        }
        return trained(recipe_from_dict(tables), folder / name)

    return train


@pytest.fixture(scope="module")
def classifier(folder):
    pytest.importorskip("sklearn")

    def train(name, seed=0, **table):
        tables = {
            "data": {"kind": "digits", "max_train": 64, **table},
            "model": {"hidden_dim": 8},
            "training": {**TRAINING, "seed": seed},
            "evaluation": {"max_images": 20},
        }
        return trained(recipe_from_dict(tables), folder / name)

    return train


def test_one_run_is_itself(captioner):
    path = captioner("a")
    run, alone = load_ensemble([path]), runs.load_run(path)
    assert run.members == ()
    assert type(run.model) is type(alone.model)
    again = dataclasses.replace(alone, model=Ensemble([alone.model]))
    pytest.importorskip("pycocoevalcap")
    one, other = (runs.evaluate(each) for each in (alone, again))
    assert one.captions == other.captions
    assert one.scores == other.scores
    assert one.perplexity == pytest.approx(other.perplexity, rel=1e-5)


@pytest.mark.slow
def test_probabilities_are_averaged_in_decoding_and_in_perplexity(captioner):
    pytest.importorskip("pycocoevalcap")
    paths = [captioner("a"), captioner("b", seed=1)]
    run = load_ensemble(paths)
    assert run.members == tuple(paths)
    assert run.directory == paths[0]
    result = runs.evaluate(run)
    members = [runs.load_run(path) for path in paths]
    images = members[0].data.split("test")
    models = [member.model for member in members]
    options = {"beam_size": 2, "max_length": 12, "forbid": [0, 1, 3]}
    assert result.captions == beam_search(Ensemble(models), images.features, **options)
    nats, tokens = 0.0, 0
    for caption, image in zip(images.captions, images.image_idxs, strict=True):
        states = [model.start(images.features[image : image + 1]) for model in models]
        for t in range(np.count_nonzero(caption) - 1):
            steps = [m.advance(s, caption[t : t + 1]) for m, s in zip(models, states, strict=True)]
            states = [state for _, state in steps]
            nats -= np.log(np.mean([np.exp(float(each[0, caption[t + 1]])) for each, _ in steps]))
            tokens += 1
    assert result.perplexity == pytest.approx(np.exp(nats / tokens), rel=1e-4)


def test_a_mixture_is_at_least_as_likely_as_its_worst_member(captioner):
    pytest.importorskip("pycocoevalcap")
    paths = [captioner("a"), captioner("b", seed=1)]
    alone = [runs.evaluate(runs.load_run(path)).perplexity for path in paths]
    for average in ("probabilities", "log_probabilities"):
        run = load_ensemble(paths, average=average)
        assert run.model.average == average
        assert runs.evaluate(run).perplexity < max(alone)


@pytest.mark.slow
def test_models_with_different_features_of_the_same_images(captioner):
    """Each reads those of its own data: a vector, a grid, and a grid with a vector beside it."""
    paths = [
        captioner("a"),
        captioner("grid", table={"features": "local"}, attention="additive"),
        captioner("both", table={"features": "local", "global_features": "pca"}, attention="additive"),
    ]
    run = load_ensemble(paths)
    images = run.data.split("test")
    assert len(images.model_inputs) == 4
    members = [runs.load_run(path) for path in paths]
    source = images.features_at(np.array([2, 5]))
    state = run.model.start(source)
    log_probs, state = run.model.advance(state, np.array([1, 1]))
    own = [
        member.model.advance(
            member.model.start(member.data.split("test").features_at(np.array([2, 5]))), np.array([1, 1])
        )[0]
        for member in members
    ]
    np.testing.assert_allclose(log_probs, np.log(np.mean(np.exp(own), axis=0)), rtol=1e-4, atol=1e-5)
    attending = [member.model.attention(part) for member, part in zip(members[1:], state[1:], strict=True)]
    np.testing.assert_allclose(run.model.attention(state), np.mean(attending, axis=0), rtol=1e-6)
    by_name = decode(run.model, run.data.features_of(images.names[:3]), run.recipe.decoding)
    assert by_name == decode(run.model, images.model_inputs, run.recipe.decoding, first=3)
    nats, tokens = run.model.nll(*run.data.batch("test", np.arange(6)))
    assert np.isfinite(nats)
    assert tokens == np.count_nonzero(images.captions[:6, 1:])


def test_equal_tables_share_their_data(captioner, monkeypatch):
    paths = [
        captioner("a"),
        captioner("b", seed=1),
        captioner("grid", table={"features": "local"}, attention="additive"),
    ]
    opened, open_data = [], runs.open_data

    def remember(table):
        opened.append(table)
        return open_data(table)

    monkeypatch.setattr("rnnlab.runs.loading.open_data", remember)
    load_ensemble(paths)
    assert len(opened) == 2


@pytest.mark.slow
def test_features_files_are_scaled_for_each_model(captioner):
    """Two runs whose training features have another mean and standard deviation."""
    paths = [
        captioner("a"),
        captioner("scaled", table={"standardise": True}),
        captioner("scaled2", seed=2, table={"standardise": True}),
    ]
    run = load_ensemble(paths, with_data=False)
    features = np.random.default_rng(0).standard_normal((3, run.model.models[0].input_dim))
    source = run.inputs.standardise(features.astype(np.float32))
    assert source[1] is source[2]
    np.testing.assert_array_equal(source[0], features.astype(np.float32))
    found = run.model.start(source)
    expected = [
        member.model.start(member.inputs.standardise(features.astype(np.float32)))
        for member in map(runs.load_run, paths)
    ]
    np.testing.assert_array_equal(found[1][0][0], expected[1][0][0])
    with pytest.raises(ValueError, match=rf"f\.h5, for {paths[0]}: features: found shape \(3, 2\)"):
        run.inputs.standardise(np.ones((3, 2)), "f.h5")


def test_one_file_of_features_does_not_serve_models_of_two_kinds(captioner):
    paths = [captioner("a"), captioner("grid", table={"features": "local"}, attention="additive")]
    with pytest.raises(
        ValueError, match=f"{paths[1]} reads a grid of vectors of .* and {paths[0]} one vector of"
    ):
        load_ensemble(paths, with_data=False).inputs.standardise(np.ones((3, 2)), "f.h5")


def test_other_images(captioner):
    paths = [captioner("a"), captioner("elsewhere_run", data="others")]
    run = load_ensemble(paths)
    with pytest.raises(
        ValueError, match=f"{paths[1]}: split test: found 9 images, expected the 12 of {paths[0]}"
    ):
        run.data.split("test")
    with pytest.raises(KeyError, match=f"{paths[0]}: .* has no image 'x'"):
        run.data.features_of(["x"])
    with pytest.raises(KeyError, match="not 'dev'"):
        run.data.split("dev")


@pytest.mark.slow
def test_translations(translator):
    pytest.importorskip("sacrebleu")
    paths = [translator("t"), translator("u", seed=1, attention="none", cell_type="lstm")]
    run = load_ensemble(paths)
    evaluation = TranslationEvaluationTable("test_small", metrics=["BLEU", "CS-k"])
    result = runs.evaluate(run, evaluation=evaluation)
    assert result.keystrokes.corpus["CS-5"] >= result.keystrokes.corpus["CS-1"]
    source, target = run.data.batch("test_small", np.arange(9))
    nats, tokens = run.model.nll(source, target)
    assert result.perplexity == pytest.approx(np.exp(nats / tokens), rel=1e-5)
    assert run.model.source_word_to_idx == run.data.source_vocabulary.word_to_idx


@pytest.mark.slow
def test_classes(classifier):
    paths = [classifier("c"), classifier("d", seed=1)]
    run = load_ensemble(paths)
    x, labels = run.data.batch("test", np.arange(20))
    scores = [runs.load_run(path).model.scores(x).astype(float) for path in paths]
    probabilities = np.mean([np.exp(s) / np.exp(s).sum(axis=1, keepdims=True) for s in scores], axis=0)
    result = runs.evaluate(run)
    assert result.predictions.tolist() == probabilities.argmax(axis=1).tolist()
    assert result.loss == pytest.approx(-np.log(probabilities[np.arange(20), labels]).mean(), rel=1e-5)
    assert isinstance(run.model, ClassifierEnsemble)


def test_tasks_that_differ(captioner, translator):
    paths = [captioner("a"), translator("t")]
    with pytest.raises(
        ValueError, match=f"{paths[1]} has a model that translates, and {paths[0]} one that captions"
    ):
        load_ensemble(paths)


def test_vocabularies_that_differ(captioner, translator, tmp_path):
    paths = [translator("t"), translator("cut", table={"max_size": 7})]
    message = (
        f"{paths[1]}: source vocabulary: found 11 words, expected the 12 of the run {paths[0]}; "
        "the first tokens that differ: 11 is none, not '.'"
    )
    with pytest.raises(ValueError, match=message):
        load_ensemble(paths)


def test_orders_of_pixels_that_differ(classifier):
    paths = [classifier("c"), classifier("permuted", permute_seed=1)]
    with pytest.raises(ValueError, match=f"{paths[1]}: order of the pixels: found .* as {paths[0]}"):
        load_ensemble(paths)


def test_pairs_that_differ(translator, folder):
    other = folder / "letters2"
    if not other.exists():
        other.mkdir()
        write_letters(other)
        for ending in ("src", "trg"):
            lines = (other / f"test_small.{ending}").read_text().splitlines()
            (other / f"test_small.{ending}").write_text("\n".join(lines[::-1]) + "\n")
    paths = [translator("t"), translator("elsewhere", table={"directory": str(other)})]
    with pytest.raises(
        ValueError, match=f"{paths[1]}: data: found another split test_small, expected that of {paths[0]}"
    ):
        load_ensemble(paths)


def test_directories_that_are_no_runs_or_given_twice(captioner, folder, tmp_path, monkeypatch):
    path = captioner("a")
    with pytest.raises(FileNotFoundError, match="holds no run"):
        load_ensemble([path, tmp_path])
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=f"a and {path} are the same run, expected each run once"):
        load_ensemble([path, "a"])
    with pytest.raises(ValueError, match="directories is empty"):
        load_ensemble([])
    with pytest.raises(TypeError, match="directories is 'a', expected a list of paths"):
        load_ensemble("a")
    with pytest.raises(
        ValueError, match="average is 'median', expected one of probabilities, log_probabilities"
    ):
        load_ensemble([path], average="median")


def test_the_data_are_compared_with_each_checkpoint(captioner, monkeypatch):
    """The first two runs fit the data. The third does not, although its table is the same."""
    table = {"standardise": True}
    paths = [captioner("scaled", table=table), captioner("scaled2", seed=2, table=table)]
    path = captioner("scaled3", seed=3, table=table)
    data = runs.load_run(paths[0]).data
    monkeypatch.setattr("rnnlab.runs.loading.open_data", lambda _: data)
    load_ensemble([*paths, path])
    with h5py.File(path / "best.h5", "r+") as file:
        found = []
        file.visit(lambda name: found.append(name) if name.endswith("features_mean") else None)
        file[found[0]][0] += 100
    with pytest.raises(ValueError, match=rf"{path}/best\.h5"):
        load_ensemble([*paths, path])


def test_more_images_than_the_split_has(captioner):
    pytest.importorskip("pycocoevalcap")
    run = load_ensemble(
        [captioner("a"), captioner("grid", table={"features": "local"}, attention="additive")]
    )
    evaluation = CaptioningEvaluationTable("val", metrics=["BLEU"], max_images=3)
    assert len(runs.evaluate(run, evaluation=evaluation).captions) == 3
