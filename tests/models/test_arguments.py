"""Arguments that a model cannot use: errors that say what is expected."""

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.training import clip_by_norm, clip_by_value, gradient_norm

WORDS = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a"])}
RAGGED = [[1, 4, 2], [1, 2]]


def test_a_number_of_words_is_no_vocabulary():
    with pytest.raises(TypeError, match=r"CaptioningRNN: word_to_idx is a int, expected a mapping"):
        CaptioningRNN(10, 8)
    with pytest.raises(TypeError, match=r"Seq2Seq: word_to_idx is a int, expected a mapping"):
        Seq2Seq(WORDS, 10)


def test_rows_of_different_lengths():
    model = Seq2Seq(WORDS, WORDS, 3, 4)
    for source, target, name in ((RAGGED, [[1, 4, 2]] * 2, "source"), ([[4, 2]] * 2, RAGGED, "target")):
        with pytest.raises(ValueError, match=rf"Seq2Seq\.loss: {name} has rows of different .* with <NULL>"):
            model.loss(source, target)
    with pytest.raises(ValueError, match=r"CaptioningRNN\.loss: captions has rows of different lengths"):
        CaptioningRNN(WORDS, 8).loss(np.zeros((2, 8)), RAGGED)


def test_nested_lists_of_different_lengths():
    model, captioner = SequenceClassifier(3, 2, 4), CaptioningRNN(WORDS, 2)
    x, features, captions = np.ones((2, 2, 2)), np.ones((2, 2)), [[1, 4, 2], [1, 2, 0]]
    for match, function, arguments, options in (
        ("x", model.loss, ([[[1, 2]], [[1, 2], [3, 4]]], [0, 1]), {}),
        ("labels", model.loss, (x, [[0], [1, 2]]), {}),
        ("lengths", model.loss, (x, [0, 1], [[1], [1, 2]]), {}),
        ("features", captioner.loss, ([[1, 2], [1]], captions), {}),
        ("sentence_weights", captioner.loss, (features, captions), {"sentence_weights": [[1], [1, 2]]}),
        ("sentence_lengths", captioner.loss, (features, captions), {"sentence_lengths": [[1], [1, 2]]}),
    ):
        with pytest.raises(ValueError, match=rf"\.loss: {match} has rows of different lengths, expected an"):
            function(*arguments, **options)


@pytest.mark.parametrize("rng", [-1, 1.5, "a", None, True])
def test_what_is_no_seed(rng):
    match = f"CaptioningRNN: rng is {rng!r}, expected a numpy Generator or a seed"
    with pytest.raises((TypeError, ValueError), match=match):
        CaptioningRNN(WORDS, 2, rng=rng)
    with pytest.raises((TypeError, ValueError), match=match):
        CaptioningRNN.from_config(CaptioningRNN(WORDS, 2).config(), rng=rng)


def test_gradients_that_are_no_parameters():
    model = SequenceClassifier(3, 2, 4)
    x, labels, grads = np.zeros((2, 3, 2), np.float32), np.array([0, 1]), {"Wx": np.zeros((2, 16))}
    with pytest.raises(TypeError, match=r"SequenceClassifier\.loss: grads is a dict, expected Parameters"):
        model.loss(x, labels, grads=grads)
    for function, arguments in ((gradient_norm, ()), (clip_by_norm, (1.0,)), (clip_by_value, (1.0,))):
        with pytest.raises(TypeError, match=rf"{function.__name__}: grads is a dict, expected Parameters"):
            function(grads, *arguments)


def test_batches_of_another_librarys_arrays():
    torch = pytest.importorskip("torch")
    model = SequenceClassifier(3, 2, 4)
    batch = model.prefetch((torch.zeros(2, 3, 2), torch.tensor([0, 1])))
    with pytest.raises(TypeError, match=r"SequenceClassifier\.loss: x is a Tensor, expected a NumPy or CuPy"):
        model.loss(*batch)
    x, labels, lengths = np.ones((2, 3, 2), np.float32), np.array([0, 1]), np.array([3, 1])
    assert model.loss(x, labels, torch.tensor(lengths))[0] == model.loss(x, labels, lengths)[0]


@pytest.mark.parametrize("dtype", ["foo", None, 3.5, "float16"], ids=str)
def test_what_is_no_dtype(dtype):
    with pytest.raises((ValueError, TypeError), match="SequenceClassifier: dtype is .*, expected"):
        SequenceClassifier(3, 2, 4, dtype=dtype)
