import numpy as np
import pytest

from rnnlab.data import CaptionSplit, Vocabulary


def split(**changes):
    fields = {
        "features": np.zeros((2, 3), np.float32),
        "captions": np.array([[1, 4, 2, 0], [1, 5, 2, 0]]),
        "image_idxs": np.array([0, 1]),
        "names": ("a", "b"),
        "references": [["x"], ["y"]],
    }
    return CaptionSplit(**fields | changes)


@pytest.mark.parametrize("token", [2**32 + 1, -(2**31) - 1, 2**63])
def test_tokens_that_32_bits_cannot_hold(token):
    """A cast alone would make another token of them."""
    captions = np.array([[1, token, 2, 0], [1, 5, 2, 0]], np.uint64 if token == 2**63 else np.int64)
    with pytest.raises(ValueError, match=f"captions: found {token}, expected integers of 32 bits"):
        split(captions=captions)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64])
def test_integers_of_any_dtype(dtype):
    found = split(captions=split().captions.astype(dtype), image_idxs=np.array([0, 1], dtype))
    assert found.captions.dtype == found.image_idxs.dtype == np.int32
    np.testing.assert_array_equal(found.captions, split().captions)


def test_complex_features_are_refused():
    with pytest.raises(ValueError, match="features: found dtype complex64, expected a floating-point dtype"):
        split(features=np.zeros((2, 3), np.complex64))


def test_features_that_are_not_finite():
    features = np.array([[0.0, 1.0, 2.0], [3.0, np.nan, 5.0]])
    with pytest.raises(ValueError, match="features: found NaN or infinity in row 1, b, expected finite"):
        split(features=features)
    with pytest.raises(ValueError, match="names: found 1 entries, expected one for each of 2 images"):
        split(features=features, names=("a",))


def test_an_image_without_a_list_of_references():
    with pytest.raises(TypeError, match="references: found None, expected a list of sentences for each"):
        split(references=[["x"], None])


def test_features_that_are_no_array():
    with pytest.raises(TypeError, match="features: found a list, expected an array"):
        split(features=[[1.0, 2.0], [3.0, 4.0]])


def test_model_inputs_are_the_features_themselves():
    one = split()
    assert one.model_inputs is one.features
    two = split(global_features=np.ones((2, 5), np.float32))
    assert two.model_inputs[0] is two.features
    assert two.model_inputs[1] is two.global_features


def test_a_caption_starts_once():
    wrong = split(captions=np.array([[1, 4, 2, 0], [1, 1, 4, 2]]))
    with pytest.raises(ValueError, match=r"row 1 = \[1, 1, 4, 2\], expected <START> in the first place only"):
        wrong.check_tokens(Vocabulary(["x", "y"]))


@pytest.mark.parametrize("caption", [[1, 4, 2, 5], [1, 4, 2, 2], [1, 2, 0, 4], [1, 0, 4, 2]])
def test_padding_comes_after_the_end_and_nothing_else(caption):
    vocabulary = Vocabulary(["x", "y"])
    split().check_tokens(vocabulary)
    wrong = split(captions=np.array([[1, 4, 2, 0], caption]))
    with pytest.raises(ValueError, match=r"captions: found row 1 = .*, expected <NULL> alone after <END>"):
        wrong.check_tokens(vocabulary)


@pytest.mark.parametrize(
    "references", [["a dog", "a cat"], [["a dog"], "a cat"], {0: ["x"], 1: ["y"]}, [[1], [2]], None]
)
def test_references_are_lists_of_sentences(references):
    with pytest.raises(TypeError, match="references: found .*, expected a list of sentences for each image"):
        split(references=references)


def test_its_repr_is_one_line():
    assert repr(split()) == "CaptionSplit(2 images, 2 captions, features (2, 3) float32)"
