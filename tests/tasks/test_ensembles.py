"""What the members of an ensemble must share; tests/test_ensembles.py has whole runs."""

from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.data import Vocabulary
from rnnlab.tasks.classification import ClassificationTask
from rnnlab.tasks.ensembles import Member, check_same, check_same_splits, check_same_words
from rnnlab.tasks.translation import TranslationTask


def members(**values):
    return [Member(name, None, SimpleNamespace(value=value)) for name, value in values.items()]


def test_vocabularies_are_compared_with_the_first():
    words = [Vocabulary(list(letters)) for letters in ("abc", "abc", "acb", "ab")]
    check_same_words(members(one=words[0], two=words[1]), "words", lambda inputs: inputs.value)
    with pytest.raises(
        ValueError,
        match="three: words: found 7 words, expected the 7 of the run one; the first tokens that differ: "
        "5 is 'c', not 'b', 6 is 'b', not 'c'",
    ):
        check_same_words(
            members(one=words[0], two=words[1], three=words[2]), "words", lambda inputs: inputs.value
        )
    with pytest.raises(ValueError, match="two: words: found 6 words, expected the 7 of the run one"):
        check_same_words(members(one=words[0], two=words[3]), "words", lambda inputs: inputs.value)


def test_values_are_compared_with_the_first():
    check_same(members(one=1, two=1), "number", lambda inputs: inputs.value)
    with pytest.raises(
        ValueError, match="two: number: found 2, expected 1 as one: the models of an ensemble"
    ):
        check_same(members(one=1, two=2), "number", lambda inputs: inputs.value)
    long = tuple(range(1000))
    with pytest.raises(ValueError, match=r"found \(0, .{10,40}\.\.\.\), expected \(0, ") as error:
        check_same(members(one=long, two=(*long[:-1], 5)), "order", lambda inputs: inputs.value)
    assert len(str(error.value)) < 200


WORDS, OTHERS = Vocabulary(list("ab")), Vocabulary(list("ac"))
TEXTS = {"source_vocabulary": WORDS, "vocabulary": WORDS, "tokenizer": "text", "source_subwords": None}
PIXELS = {"image_shape": (2, 2), "white": 255, "permutation": np.arange(4)}


@pytest.mark.parametrize(
    ("task", "inputs", "change", "name"),
    [
        (TranslationTask(), TEXTS, {"source_vocabulary": OTHERS}, "source vocabulary"),
        (TranslationTask(), TEXTS, {"vocabulary": OTHERS}, "vocabulary"),
        (TranslationTask(), TEXTS, {"tokenizer": "code"}, "tokenizer"),
        (TranslationTask(), TEXTS, {"source_subwords": "other"}, "subwords of the source"),
        (ClassificationTask(), PIXELS, {"image_shape": (1, 4)}, "size of images"),
        (ClassificationTask(), PIXELS, {"white": 1}, "white"),
        (ClassificationTask(), PIXELS, {"permutation": np.arange(4)[::-1]}, "order of the pixels"),
    ],
)
def test_inputs_of_an_ensemble_are_the_same(task, inputs, change, name):
    one, same, other = (SimpleNamespace(**inputs | each) for each in ({}, {}, change))
    task.check_ensemble([Member("one", None, one), Member("two", None, same)])
    with pytest.raises(ValueError, match=f"^three: {name}: found"):
        task.check_ensemble(
            [Member("one", None, one), Member("two", None, same), Member("three", None, other)]
        )


def with_splits(**data):
    return [Member(name, None, None, each and SimpleNamespace(splits=each)) for name, each in data.items()]


def test_splits_are_compared_with_the_first():
    def check(**data):
        check_same_splits(with_splits(**data), "numbers", lambda one, other: one == other)

    first = {"train": 1, "val": 2, "test": 3}
    check(one=first, two={"train": 5, "val": 2, "test": 3, "more": 4})
    check(one=first, two={"val": 2, "test": 3})
    message = "three: data: found another split test, expected that of one: .* read the same numbers"
    with pytest.raises(ValueError, match=message):
        check(one=first, two=first, three=first | {"test": 4})
    with pytest.raises(ValueError, match="two: data: found no split val, expected that of one: "):
        check(one=first, two={"train": 1, "test": 3})


def test_data_that_are_not_opened_are_not_compared():
    check_same_splits(with_splits(one=None, two=None), "numbers", lambda one, other: False)
