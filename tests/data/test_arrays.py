"""Arrays in memory as a data set."""

import re

import numpy as np
import pytest

from rnnlab.data import ArrayData
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.training import Solver

pytestmark = pytest.mark.usefixtures("no_pictures")

WORDS = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "b"])}


def sentences(rng, rows, start=True):
    out = np.zeros((rows, 7), int)
    for row in out:
        words = rng.integers(4, 6, rng.integers(1, 5))
        row[: len(words) + 1 + start] = [*[1] * start, *words, 2]
    return out


def labelled(rng, rows):
    return rng.standard_normal((rows, 5, 2)), rng.integers(3, size=rows), rng.integers(1, 6, rows)


def train(model, data, **options):
    solver = Solver(model, data, num_epochs=2, batch_size=4, verbose=False, **options)
    solver.train()
    return solver


def test_batches_are_rows(rng):
    x, labels, lengths = labelled(rng, 10)
    data = ArrayData({"train": (x, labels, lengths), "val": labelled(rng, 3)}, name="digits")
    assert [list(rows) for rows in data.epoch("train", 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    shuffled = np.concatenate(data.epoch("train", 4, np.random.default_rng(0)))
    assert sorted(shuffled) == list(range(10)) != list(shuffled)
    batch = data.batch("train", np.array([3, 1]))
    for found, array in zip(batch, (x, labels, lengths), strict=True):
        np.testing.assert_array_equal(found, array[[3, 1]])
        assert not np.shares_memory(found, array)
    assert data.num_tokens(batch) == 2
    assert repr(data) == "ArrayData(digits: train 10 rows, val 3 rows)"
    with pytest.raises(KeyError, match="digits has the splits train, val, not 'test'"):
        data.epoch("test", 4)


def test_a_classifier_trains_and_resumes(rng, tmp_path):
    splits = {"train": labelled(rng, 10), "val": labelled(rng, 3)}
    model = SequenceClassifier(3, 2, 4, "gru", np.float64)
    whole = train(model, ArrayData(splits), run_dir=tmp_path)
    row = whole.history[-1]
    assert row["train_loss_per_token"] == pytest.approx(row["train_loss"], rel=0.2)  # a label is a token
    again = SequenceClassifier(3, 2, 4, "gru", np.float64)
    Solver.resume(tmp_path, again, ArrayData(splits), num_epochs=3).train()
    changed = splits | {"train": (*splits["train"][:2], splits["train"][2] % 5 + 1)}
    with pytest.raises(ValueError, match="data"):
        Solver.resume(tmp_path, again, ArrayData(changed), num_epochs=4)


def test_sentences_have_as_many_tokens_as_the_model_counts(rng):
    """An accumulated loss is divided by the number of tokens, so that of the data must be the model's."""
    splits = {split: (sentences(rng, rows, start=False), sentences(rng, rows)) for split, rows in
              (("train", 9), ("val", 3))}  # fmt: skip
    data = ArrayData(splits, null_token=0)
    model = Seq2Seq(WORDS, WORDS, 3, 4, dtype=np.float64)
    for rows in data.epoch("train", 4):
        batch = data.batch("train", rows)
        assert data.num_tokens(batch) == model.nll(*batch)[1]
    losses = [
        train(Seq2Seq(WORDS, WORDS, 3, 4, dtype=np.float64), data, accumulate=parts).loss_history
        for parts in (1, 2)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-10)


def test_several_sentences_of_each_source(rng):
    several = np.stack([sentences(rng, 6), sentences(rng, 6)], axis=1)
    data = ArrayData({"train": (rng.standard_normal((6, 4)), several)}, null_token=0)
    batch = data.batch("train", np.arange(6))
    assert data.num_tokens(batch) == CaptioningRNN(WORDS, 4, 3, 4, dtype=np.float64).nll(*batch)[1]


@pytest.mark.parametrize("padding", [None, 1])
def test_padding_that_is_not_the_models(rng, padding):
    data = ArrayData({"train": (rng.standard_normal((6, 4)), sentences(rng, 6))}, null_token=padding)
    model = CaptioningRNN(WORDS, 4, 3, 4, dtype=np.float64)
    with pytest.raises(
        ValueError, match=f"null_token is {padding}, expected the model's token of padding: n"
    ):
        train(model, data)

    class Counted(ArrayData):
        def num_tokens(self, batch):
            return model.nll(*batch)[1]

    assert train(model, Counted(data.splits)).loss_history


def test_sentences_without_start(rng):
    """Their first word would never be predicted; so would a source in the place of the target."""
    source, target, features = sentences(rng, 6, start=False), sentences(rng, 6), rng.standard_normal((6, 4))
    captioner, translator = CaptioningRNN(WORDS, 4, 3, 4), Seq2Seq(WORDS, WORDS, 3, 4)
    late = {"train": (features, target), "val": (features, np.stack([target, source], axis=1))}
    for model, splits, split, row in (
        (captioner, {"train": (features, source)}, "train", source[0]),
        (translator, {"train": (target, source)}, "train", source[0]),
        (captioner, late, "val", source[0]),
    ):
        message = f"ArrayData: {split}: the last array has the sentence {row.tolist()}, expected the model's"
        with pytest.raises(ValueError, match=re.escape(f"{message} <START> first, the token 1")):
            train(model, ArrayData(splits, null_token=0))


def test_sentences_of_nothing_but_padding(rng):
    """Images with fewer captions than others."""
    captions = np.stack([sentences(rng, 6), sentences(rng, 6)], axis=1)
    captions[2, 1] = 0
    data = ArrayData({"train": (rng.standard_normal((6, 4)), captions)}, null_token=0)
    assert train(CaptioningRNN(WORDS, 4, 3, 4), data).loss_history


def test_rows_by_a_tuple(rng):
    data = ArrayData({"train": (rng.standard_normal((6, 4)), sentences(rng, 6))}, null_token=0)
    for found, expected in zip(data.batch("train", (0, 1)), data.batch("train", [0, 1]), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_vocabulary_without_start(rng):
    """The course's dictionaries have none."""
    words = {"<NULL>": 0, "a": 1, "b": 2}
    data = ArrayData({"train": (rng.standard_normal((6, 4)), rng.integers(1, 3, size=(6, 5)))}, null_token=0)
    assert train(CaptioningRNN(words, 4, 3, 4), data).loss_history


def test_each_split_has_sentences():
    for shape in ((2,), (2, 0)):
        message = rf"^ArrayData: val: null_token is given, expected sentences.*{re.escape(str(shape))}"
        with pytest.raises(ValueError, match=message):
            ArrayData({"train": (np.zeros((2, 3), int),), "val": (np.zeros(shape, int),)}, null_token=0)


def test_arguments_that_are_tuples(rng):
    regions, vectors = rng.standard_normal((6, 3, 4)), rng.standard_normal((6, 2))
    data = ArrayData({"train": ((regions, vectors), sentences(rng, 6))}, null_token=0)
    (first, second), captions = data.batch("train", np.array([5]))
    np.testing.assert_array_equal(first, regions[5:])
    np.testing.assert_array_equal(second, vectors[5:])
    model = CaptioningRNN(WORDS, 4, 3, 4, attention="additive", global_dim=2, dtype=np.float64)
    assert train(model, data).loss_history
    assert captions.shape == (1, 7)


@pytest.mark.parametrize(
    ("splits", "options", "error", "message"),
    [
        ({}, {}, ValueError, "found no split, expected examples of a split train"),
        ({"val": (np.zeros(2),)}, {}, ValueError, "found val, expected examples of a split train"),
        ({"train": (np.zeros((0, 2)),)}, {}, ValueError, "expected examples of a split train"),
        ({"train": ()}, {}, ValueError, "train has no array"),
        ({"train": (np.zeros(2), [1, 2])}, {}, TypeError, "train: array 1 is of list"),
        ({"train": (np.zeros(2), np.array(1))}, {}, TypeError, r"train: array 1 is of shape \(\)"),
        ({"train": (np.zeros(2), np.zeros(3))}, {}, ValueError, "the arrays have 2, 3 rows"),
        (
            {"train": (np.zeros(2),), "val": (np.zeros(2),) * 2},
            {},
            ValueError,
            "val has 2 arrays, expected 1",
        ),
        (
            {"train": (np.zeros(2),)},
            {"null_token": 0},
            ValueError,
            r"expected sentences \(N, L\) or \(N, S, L\) as the last",
        ),
    ],
)
def test_arrays_that_do_not_fit(splits, options, error, message):
    with pytest.raises(error, match=f"ArrayData: .*{message}"):
        ArrayData(splits, **options)


def test_an_array_is_no_tuple_of_arrays():
    with pytest.raises(TypeError, match=r"ArrayData: train is an array, expected a tuple of arrays, such as"):
        ArrayData({"train": np.zeros((3, 4))})


def test_splits_are_a_dict():
    with pytest.raises(TypeError, match="ArrayData: splits is a tuple, expected a dict of tuples of arrays"):
        ArrayData((np.zeros(3), np.zeros(3)))
