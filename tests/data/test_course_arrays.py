import os
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab.data import course_arrays, decode_captions, load_coco_data, sample_coco_minibatch

KEYS = [
    "train_captions",
    "train_image_idxes",
    "val_captions",
    "val_image_idxes",
    "train_features",
    "val_features",
    "idx_to_word",
    "word_to_idx",
    "train_urls",
    "val_urls",
]
real = pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")


def test_keys_shapes_and_dtypes_are_the_course_s(shapes):
    data = load_coco_data(shapes)
    assert list(data) == KEYS
    for split, images in (("train", 40), ("val", 8)):
        assert data[f"{split}_captions"].shape == (5 * images, 17)
        assert data[f"{split}_image_idxes"].shape == (5 * images,)
        assert data[f"{split}_features"].shape == (images, 39)
        assert data[f"{split}_captions"].dtype == data[f"{split}_image_idxes"].dtype == np.int32
        assert data[f"{split}_features"].dtype == np.float32
        assert data[f"{split}_urls"].shape == (images,)
        assert data[f"{split}_urls"].dtype.kind == "U"
    assert type(data["idx_to_word"]) is list
    assert type(data["word_to_idx"]) is dict


def test_both_spellings_of_the_indices_are_read(shapes, shapes_copy):
    with h5py.File(shapes_copy / "coco2014_captions.h5", "r+") as file:
        for split in ("train", "val"):
            file.move(f"{split}_image_idxs", f"{split}_image_idxes")
    first, second = load_coco_data(shapes), load_coco_data(shapes_copy)
    np.testing.assert_array_equal(first["train_image_idxes"], second["train_image_idxes"])


def test_max_train_draws_captions(shapes):
    first, second = load_coco_data(shapes, max_train=50), load_coco_data(shapes, max_train=50)
    assert first["train_captions"].shape == (50, 17)
    assert first["train_features"].shape[0] == 40
    np.testing.assert_array_equal(first["train_captions"], second["train_captions"])
    other = load_coco_data(shapes, max_train=50, rng=np.random.default_rng(1))
    from_seed = load_coco_data(shapes, max_train=50, rng=1)
    np.testing.assert_array_equal(from_seed["train_captions"], other["train_captions"])
    with pytest.raises(TypeError, match="load_coco_data: rng is None, expected a numpy Generator or a seed"):
        load_coco_data(shapes, max_train=50, rng=None)
    assert not np.array_equal(first["train_captions"], other["train_captions"])
    assert len(load_coco_data(shapes, max_train=9999)["train_captions"]) == 200


def test_features_before_pca(shapes, shapes_copy):
    with pytest.raises(
        FileNotFoundError, match=r"train2014_vgg16_fc7.h5: found no such file.*pca_features=True"
    ):
        load_coco_data(shapes, pca_features=False)
    for split in ("train", "val"):
        path = shapes_copy / f"{split}2014_vgg16_fc7_pca.h5"
        path.rename(shapes_copy / f"{split}2014_vgg16_fc7.h5")
    assert load_coco_data(shapes_copy, pca_features=False)["train_features"].shape == (40, 39)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_coco_data(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_coco_data(tmp_path / "nowhere", pca_features=False)


def test_where_it_reads_when_it_is_not_told(monkeypatch, shapes, tmp_path):
    monkeypatch.setenv("RNNLAB_SHAPES", str(shapes))
    monkeypatch.delenv("RNNLAB_DATA", raising=False)
    assert course_arrays.default_directory() == shapes
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    assert course_arrays.default_directory() == shapes
    assert len(load_coco_data()["val_captions"]) == 40
    (tmp_path / "flickr8k_cs231n").mkdir()
    assert course_arrays.default_directory() == tmp_path / "flickr8k_cs231n"
    (tmp_path / "coco_captioning").mkdir()
    assert course_arrays.default_directory() == tmp_path / "coco_captioning"
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"RNNLAB_DATA is '.*nowhere', expected an existing folder"):
        load_coco_data()


def test_minibatches_are_rows_that_belong_together(shapes, rng):
    data = load_coco_data(shapes)
    captions, features, urls = sample_coco_minibatch(data, batch_size=300, split="val", rng=rng)
    assert captions.shape == (300, 17)
    assert features.shape == (300, 39)
    images = [int(url.split("_")[1].split(".")[0]) for url in urls]
    np.testing.assert_array_equal(features, data["val_features"][images])
    belongs = data["val_captions"].reshape(8, 5, 17)
    for caption, image in zip(captions, images, strict=True):
        assert (belongs[image] == caption).all(axis=1).any()
    assert set(images) == set(range(8))


def test_minibatches_follow_the_generator(shapes):
    data = load_coco_data(shapes)
    with pytest.raises(
        TypeError, match="sample_coco_minibatch: rng is 5, expected a numpy Generator or None"
    ):
        sample_coco_minibatch(data, rng=5)
    first, second = (sample_coco_minibatch(data, rng=np.random.default_rng(5)) for _ in range(2))
    assert len(first[0]) == 100
    np.testing.assert_array_equal(first[2], second[2])
    draws = [sample_coco_minibatch(data)[2].tolist() for _ in range(2)]
    assert draws[0] != draws[1]
    with pytest.raises(KeyError, match="no split 'dev', only the keys train_captions"):
        sample_coco_minibatch(data, split="dev")


def test_decoding_is_the_course_s():
    idx_to_word = ["<NULL>", "<START>", "<END>", "<UNK>", "a", "dog"]
    captions = np.array([[1, 4, 5, 2, 0], [4, 3, 0, 5, 5]])
    assert decode_captions(captions, idx_to_word) == ["<START> a dog <END>", "a <UNK> dog dog"]
    assert decode_captions(captions[0], idx_to_word) == "<START> a dog <END>"
    assert decode_captions(captions[:0], idx_to_word) == []
    assert decode_captions([], idx_to_word) == ""
    with pytest.raises(IndexError, match="token 6 is outside the 6 words"):
        decode_captions([6], idx_to_word)
    for shape in ((), (2, 3, 4), (0, 3, 4)):
        message = (
            rf"^decode_captions: captions has shape {re.escape(str(shape))}, expected \(N, L\) or \(L,\)"
        )
        with pytest.raises(ValueError, match=message):
            decode_captions(np.ones(shape, int), idx_to_word)
    with pytest.raises(ValueError, match="^decode_captions: captions has rows of different lengths"):
        decode_captions([[4, 5], [4]], idx_to_word)
    with pytest.raises(TypeError, match="^decode_captions: captions has dtype float64, expected integers"):
        decode_captions([4.0], idx_to_word)


@real
def test_real_data():
    data = load_coco_data(Path(os.environ["RNNLAB_DATA"]) / "flickr8k_cs231n", max_train=50)
    assert data["train_captions"].shape == (50, 17)
    assert data["val_captions"].shape == (5000, 17)
    assert data["train_features"].shape == (6000, 512)
    assert len(data["idx_to_word"]) == len(data["word_to_idx"]) == 1004
