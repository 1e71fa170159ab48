"""An example for each training image with several of its captions."""

import re

import numpy as np
import pytest

from rnnlab.data import CaptionData, CaptionedImages, CaptionGroups, LazyFeatures

from .test_captions import small


def with_counts(rng, counts, name="train"):
    """Data whose image n of a split has counts[n] captions, in a random order."""
    data = small(rng, images=len(counts))
    split = data.split(name)
    image_idxs = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    captions = np.tile(data.split("val").captions[:1], (len(image_idxs), 1))
    data.splits[name] = type(split)(split.features, captions, image_idxs, split.names, split.references)
    return data


def examples_of(groups, seed, batch_size=2):
    rng = None if seed is None else np.random.default_rng(seed)
    return np.concatenate(groups.epoch("train", batch_size, rng))


def test_repr_has_the_sizes(rng):
    data = small(rng, images=7)
    assert repr(CaptionGroups(data, 2)) == f"CaptionGroups(2 captions of 7 images of {data!r})"


def test_the_length_of_an_image_is_that_of_its_captions(rng):
    groups = CaptionGroups(small(rng, images=7), 2)
    rows = np.array([[0, 1], [4, 5], [9, 8]])
    found = groups.row_lengths("train", rows)
    assert found.tolist() == [2 + 3, 3 + 4, 2 + 4]
    for row, length in zip(rows, found, strict=True):
        assert groups.num_tokens(groups.batch("train", row[None])) == length


@pytest.mark.parametrize("seed", [None, 0])
def test_an_epoch_has_every_caption_once_where_there_are_as_many(rng, seed):
    groups = CaptionGroups(small(rng, images=7), 2)
    epoch = groups.epoch("train", 3, None if seed is None else np.random.default_rng(seed))
    assert [batch.shape for batch in epoch] == [(3, 2), (3, 2), (1, 2)]
    np.testing.assert_array_equal(np.sort(np.concatenate(epoch), axis=None), np.arange(14))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_captions_are_of_one_image_and_differ_where_there_are_enough(rng, seed):
    counts = np.array([3, 1, 7, 2, 4])
    data = with_counts(rng, counts)
    examples = examples_of(CaptionGroups(data, 3), seed)
    images = data.split("train").image_idxs[examples]
    assert (images == images[:, :1]).all()
    np.testing.assert_array_equal(np.sort(images[:, 0]), np.arange(5))
    for captions, image in zip(examples, images[:, 0], strict=True):
        assert len(set(captions)) == min(3, counts[image])  # all of an image with fewer


def test_every_caption_is_drawn_equally_often(rng):
    data = with_counts(rng, [5, 2])
    groups, found = CaptionGroups(data, 3), np.zeros(7)
    order = np.random.default_rng(0)
    for _ in range(2000):
        np.add.at(found, np.concatenate(groups.epoch("train", 1, order)), 1)
    images = data.split("train").image_idxs
    np.testing.assert_allclose(found[images == 0] / 2000, 3 / 5, atol=0.05)
    np.testing.assert_allclose(found[images == 1] / 2000, 3 / 2, atol=0.05)


def test_an_epoch_follows_from_the_generator(rng):
    groups = CaptionGroups(with_counts(rng, [5, 2, 4]), 3)
    np.testing.assert_array_equal(examples_of(groups, 4), examples_of(groups, 4))
    assert not np.array_equal(examples_of(groups, 4), examples_of(groups, 5))
    np.testing.assert_array_equal(examples_of(groups, None), examples_of(groups, None))


def test_a_batch_has_each_image_once(rng):
    data = small(rng)
    groups, split = CaptionGroups(data, 2), data.split("train")
    indices = np.array([[8, 9], [1, 0], [3, 3]])
    features, captions = groups.batch("train", indices)
    np.testing.assert_array_equal(features, split.features[[4, 0, 1]])
    np.testing.assert_array_equal(captions, split.captions[indices])
    assert groups.num_examples((features, captions)) == 6
    assert groups.num_tokens((features, captions)) == data.num_tokens((None, split.captions[indices.ravel()]))


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("per_image", [1, 3, 9])
def test_validation_has_each_image_once_with_all_its_captions(rng, seed, per_image):
    counts = np.array([3, 1, 7, 0, 2, 3, 3, 4, 1])
    data = with_counts(rng, counts, "val")
    order = None if seed is None else np.random.default_rng(seed)
    epoch = CaptionGroups(data, per_image).epoch("val", 2, order)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([batch.ravel() for batch in epoch])), np.arange(counts.sum())
    )
    images = [data.split("val").image_idxs[batch] for batch in epoch]
    for batch in images:
        np.testing.assert_array_equal(batch, np.tile(batch[:, :1], batch.shape[1]))
        assert batch.size < 2 * per_image + batch.shape[1]
        assert (counts[batch[:, 0]] == batch.shape[1]).all()
    seen = np.concatenate([batch[:, 0] for batch in images])
    np.testing.assert_array_equal(np.sort(seen), np.flatnonzero(counts))
    in_order = sorted(np.flatnonzero(counts), key=lambda image: counts[image])
    assert np.array_equal(seen, in_order) == (seed is None)


def test_batches_of_validation_have_s_times_as_many_captions(rng):
    data = small(rng, images=7)
    groups = CaptionGroups(data, 3)
    assert [batch.shape for batch in groups.epoch("val", 2)] == [(3, 2), (3, 2), (1, 2)]
    features, captions = groups.batch("val", groups.epoch("val", 2)[1])
    split = data.split("val")
    np.testing.assert_array_equal(features, split.features[3:6])
    np.testing.assert_array_equal(captions, split.captions[6:12].reshape(3, 2, -1))


def test_validation_on_a_split_without_captions(rng):
    assert CaptionGroups(with_counts(rng, [0, 0], "val"), 2).epoch("val", 4) == []


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_batch_of_no_images(rng, split):
    with pytest.raises(ValueError, match="epoch: batch_size is 0, expected at least 1"):
        CaptionGroups(small(rng), 2).epoch(split, 0)


def test_a_checkpoint_also_saves_the_number_of_captions(rng):
    data = small(rng)
    saved = CaptionGroups(data, 2).fingerprint()
    assert saved == data.fingerprint() | {"captions per image": "2"}


def test_images_without_a_caption_are_no_examples(rng):
    data = with_counts(rng, [2, 0, 3])
    examples = examples_of(CaptionGroups(data, 2), 0)
    np.testing.assert_array_equal(np.sort(data.split("train").image_idxs[examples[:, 0]]), [0, 2])
    assert CaptionGroups(with_counts(rng, [0, 0]), 2).epoch("train", 2, rng) == []


def test_features_are_lazy_and_global_ones_beside_local_ones(shapes):
    data = CaptionData.from_course(shapes, features="local", global_features="pca", lazy=True)
    split = data.split("train")
    assert isinstance(split.features, LazyFeatures)
    groups = CaptionGroups(data, 5)
    assert not groups.in_memory
    examples = examples_of(groups, 0, 8)
    np.testing.assert_array_equal(np.sort(examples, axis=None), np.arange(200))
    (regions, vectors), captions = groups.batch("train", examples[:8])
    images = split.image_idxs[examples[:8, 0]]
    np.testing.assert_array_equal(regions, split.features[images])
    np.testing.assert_array_equal(vectors, split.global_features[images])
    assert captions.shape[:2] == (8, 5)


@pytest.mark.parametrize("count", [0, 2.5, "5", True])
def test_captions_per_image_is_an_integer_of_at_least_1(rng, count):
    message = f"CaptionGroups: captions_per_image is {count!r}, expected an integer of at least 1"
    with pytest.raises(ValueError, match=re.escape(message)):
        CaptionGroups(small(rng), count)


@pytest.mark.parametrize("wrapper", [CaptionedImages, lambda data: CaptionGroups(data, 2)])
def test_data_that_are_wrapped_already_are_refused(rng, wrapper):
    with pytest.raises(TypeError, match="CaptionGroups: data is of type Caption.*, expected CaptionData"):
        CaptionGroups(wrapper(small(rng)), 2)
