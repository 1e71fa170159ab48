import numpy as np
import pytest

from rnnlab.models import ClassifierEnsemble, SequenceClassifier


def build(seed, num_classes=3):
    return SequenceClassifier(num_classes, 2, hidden_dim=4, dtype=np.float64, rng=seed)


def probabilities(model, x):
    scores = np.exp(model.scores(x))
    return scores / scores.sum(axis=1, keepdims=True)


def test_probabilities_are_averaged(rng):
    x, models = rng.standard_normal((5, 4, 2)), [build(seed) for seed in range(3)]
    ensemble = ClassifierEnsemble(models)
    expected = np.mean([probabilities(model, x) for model in models], axis=0)
    np.testing.assert_allclose(np.exp(ensemble.scores(x)), expected, rtol=1e-12)
    assert ensemble.predict(x).tolist() == expected.argmax(axis=1).tolist()


def test_log_probabilities_are_averaged(rng):
    x, models = rng.standard_normal((5, 4, 2)), [build(seed) for seed in range(3)]
    expected = np.exp(np.mean([np.log(probabilities(model, x)) for model in models], axis=0))
    expected /= expected.sum(axis=1, keepdims=True)
    found = ClassifierEnsemble(models, average="log_probabilities").scores(x)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12)


def test_repr_names_the_members():
    expected = "ClassifierEnsemble(SequenceClassifier, SequenceClassifier; average='probabilities')"
    assert repr(ClassifierEnsemble([build(0), build(1)])) == expected


def test_sequences_of_different_lengths(rng):
    x, models = rng.standard_normal((2, 4, 2)), [build(0), build(1)]
    ensemble = ClassifierEnsemble(models)
    short = ensemble.scores(x[1:, :3])
    np.testing.assert_allclose(ensemble.scores(x, np.array([4, 3]))[1:], short, rtol=1e-12)


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([], {}, "models is empty"),
        ([build(0), build(0, 4)], {}, r"models\[1\] has 4 classes, expected 3 as models\[0\]"),
        ([build(0)], {"average": "votes"}, "average is 'votes', expected one of probabilities"),
    ],
)
def test_errors(models, options, message):
    with pytest.raises(ValueError, match=f"ClassifierEnsemble: {message}"):
        ClassifierEnsemble(models, **options)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (5, "ClassifierEnsemble: models is a int, expected a list of models"),
        ([5], r"ClassifierEnsemble: models\[0\] is a int, expected a classifier"),
    ],
)
def test_what_is_no_list_of_classifiers(models, message):
    with pytest.raises(TypeError, match=message):
        ClassifierEnsemble(models)


def test_scores_that_are_not_numbers_have_no_class(rng):
    x = rng.standard_normal((3, 4, 2))
    x[1, 2] = np.nan
    model = build(0)
    with pytest.raises(ValueError, match="SequenceClassifier.predict: the scores of sequence 1 hold NaN"):
        model.predict(x)
    with pytest.raises(ValueError, match="ClassifierEnsemble.predict: the scores of sequence 1 hold NaN"):
        ClassifierEnsemble([model, model]).predict(x)
