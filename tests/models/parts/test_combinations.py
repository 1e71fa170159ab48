import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.combinations import check_combinations, has_dropout
from rnnlab.models.parts.image_encoders import IMAGE_INPUTS

WORDS = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "b"])}
REVIEWER = {"attention": "dot", "reviewer": {"blocks": 1}}


def captioner(**options):
    return CaptioningRNN(WORDS, 4, 3, 4, "lstm", **options)


def translator(**options):
    return Seq2Seq(WORDS, WORDS, 3, 4, **{"encoder_dim": 2, "attention": None} | options)


def classifier(**options):
    return SequenceClassifier(2, 3, 4, **options)


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (
            captioner,
            {"attention_dim": 5},
            "which needs attention or target_attention: set one of these, or remove attention_dim",
        ),
        (
            translator,
            {"attention_dim": 5},
            "which needs attention or target_attention: set one of these, or remove attention_dim",
        ),
        (
            captioner,
            {"attention_dim": 5, "attention": "dot"},
            "needs attention 'additive', found 'dot': remove it",
        ),
        (
            translator,
            {"attention_dim": 5, "attention": "bilinear"},
            "needs attention 'additive', found 'bilinear'",
        ),
        (
            captioner,
            {"attention_dim": 5, "target_attention": True, "target_delay": 2},
            "which has no effect with target_delay and no attention: remove it",
        ),
        (captioner, {"target_delay": 2}, "which needs target_attention, found False"),
        (translator, {"target_delay": 3}, "which needs target_attention, found False"),
        (captioner, {"selector": True}, "needs attention 'additive', 'dot' or 'bilinear'"),
        (captioner, {"doubly_stochastic": 0.5}, "needs attention 'additive', 'dot' or 'bilinear'"),
        (captioner, {"global_dim": 5, "target_attention": True}, "needs attention 'additive'"),
        (captioner, {"detach_target": True}, "needs an ARNet: set reconstruction or reconstructor_dim"),
        (translator, {"detach_target": True}, "needs an ARNet"),
        (classifier, {"detach_target": True}, "needs an ARNet"),
        (
            translator,
            {"layer_dropout": 0.5},
            "needs num_layers or decoder_layers of at least 2: it is dropout",
        ),
        (
            captioner,
            {"layer_dropout": 0.5},
            "needs decoder_layers of at least 2: it is dropout between layers",
        ),
        (classifier, {"layer_dropout": 0.5}, "needs num_layers of at least 2: it is dropout between layers"),
        (
            captioner,
            {"decoder_layers": 1, "image_input": "second_layer"},
            "expected at least 2 with image_input 'second_layer'",
        ),
        (captioner, {"discriminative": 0.5}, "needs the thought vectors of a reviewer: set"),
        (
            translator,
            {"discriminative_words": 2},
            "needs the thought vectors of a reviewer: set",
        ),
        (
            captioner,
            {"tied_embeddings": True},
            "needs hidden_dim and wordvec_dim to be equal with output 'lin",
        ),
        (
            captioner,
            {"tied_embeddings": True, "output": "concat"},
            "expected False with output 'concat', whose weight has",
        ),
        (captioner, {"init_scale": 0.5}, "needs initialisation 'uniform', found 'course'"),
        (translator, {"init_scale": 0.5}, "needs initialisation 'uniform', found 'course'"),
        (classifier, {"init_scale": 0.5}, "needs initialisation 'uniform', found 'course'"),
    ],
)
def test_an_option_without_effect(build, options, message):
    name = next(iter(options))
    model = {captioner: "CaptioningRNN", translator: "Seq2Seq", classifier: "SequenceClassifier"}[build]
    with pytest.raises(ValueError, match=f"^{model}: {name} is {options[name]}, .*{message}"):
        build(**options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"word_dropout": 0.0, "hidden_dim": 5}, False),
        ({"word_dropout": 0.1}, True),
        ({"reviewer": {"blocks": 2, "dropout": 0.0}, "regularisation": {"zoneout_c": 0.2}}, True),
        ({"reviewer": {"dropout": 0.2}}, True),
        ({"regularisation": {"recurrent_dropout_on": "state", "weight_dropout": 0.0}}, False),
    ],
)
def test_whether_anything_is_dropped(options, expected):
    assert has_dropout(options) == expected


@pytest.mark.parametrize("build", [captioner, translator, classifier])
def test_recurrent_dropout_on_without_recurrent_dropout(build):
    with pytest.raises(
        ValueError, match="recurrent_dropout_on is 'candidate', which needs a recurrent_dropout"
    ):
        build(regularisation={"recurrent_dropout_on": "candidate", "zoneout_h": 0.1})


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (captioner, {"attention_dim": 5, "target_attention": True}),
        (captioner, {"attention_dim": 5, "attention": "additive"}),
        (captioner, {"target_delay": 2, "target_attention": True}),
        (translator, {"target_delay": 5, "target_attention": True, "attention": "additive"}),
        (captioner, {"attention_dim": 5, **REVIEWER}),
        (translator, {"attention_dim": 5, **REVIEWER}),
        (captioner, {"detach_target": True, "reconstructor_dim": 3}),
        (translator, {"detach_target": True, "encoder_reconstruction": 0.1}),
        (translator, {"layer_dropout": 0.5, "num_layers": 2}),
        (translator, {"layer_dropout": 0.5, "decoder_layers": 2}),
        (captioner, {"layer_dropout": 0.5, "decoder_layers": 2}),
        (captioner, {"layer_dropout": 0.5, "image_input": "second_layer"}),
        (classifier, {"init_scale": 0.5, "initialisation": "uniform"}),
    ],
)
def test_with_what_it_needs_an_option_changes_the_model(build, options):
    name, value = next(iter(options.items()))
    model = build(**options)
    assert model.config()[name] == value
    assert type(model).from_config(model.config()).params.shapes == model.params.shapes
    if name == "attention_dim":
        assert value in np.concatenate([shape for shape in model.params.shapes.values()])


@pytest.mark.parametrize("image_input", [kind for kind in IMAGE_INPUTS if kind != "initial_state"])
@pytest.mark.parametrize("attends", [{"attention": "dot"}, {"target_attention": True}], ids=str)
def test_attention_needs_the_image_as_initial_state(image_input, attends):
    (name,) = attends
    message = f"image_input is '{image_input}', expected 'initial_state' with {name}"
    with pytest.raises(ValueError, match=f"^CaptioningRNN: {message}"):
        captioner(image_input=image_input, **attends)


def test_a_reviewer_has_a_cell_state_to_project():
    options = {"cell_type": "gru", "project_cell": True}
    with pytest.raises(ValueError, match="project_cell is True, but cell 'gru' has no cell state"):
        CaptioningRNN(WORDS, 4, 3, 4, **options)
    assert "W_proj_c" in CaptioningRNN(WORDS, 4, 3, 4, **options, **REVIEWER).params


@pytest.mark.parametrize("build", [captioner, translator, classifier])
def test_defaults_may_be_given(build):
    """As a saved configuration gives them."""
    model = build(initialisation="course", init_scale=0.08, detach_target=False, regularisation={})
    assert type(model).from_config(model.config()).config() == model.config()


def test_an_arnet_whose_weight_is_now_zero_may_have_constant_targets():
    model = captioner(reconstruction=0.1, detach_target=True)
    model.reconstruction = 0.0
    assert (
        captioner(reconstructor_dim=4).params.shapes
        == CaptioningRNN.from_config(model.config()).params.shapes
    )


def test_options_may_be_those_of_a_recipe():
    check_combinations("model", {"init_scale": 0.08, "initialisation": "course", "num_layers": 1})
    with pytest.raises(ValueError, match="^model: attention_dim is 3, which needs attention"):
        check_combinations(
            "model",
            {"attention_dim": 3, "attention": None, "target_attention": False, "reviewer": {"blocks": None}},
        )
