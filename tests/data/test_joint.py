"""The same images with different features."""

from dataclasses import replace

import numpy as np
import pytest

from rnnlab.data import CaptionData, CaptionSplit, Vocabulary
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.joint import JointCaptionData, JointCaptionInputs
from rnnlab.data.scaling import FeatureScaling, Scaling

VOCABULARY = Vocabulary(["a", "b", "c"])


def build(rng, shape=(3,), *, global_dim=None, splits=("train", "val"), **changes):
    """Four images with two captions each."""
    made = {}
    for split in splits:
        features = rng.standard_normal((4, *shape)).astype(np.float32)
        vectors = None if global_dim is None else rng.standard_normal((4, global_dim)).astype(np.float32)
        captions = np.stack([VOCABULARY.encode(list("abc"[: 1 + n % 3]), 6) for n in range(8)])
        names = tuple(f"{split}_{n}.png" for n in range(4))
        whole = CaptionSplit(
            features,
            captions,
            np.repeat(np.arange(4), 2),
            names,
            [["a", "a b"]] * 4,
            global_features=vectors,
        )
        made[split] = replace(whole, **changes)
    return CaptionData(VOCABULARY, made)


def test_inputs_are_those_of_all_data_in_their_order(rng):
    data = [build(rng), build(rng, (2, 5), global_dim=6), build(rng, (4,))]
    joint = JointCaptionData(dict(zip("abc", data, strict=True)))
    assert joint.num_arrays == [1, 2, 1]
    split, indices = joint.split("val"), np.array([5, 0])
    splits = [each.split("val") for each in data]
    arrays = [splits[0].features, splits[1].features, splits[1].global_features, splits[2].features]
    for found, expected in zip(split.model_inputs, arrays, strict=True):
        assert found is expected
    features, captions = joint.batch("val", indices)
    np.testing.assert_array_equal(captions, splits[0].captions[indices])
    for found, expected in zip(features, arrays, strict=True):
        np.testing.assert_array_equal(found, expected[[2, 0]])
    for found, expected in zip(joint.features_of(["val_3.png", "val_1.png"]), arrays, strict=True):
        np.testing.assert_array_equal(found, expected[[3, 1]])
    assert (split.num_images, split.names, joint.vocabulary) == (4, splits[0].names, VOCABULARY)


def test_splits_are_those_of_all_data(rng):
    joint = JointCaptionData({"a": build(rng), "b": build(rng, splits=("train", "test"))})
    assert joint.splits == ["train"]
    with pytest.raises(KeyError, match="has the splits train, test, not 'val'"):
        joint.split("val")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ("x", "y", "z", "w")}, "b: split val: images 0: found 'x', expected 'val_0.png' as a"),
        (
            {"references": [["a", "a b"]] * 3 + [["a"]]},
            r"b: split val: references 3: found \['a'\], expected \['a', 'a b'\] as a",
        ),
        ({"image_idxs": np.arange(8) % 4}, "b: split val: found other image_idxs than those of a"),
        (
            {"captions": np.stack([VOCABULARY.encode(["a"], 3)] * 8)},
            "b: split val: found other captions than those of a, expected data of the same captions",
        ),
    ],
)
def test_other_images_and_captions(changes, message, rng):
    joint = JointCaptionData({"a": build(rng), "b": build(rng, **changes)})
    with pytest.raises(ValueError, match=message):
        joint.split("val")


def test_another_number_of_images(rng):
    fewer = build(rng)
    split = fewer.split("val")
    fewer.splits["val"] = CaptionSplit(
        split.features[:2], split.captions[:4], split.image_idxs[:4], split.names[:2], split.references[:2]
    )
    joint = JointCaptionData({"a": build(rng), "b": fewer})
    with pytest.raises(ValueError, match="b: split val: found 2 images, expected the 4 of a"):
        joint.split("val")


def test_an_image_that_only_some_data_have(rng):
    joint = JointCaptionData({"a": build(rng), "b": build(rng, splits=("train",))})
    with pytest.raises(KeyError, match="^b: captions has no image 'val_1.png'"):
        joint.features_of(["val_1.png"])


def test_a_name_that_some_data_have_twice(rng):
    twice = build(rng)
    val = twice.splits["val"]
    twice.splits["val"] = replace(val, names=("val_0.png", "val_0.png", *val.names[2:]))
    joint = JointCaptionData({"a": build(rng), "b": twice})
    with pytest.raises(ValueError, match="^b: captions has several images 'val_0.png'"):
        joint.features_of(["val_0.png"])


def inputs(mean, D=2):
    scaling = Scaling(np.full(D, mean, np.float32), np.full(D, 2, np.float32))
    return CaptionInputs(VOCABULARY, FeatureScaling({"features": scaling}))


def test_features_are_scaled_for_each_model():
    joint = JointCaptionInputs({"a": inputs(1), "b": inputs(3), "c": inputs(1)})
    first, second, third = joint.standardise(np.array([[1.0, 3.0]]))
    np.testing.assert_array_equal(first, [[0, 1]])
    np.testing.assert_array_equal(second, [[-1, 0]])
    assert third is first
    assert joint.num_arrays == [1, 1, 1]
    assert joint.num_global_features is None


def test_features_that_do_not_fit_one_model():
    joint = JointCaptionInputs({"a": inputs(1), "b": inputs(1, D=3)})
    with pytest.raises(
        ValueError, match=r"f\.h5, for b: features: found shape \(1, 2\), expected \(\.\.\., 3\)"
    ):
        joint.standardise(np.array([[1.0, 3.0]]), "f.h5")


def test_models_of_two_kinds_do_not_read_one_file():
    grid = CaptionInputs(VOCABULARY, FeatureScaling({"features": Scaling.identity(2)}), reads_grid=True)
    joint = JointCaptionInputs({"a": inputs(1), "b": grid})
    with pytest.raises(
        ValueError, match="b reads a grid of vectors of 2 numbers .* a one vector of 2 numbers"
    ):
        joint.standardise(np.array([[1.0, 3.0]]))


def test_a_model_without_an_encoder_is_named(tmp_path):
    joint = JointCaptionInputs({"a": inputs(1), "b": inputs(3)})
    assert not joint.knows_encoders
    assert joint.encodings == {}
    with pytest.raises(ValueError, match="^a: the features .* do not record which encoder"):
        joint.encode([tmp_path / "photo.png"])
