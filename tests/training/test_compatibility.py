"""What a checkpoint's model and data are compared with."""

import contextlib
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.data import CaptionData, CaptionSplit, ParallelData, PixelData, Vocabulary
from rnnlab.models import CaptioningRNN
from rnnlab.parameters import Parameters
from rnnlab.training import Solver
from rnnlab.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    describe_model,
    load_checkpoint,
    save_checkpoint,
)
from rnnlab.training.compatibility import check_data, check_model, check_vocabularies, fingerprint_of

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def path(tmp_path, model):
    save_checkpoint(tmp_path / "last.h5", Checkpoint(model.params, describe_model(model)))
    return tmp_path / "last.h5"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 0.5}, "model: dropout: found 0.2, expected 0.5, as the model given"),
        ({"inputs": 6}, "model: inputs: found 5, expected 6"),
        ({"dtype": "float32"}, "model: dtype: found 'float64', expected 'float32'"),
    ],
)
def test_check_model_names_the_difference(path, make_model, changes, message):
    with pytest.raises(CheckpointError, match=message):
        check_model(path, load_checkpoint(path), make_model(**changes))


def test_check_model_of_another_class_or_shape(path, model, make_model):
    class Other(make_model):
        pass

    with pytest.raises(CheckpointError, match="model: class: found LinearModel, expected Other"):
        check_model(path, load_checkpoint(path), Other())
    model.params = Parameters({"W": (5, 3), "b": (3,)}, np.float32)
    with pytest.raises(CheckpointError, match="parameters: found float64, expected float32"):
        check_model(path, load_checkpoint(path), model)
    check_model(path, load_checkpoint(path), make_model())


class Subclass(CaptioningRNN):
    def __init__(self, *arguments, smoothness=0.1, **options):
        super().__init__(*arguments, **options)
        self.smoothness = smoothness

    def config(self):
        return {**super().config(), "smoothness": self.smoothness}


@pytest.mark.parametrize(
    ("saved", "given", "fits"),
    [
        ({"a": (1, 2)}, {"a": (1, 2)}, True),
        ({"a": math.nan}, {"a": math.nan}, True),
        ({"a": np.float64(0.5)}, {"a": 0.5}, True),
        ({"a": (1, 2)}, {"a": [2, 1]}, False),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1.0}}, True),
        ({1: 2}, {1: 2}, True),
    ],
)
def test_fingerprints_as_they_return_from_json(path, data, saved, given, fits):
    data.fingerprint = lambda: saved
    checkpoint = replace(load_checkpoint(path), fingerprint=json.loads(json.dumps(fingerprint_of(data))))
    data.fingerprint = lambda: given
    with contextlib.nullcontext() if fits else pytest.raises(CheckpointError, match="fingerprint: a: found"):
        check_data(path, checkpoint, data, same=True)


@pytest.mark.parametrize(
    ("fingerprint", "message"),
    [
        ([1], "fingerprint\\(\\) returned a list, expected a dict"),
        ({"a": {1j}}, "fingerprint\\(\\) cannot be represented in JSON"),
    ],
)
def test_a_fingerprint_that_json_cannot_hold(data, fingerprint, message):
    data.fingerprint = lambda: fingerprint
    with pytest.raises(TypeError, match=message):
        fingerprint_of(data)


def test_data_without_a_fingerprint_are_not_compared(path, data):
    assert fingerprint_of(data) is None
    data.fingerprint = lambda: None
    assert fingerprint_of(data) is None
    checkpoint = replace(load_checkpoint(path), fingerprint={"train": "50 rows"})
    with pytest.warns(
        UserWarning, match="LinearData has no fingerprint: its data may not be those of .*last"
    ):
        check_data(path, checkpoint, data, same=True)


@pytest.mark.parametrize("kind", [CaptioningRNN, Subclass])
def test_an_option_that_is_newer_than_the_checkpoint(kind, tmp_path):
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}
    model, path = kind(words, 5, 4, 4), tmp_path / "last.h5"
    described = describe_model(model)
    for name in ("decoder_layers", "tied_embeddings", "smoothness"):
        described["config"].pop(name, None)
    save_checkpoint(path, Checkpoint(model.params, described))
    check_model(path, load_checkpoint(path), model)
    for options, message in (
        ({"decoder_layers": 2}, "model: decoder_layers: found None, expected 2, as the model given"),
        ({"tied_embeddings": True}, "model: tied_embeddings: found False, expected True, as the model given"),
    ):
        with pytest.raises(CheckpointError, match=message):
            check_model(path, load_checkpoint(path), kind(words, 5, 4, 4, **options))
    del described["config"]["hidden_dim"]
    save_checkpoint(path, Checkpoint(model.params, described))
    with pytest.raises(CheckpointError, match="model: hidden_dim: found 128, expected 4, as the model given"):
        check_model(path, load_checkpoint(path), model)


# ------------------------------------------------------------------ vocabularies and data

WORDS = [f"word{k}" for k in range(1000)]


def caption_data(rng, words=WORDS, standardise=True, count=6):
    features = rng.standard_normal((count, 5)).astype(np.float32)
    captions = np.tile(Vocabulary(words).encode(words[:2], 4), (count, 1))
    names, references = tuple(f"{k}.jpg" for k in range(count)), [["a"]] * count
    split = CaptionSplit(features, captions, np.arange(count), names, references)
    return CaptionData(Vocabulary(words), {"train": split, "val": split}, standardise=standardise)


def train(data, directory, epochs=1):
    model = CaptioningRNN(data.vocabulary.word_to_idx, 5, 3, 4)
    Solver(model, data, num_epochs=epochs, run_dir=directory, verbose=False).train()
    return model


def test_vocabularies_that_differ_are_described(tmp_path):
    data = caption_data(np.random.default_rng(0))
    train(data, tmp_path)
    other = caption_data(np.random.default_rng(0), ["dog", *WORDS[1:-1]])
    model = CaptioningRNN(other.vocabulary.word_to_idx, 5, 3, 4)
    message = (
        "model: word_to_idx: found 1,004 words, expected the 1,003 of the model; the first tokens that "
        "differ: 4 is 'word0', not 'dog', 1003 is 'word999', not none"
    )
    with pytest.raises(CheckpointError, match=message):
        Solver.resume(tmp_path, model, other, num_epochs=2)
    with pytest.raises(
        CheckpointError, match="vocabulary: found 1,004 words, expected the 1,003 of the data"
    ):
        check_data(tmp_path, load_checkpoint(tmp_path), other)


def test_a_model_with_other_words_than_its_data(rng):
    data = caption_data(rng, ["red", "small"])
    words = data.vocabulary.word_to_idx
    Solver(CaptioningRNN(words, data.num_features, 2, 3), data)
    swapped = words | {"red": words["small"], "small": words["red"]}
    for found, message in (
        (swapped, "the first tokens that differ: 4 is 'small', not 'red', 5 is 'red', not 'small'"),
        (words | {"new": 6}, "has 7 words, expected the 6 of data.vocabulary; .*: 6 is 'new', not none"),
    ):
        with pytest.raises(ValueError, match=f"Solver: model.word_to_idx .*{message}"):
            Solver(CaptioningRNN(found, data.num_features, 2, 3), data)


def test_a_run_resumes_with_the_same_data_only(tmp_path):
    model = train(caption_data(np.random.default_rng(0)), tmp_path)
    Solver.resume(tmp_path, model, caption_data(np.random.default_rng(0)), num_epochs=2)
    shifted = caption_data(np.random.default_rng(0))
    for split in shifted.splits.values():
        split.captions[3, 1] += 1
    other = CaptionData(shifted.vocabulary, shifted.splits)
    other.scaling = shifted.scaling
    with pytest.raises(
        CheckpointError, match=r"fingerprint: train captions: found 6 \w+, expected 6 \w+, as"
    ):
        Solver.resume(tmp_path, model, other, num_epochs=2)
    with pytest.raises(
        CheckpointError, match=r"preprocessing: features_mean: found .* expected .*as the data"
    ):
        Solver.resume(tmp_path, model, caption_data(np.random.default_rng(1)), num_epochs=2)
    with pytest.raises(CheckpointError, match="preprocessing: features_mean"):
        Solver.resume(
            tmp_path, model, caption_data(np.random.default_rng(0), standardise=False), num_epochs=2
        )


def test_the_fingerprint_sees_features_captions_and_sizes():
    first, *others = (
        caption_data(np.random.default_rng(seed), count=count, standardise=False).fingerprint()
        for seed, count in ((0, 6), (0, 6), (1, 6), (0, 7))
    )
    assert first == others[0]
    assert first["train features"] != others[1]["train features"]
    assert first["train captions"] == others[1]["train captions"]
    assert first["train captions"] != others[2]["train captions"]


@pytest.mark.parametrize("part", ["mean", "std"])
def test_each_feature_is_compared_on_its_own_scale(part, path, model):
    """Rounding of a large feature does not hide another small one."""
    saved = {
        "features_mean": np.array([0.5, 1e5], np.float32),
        "features_std": np.array([0.5, 1e5], np.float32),
    }
    save_checkpoint(path, Checkpoint(model.params, describe_model(model), preprocessing=saved))

    def check(change):
        given = {name: array.copy() for name, array in saved.items()}
        given[f"features_{part}"] += np.array(change, np.float32)
        check_data(path, load_checkpoint(path), SimpleNamespace(preprocessing=lambda: given))

    check([1e-6, 1.0])
    for change in ([-1.0, 0.0], [1e-3, 0.0], [0.0, 100.0]):
        with pytest.raises(CheckpointError, match=f"preprocessing: features_{part}: found .* other data"):
            check(change)


def test_pairs_and_pixels_are_compared_too(tmp_path):
    pairs = {"train": [(["a", "b"], ["c"]), (["b"], ["d", "c"])]}
    data, other = ParallelData(pairs), ParallelData({"train": [(["a", "e"], ["c"]), (["e"], ["d", "c"])]})
    assert data.fingerprint() == ParallelData(pairs).fingerprint()
    assert data.fingerprint() != ParallelData({"train": pairs["train"][::-1]}).fingerprint()
    saved = Checkpoint(Parameters({}), {}, preprocessing=data.preprocessing())
    check_data(tmp_path, saved, ParallelData(pairs))
    with pytest.raises(CheckpointError, match="source_vocabulary: found 6 words, .* 4 is 'b', not 'e'"):
        check_data(tmp_path, saved, other)
    model = SimpleNamespace(source_word_to_idx=data.source_vocabulary.word_to_idx)
    check_vocabularies(model, data)
    with pytest.raises(ValueError, match="model.source_word_to_idx has 6 words, .*: 4 is 'b', not 'e'"):
        check_vocabularies(model, other)

    images = np.random.default_rng(0).integers(0, 255, (9, 4, 5)).astype(np.uint8)
    pixels = {"train": (images, np.arange(9))}
    saved = Checkpoint(Parameters({}), {}, preprocessing=PixelData(pixels, permute_seed=0).preprocessing())
    check_data(tmp_path, saved, PixelData(pixels, permute_seed=0))
    with pytest.raises(CheckpointError, match="preprocessing: permutation"):
        check_data(tmp_path, saved, PixelData(pixels, permute_seed=1))
    assert PixelData(pixels).fingerprint() != PixelData(pixels, permute_seed=1).fingerprint()


def test_paths_may_differ_but_settings_may_not(path, model):
    class Recorded:
        def __init__(self, file, layer):
            self.saved = {"features_encoder_path": file, "features_encoder": {"layer": layer}}

        def preprocessing(self):
            return self.saved

    checkpoint = Checkpoint(
        model.params, describe_model(model), preprocessing=Recorded("/a.onnx", "pool").saved
    )
    check_data(path, checkpoint, Recorded("/b.onnx", "pool"))
    with pytest.raises(
        CheckpointError, match="preprocessing: features_encoder: found .*pool.* expected .*map"
    ):
        check_data(path, checkpoint, Recorded("/a.onnx", "map"))
