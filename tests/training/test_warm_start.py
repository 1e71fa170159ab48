import numpy as np
import pytest

from rnnlab.data import PixelData
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.training import Checkpoint, CheckpointError, save_checkpoint, warm_start
from rnnlab.training.checkpoint import describe_model

SOURCE = {"<NULL>": 0, "x": 1}
TARGET = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}


def build(seed=0, source=SOURCE, **options):
    return Seq2Seq(source, TARGET, 3, 4, rng=seed, **options)


@pytest.fixture
def saved(tmp_path):
    model = build(seed=1)
    path = tmp_path / "best.h5"
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    return path, model


def test_the_same_model(saved):
    path, first = saved
    model = build()
    done = warm_start(path, model)
    np.testing.assert_array_equal(model.params.flat, first.params.flat)
    assert done.loaded == tuple(model.params)
    assert done.widened == done.new == done.left == ()
    assert str(done) == f"Warm start from {path}: {len(done.loaded)} parameters loaded."


def test_another_readout(tmp_path):
    path, model = tmp_path / "best.h5", SequenceClassifier(3, 1, 4)
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    with pytest.raises(CheckpointError, match="readout: found 'last', expected 'mean', as the model has"):
        warm_start(path, SequenceClassifier(3, 1, 4, readout="mean"))


def test_data_that_are_prepared_in_another_way(tmp_path, rng):
    """They are no error, but the result names the first difference."""
    images, labels = rng.integers(0, 256, (6, 4, 4)).astype(np.uint8), np.array([0, 1, 2, 0, 1, 2])
    rows, permuted = (PixelData({"train": (images, labels)}, permute_seed=seed) for seed in (None, 0))
    path, model = tmp_path / "best.h5", SequenceClassifier(3, 1, 4)
    checkpoint = Checkpoint(model.params, describe_model(model), preprocessing=rows.preprocessing())
    save_checkpoint(path, checkpoint)
    assert warm_start(path, model, rows).other_data is None
    done = warm_start(path, model, permuted)
    assert done.other_data.startswith("preprocessing: permutation: found ")
    assert str(done).endswith(f".\nThe data are not prepared as the checkpoint's: {done.other_data}.")
    assert warm_start(path, model).other_data is None


def test_a_parameter_that_is_one_number(tmp_path):
    class Scaled(Seq2Seq):
        def extra_shapes(self):
            return {"factor": ()}

    first, model = (Scaled(SOURCE, TARGET, 3, 4, rng=seed) for seed in (1, 2))
    first.params["factor"][...] = 0.5
    path = tmp_path / "best.h5"
    save_checkpoint(path, Checkpoint(first.params, describe_model(first)))
    assert "factor" in warm_start(path, model).loaded
    np.testing.assert_array_equal(model.params.flat, first.params.flat)


def test_target_attention_begins_as_source_attention(saved):
    path, first = saved
    model = build(target_attention=True)
    before = model.params.copy()
    done = warm_start(path, model)
    assert done.widened == ("W_deep_z",)
    assert "Wt" in done.new
    for name in done.loaded:
        np.testing.assert_array_equal(model.params[name], first.params[name])
    for name in done.new:
        np.testing.assert_array_equal(model.params[name], before[name])
    np.testing.assert_array_equal(model.params["W_deep_z"][:8], first.params["W_deep_z"])
    np.testing.assert_array_equal(model.params["W_deep_z"][8:], before["W_deep_z"][8:])
    # with nothing coming from the target's context, the models are the same
    model.params["Wt"] = np.zeros_like(model.params["Wt"])
    model.params["W_deep_z"][8:] = 0
    batch = np.array([[1, 1]]), np.array([[1, 3, 3, 2]])
    assert model.nll(*batch)[0] == pytest.approx(first.nll(*batch)[0], rel=1e-6)


def test_what_the_model_lacks_is_left(saved):
    path, _ = saved
    done = warm_start(path, build(attention=None))
    assert "W_deep_z" in done.left
    assert "left " in str(done)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (build(encoder_dim=3), "expected .*, by the sizes of the model"),
        (build(cell_type="lstm"), "cell_type: found 'gru', expected 'lstm', as the model has"),
        (build(source={**SOURCE, "y": 2}), "source_word_to_idx: found 2 words, expected the 3 of the model"),
        (
            CaptioningRNN({"<NULL>": 0, "b": 1}, 5, cell_type="gru", output="deep"),
            "word_to_idx: found 4 words, expected the 2 of the model",
        ),
    ],
)
def test_what_does_not_fit(saved, model, message):
    path, _ = saved
    with pytest.raises(CheckpointError, match=message):
        warm_start(path, model)


def test_rows_that_mean_another_thing(tmp_path):
    """The parameter has more rows in the second model, and the first of them mean another thing."""
    first, second = {"blocks": 1, "steps": 2, "intra": False}, {"blocks": 1, "steps": 2}
    model, path = build(reviewer=first), tmp_path / "best.h5"
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    with pytest.raises(CheckpointError, match="step2_Wh: found shape .*, by the sizes of the model"):
        warm_start(path, build(reviewer=second))


IMAGES = {"input_dim": 4, "wordvec_dim": 4, "hidden_dim": 4}
REVIEWER = {"attention": "additive", "reviewer": {"blocks": 1, "steps": 2}}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            {},
            {"image_input": "first_input"},
            "image_input: found 'initial_state', expected 'first_input', as",
        ),
        ({}, {"decoder_layers": 2}, "decoder_layers: found 1, expected 2, as the model has"),
        (
            {"image_input": "second_layer"},
            {"image_input": "second_layer", "decoder_layers": 3},
            "decoder_layers: found 2, expected 3, as the model has",
        ),
        ({}, {"tied_embeddings": True}, "tied_embeddings: found False, expected True, as the model has"),
        ({"tied_embeddings": True}, {}, "tied_embeddings: found True, expected False, as the model has"),
        (
            {},
            {"state_activation": "tanh"},
            "state_activation: found 'none', expected 'tanh', as the model has",
        ),
        ({}, {"output": "deep"}, "output: found 'linear', expected 'deep', as the model has"),
        ({"attention": "additive"}, REVIEWER, "reviewer: blocks: found None, expected 1, as the model has"),
        (REVIEWER, {"attention": "additive"}, "reviewer: blocks: found 1, expected None, as the model has"),
        (
            {"attention": "additive"},
            {"attention": "additive", "global_dim": 4},
            "global_dim: found None, expected 4, as the model has",
        ),
        (
            {"attention": "dot", "global_dim": 4},
            {"attention": "additive", "target_attention": True},
            "global_dim: found 4, expected None, as the model has",
        ),
        (
            {"target_attention": True, "output": "deep"},
            {"attention": "additive", "output": "deep"},
            "attention: found attention to the past states alone, expected attention to the source alone, as",
        ),
        (
            {"attention": "dot", "output": "deep"},
            {"target_attention": True, "output": "deep"},
            "attention: found attention to the source alone, expected attention to the past states alone, as",
        ),
        (
            {"target_attention": True, "output": "concat"},
            {"attention": "additive", "output": "concat"},
            "attention: found attention to the past states alone, expected attention to the source alone, as",
        ),
        (
            {"target_attention": True, "output": "deep"},
            {"attention": "additive", "target_attention": True, "output": "deep"},
            "attention: found attention to the past states alone, expected attention to the source and to",
        ),
        (
            {"attention": "additive", "target_attention": True, "output": "deep"},
            {"attention": "additive", "output": "deep"},
            "attention: found attention to the source and to the past states, expected attention to the",
        ),
        (
            {"target_attention": True},
            {"target_attention": True, "target_delay": 2},
            "target_delay: found None, expected 2, as the model has",
        ),
    ],
)
def test_parameters_that_mean_another_thing(first, second, message, tmp_path):
    path = tmp_path / "best.h5"
    model, other = (CaptioningRNN(TARGET, **IMAGES, **options) for options in (first, second))
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    before = other.params.flat.copy()
    with pytest.raises(CheckpointError, match=f"best.h5: model: {message}"):
        warm_start(path, other)
    np.testing.assert_array_equal(other.params.flat, before)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"target_attention": True}, {"attention": "additive"}),
        ({}, {"target_attention": True, "target_delay": 2}),
        ({}, {"attention": "additive", "global_dim": 4}),
        ({"attention": "dot", "global_dim": 4}, {}),
        ({"output": "deep"}, {"output": "deep", "target_attention": True}),
        ({"output": "deep", "target_attention": True}, {"output": "deep"}),
    ],
)
def test_parameters_that_mean_the_same(first, second, tmp_path):
    path = tmp_path / "best.h5"
    model, other = (CaptioningRNN(TARGET, **IMAGES, **options) for options in (first, second))
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    assert {"W_proj", "W_embed", "Wx", "W_vocab"} <= set(warm_start(path, other).loaded)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"attention": "additive"}),
        ({}, {"target_attention": True}),
        ({"attention": "additive"}, {"attention": "additive", "target_attention": True}),
    ],
)
def test_a_concatenated_output_with_more_contexts(first, second, tmp_path):
    """The rows of the contexts come last, so that the scores of the first model are the first rows' part."""
    path = tmp_path / "best.h5"
    model, other = (
        CaptioningRNN(TARGET, **IMAGES, **options, output="concat") for options in (first, second)
    )
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    own = other.params["W_vocab"].copy()
    assert warm_start(path, other).widened == ("W_vocab",)
    rows = len(model.params["W_vocab"])
    np.testing.assert_array_equal(other.params["W_vocab"][:rows], model.params["W_vocab"])
    np.testing.assert_array_equal(other.params["W_vocab"][rows:], own[rows:])


def test_a_concatenated_output_with_fewer_contexts(tmp_path):
    path = tmp_path / "best.h5"
    model = CaptioningRNN(TARGET, **IMAGES, attention="additive", output="concat")
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    with pytest.raises(
        CheckpointError, match="found attention to the source alone, expected none, as the model"
    ):
        warm_start(path, CaptioningRNN(TARGET, **IMAGES, output="concat"))


def test_a_classifier_begins_as_no_captioner(tmp_path):
    classifier, path = SequenceClassifier(2, 4, 4, "rnn"), tmp_path / "best.h5"
    save_checkpoint(path, Checkpoint(classifier.params, describe_model(classifier)))
    with pytest.raises(CheckpointError, match="model: num_classes: found 2, expected None, as the model has"):
        warm_start(path, CaptioningRNN(TARGET, **IMAGES))


@pytest.mark.parametrize("reviewer", [None, {}, {"steps": 8}])
def test_a_checkpoint_that_says_nothing_of_a_reviewer(reviewer, tmp_path):
    model = CaptioningRNN(TARGET, attention="additive", **IMAGES)
    described = describe_model(model)
    described["config"]["reviewer"] = reviewer
    save_checkpoint(tmp_path / "best.h5", Checkpoint(model.params, described))
    warm_start(tmp_path / "best.h5", CaptioningRNN(TARGET, attention="additive", rng=1, **IMAGES))
    with pytest.raises(CheckpointError, match="reviewer: blocks: found None"):
        warm_start(tmp_path / "best.h5", CaptioningRNN(TARGET, **IMAGES, **REVIEWER))


def test_nothing_in_common(saved):
    path, _ = saved

    class Other:
        params = type(build().params)({"W_other": (2, 2)})

        def config(self):
            return {}

    with pytest.raises(CheckpointError, match="expected some of W_other"):
        warm_start(path, Other())
