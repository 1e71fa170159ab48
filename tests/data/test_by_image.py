"""An example for each training image."""

import numpy as np
import pytest

from rnnlab.data import CaptionData, CaptionedImages, LazyFeatures

from .test_captions import small


@pytest.mark.parametrize("batch_size", [1, 4, 99])
@pytest.mark.parametrize("seed", [None, 0])
def test_an_epoch_has_every_image_once(rng, batch_size, seed):
    images = CaptionedImages(small(rng, images=7))
    epoch = images.epoch("train", batch_size, None if seed is None else np.random.default_rng(seed))
    assert all(len(batch) == batch_size for batch in epoch[:-1])
    order = np.concatenate(epoch)
    np.testing.assert_array_equal(np.sort(order), np.arange(7))
    assert np.array_equal(order, np.arange(7)) == (seed is None)


def test_a_batch_has_features_and_examples(rng):
    data = small(rng)
    images = CaptionedImages(data)
    features, examples = images.batch("train", np.array([4, 0]))
    np.testing.assert_array_equal(features, data.split("train").features[[4, 0]])
    np.testing.assert_array_equal(examples, [4, 0])


def test_repr_has_the_sizes(rng):
    data = small(rng, images=7)
    assert repr(CaptionedImages(data)) == f"CaptionedImages(7 images of {data!r})"


def test_validation_is_by_captions(rng):
    data = small(rng)
    images = CaptionedImages(data)
    assert sum(map(len, images.epoch("val", 5))) == 12
    features, captions = images.batch("val", np.array([3]))
    np.testing.assert_array_equal(features, data.batch("val", np.array([3]))[0])
    assert captions.shape == (1, 6)
    assert images.num_tokens((features, captions)) == data.num_tokens((features, captions))


def test_a_checkpoint_saves_the_same(rng):
    data = small(rng)
    images = CaptionedImages(data)
    assert images.fingerprint() == data.fingerprint()
    assert images.preprocessing().keys() == data.preprocessing().keys()
    assert images.vocabulary == data.vocabulary
    assert images.in_memory


def test_images_without_a_caption_are_no_examples(rng):
    data = small(rng, images=6, max_train=3)
    images = CaptionedImages(data)
    chosen = np.unique(data.split("train").image_idxs)
    np.testing.assert_array_equal(images.images, chosen)
    features, _ = images.batch("train", np.arange(len(chosen)))
    np.testing.assert_array_equal(features, data.split("train").features[chosen])
    assert len(images.references()) == len(chosen) <= 3


def test_lazy_features_are_read_in_blocks(shapes, monkeypatch):
    monkeypatch.setattr("rnnlab.data.lazy.BLOCK_BYTES", 1000)  # several blocks
    data = CaptionData.from_course(shapes, lazy=True)
    assert isinstance(data.split("train").features, LazyFeatures)
    images = CaptionedImages(data)
    assert not images.in_memory
    order = np.concatenate(images.epoch("train", 8, np.random.default_rng(0)))
    np.testing.assert_array_equal(np.sort(order), np.arange(len(images.images)))
    in_few_blocks = data.split("train").features.epoch_order(images.images, np.random.default_rng(0))
    np.testing.assert_array_equal(order, in_few_blocks)
    features, _ = images.batch("train", order[:8])
    assert features.shape == (8, data.num_features)


def test_references_are_all_sentences_of_an_image(rng):
    assert CaptionedImages(small(rng, images=2)).references() == [[["a"], ["a", "b"]]] * 2


def test_an_image_without_references_is_named(rng):
    data = small(rng, images=3)
    data.split("train").references[1] = ["...", ""]
    with pytest.raises(ValueError, match=r"image http://host/train/1.png has no sentence with words"):
        CaptionedImages(data).references()
