from dataclasses import replace

import numpy as np
import pytest

from rnnlab.data import CaptionData, CaptionSplit, LazyFeatures, Vocabulary, load_coco_data
from rnnlab.data.photographs import ImageEncoding, Preprocessing
from rnnlab.data.vocabulary import END, START


@pytest.fixture
def data(shapes):
    return CaptionData.from_course(shapes)


def small(rng, *, splits=("train", "val"), images=6, dims=4, **options):
    vocabulary = Vocabulary(["a", "b", "c"])
    made = {}
    for split in splits:
        captions = np.stack([vocabulary.encode(list("abc"[: 1 + n % 3]), 6) for n in range(2 * images)])
        features = rng.normal(3, 2, (images, dims)).astype(np.float32)
        names = tuple(f"http://host/{split}/{n}.png" for n in range(images))
        references = [["a", "a b"]] * images
        made[split] = CaptionSplit(features, captions, np.repeat(np.arange(images), 2), names, references)
    return CaptionData(vocabulary, made, **options)


def test_lengths_of_rows_are_their_numbers_of_tokens(rng):
    data = small(rng)
    rows = np.array([5, 0, 2, 2])
    assert data.row_lengths("train", rows).tolist() == [4, 2, 4, 4]  # words and <END>
    assert data.row_lengths("train", rows).sum() == data.num_tokens(data.batch("train", rows))


def test_splits_are_caption_splits(rng):
    vocabulary, split = small(rng).vocabulary, small(rng).split("train")
    for splits, message in (
        (split, "splits is a CaptionSplit, expected a dict of CaptionSplits by name"),
        ({"train": split, "val": (1, 2)}, "splits has a tuple as val, expected a CaptionSplit"),
    ):
        with pytest.raises(TypeError, match=f"CaptionData: {message}"):
            CaptionData(vocabulary, splits)


@pytest.mark.parametrize("batch_size", [1, 7, 200, 999])
@pytest.mark.parametrize("seed", [None, 0])
def test_an_epoch_has_every_caption_once(data, batch_size, seed):
    batches = data.epoch("train", batch_size, None if seed is None else np.random.default_rng(seed))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    assert 1 <= len(batches[-1]) <= batch_size
    order = np.concatenate(batches)
    np.testing.assert_array_equal(np.sort(order), np.arange(200))
    assert np.array_equal(order, np.arange(200)) == (seed is None)


def test_epochs_depend_on_the_generator_alone(data):
    first, second = (data.epoch("train", 32, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))
    rng = np.random.default_rng(4)
    data.epoch("train", 32, rng)
    assert not np.array_equal(data.epoch("train", 32, rng)[0], first[0])


def test_a_split_without_captions_has_an_empty_epoch(rng):
    data = small(rng)
    split = data.split("train")
    data.splits["train"] = replace(split, captions=split.captions[:0], image_idxs=split.image_idxs[:0])
    assert data.epoch("train", 4, rng) == []


def test_a_batch_joins_captions_with_their_images(data):
    features, captions = data.batch("val", np.array([0, 4, 5, 11]))
    split = data.split("val")
    np.testing.assert_array_equal(features, split.features[[0, 0, 1, 2]])
    np.testing.assert_array_equal(captions, split.captions[[0, 4, 5, 11]])
    assert features.dtype == np.float32
    assert captions.dtype == np.int32


def test_tokens_to_predict_are_words_and_the_end(rng):
    data = small(rng)
    batch = data.batch("train", np.arange(3))
    assert data.num_tokens(batch) == (1 + 1) + (2 + 1) + (3 + 1)


def test_standardised_by_the_training_split(shapes):
    raw, data = (CaptionData.from_course(shapes, standardise=flag) for flag in (False, True))
    np.testing.assert_array_equal(raw.scaling["features"].mean, 0)
    np.testing.assert_array_equal(raw.scaling["features"].std, 1)
    train = data.split("train").features
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-5)
    varying = raw.split("train").features.std(axis=0) > 1e-5
    np.testing.assert_allclose(train[:, varying].std(axis=0), 1, rtol=1e-4)
    for split in ("train", "val"):
        np.testing.assert_allclose(
            data.standardise(raw.split(split).features), data.split(split).features, rtol=1e-6
        )
    assert data.standardise(np.zeros(data.num_features)).dtype == np.float32


def test_constant_features_are_not_blown_up(rng):
    data = small(rng)
    data.splits["train"].features[:, 1] = 7
    data = CaptionData(data.vocabulary, data.splits, standardise=True)
    assert data.scaling["features"].std[1] == 1
    np.testing.assert_array_equal(data.split("train").features[:, 1], 0)


def test_lazy_features_give_the_same_batches(shapes, rng, monkeypatch):
    monkeypatch.setattr("rnnlab.data.lazy.BLOCK_BYTES", 1000)  # several blocks
    memory, lazy = (CaptionData.from_course(shapes, lazy=flag) for flag in (False, True))
    train = lazy.split("train")
    assert isinstance(train.features, LazyFeatures)
    order = np.concatenate(lazy.epoch("train", 16, np.random.default_rng(0)))
    in_few_blocks = train.features.epoch_order(train.image_idxs, np.random.default_rng(0))
    np.testing.assert_array_equal(order, in_few_blocks)
    for batch in lazy.epoch("train", 16, rng):
        for expected, found in zip(memory.batch("train", batch), lazy.batch("train", batch), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [0, -1, "5", 2.5])
def test_a_bad_max_train(shapes, count):
    with pytest.raises(
        ValueError, match=rf"count \(max_train\) is {count!r}, expected an integer of at least 1"
    ):
        CaptionData.from_course(shapes, max_train=count)


def test_max_train_keeps_some_captions_and_all_images(shapes):
    whole, data = CaptionData.from_course(shapes), CaptionData.from_course(shapes, max_train=30)
    train = data.split("train")
    assert train.captions.shape == (30, 17)
    assert train.num_images == 40
    rows = {tuple(caption) for caption in whole.split("train").captions.tolist()}
    assert all(tuple(caption) in rows for caption in train.captions.tolist())
    np.testing.assert_array_equal(data.scaling["features"].mean, whole.scaling["features"].mean)
    again = CaptionData.from_course(shapes, max_train=30).split("train")
    np.testing.assert_array_equal(train.captions, again.captions)


def test_features_of_images_by_name(data, rng):
    found = data.features_of(["val_00003.png", "some/folder/train_00000.png"])
    expected = [data.split("val").features[3], data.split("train").features[0]]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(small(rng).features_of(["http://host/val/2.png"]).shape, (1, 4))
    with pytest.raises(KeyError, match="has no image 'x.png', expected one of its 54 images"):
        data.features_of(["x.png"])


def test_names_that_differ_in_their_folder_alone(rng):
    data = small(rng, splits=("train",), images=4)
    names = ("cat/1.jpg", "dog/1.jpg", "dog/2.jpg", "cat/3.jpg")
    split = replace(data.split("train"), names=names)
    data = CaptionData(data.vocabulary, {"train": split})
    found = data.features_of(["dog/1.jpg", "cat/1.jpg", "elsewhere/3.jpg", "2.jpg"])
    np.testing.assert_array_equal(found, split.features[[1, 0, 3, 2]])
    with pytest.raises(ValueError, match="'a/1.jpg' may be any of cat/1.jpg, dog/1.jpg"):
        data.features_of(["a/1.jpg"])


def test_a_name_of_several_images(rng):
    data = small(rng)
    for key, names in (("val", data.split("train").names), ("train", ("0.jpg", "1.jpg", "0.jpg", *"345"))):
        splits = data.splits | {key: replace(data.split(key), names=names)}
        with pytest.raises(ValueError, match=f"has several images '{names[0]}': splits and rows train 0, "):
            CaptionData(data.vocabulary, splits).features_of([names[0]])


def test_to_course_and_back(rng, tmp_path):
    data = small(rng)
    data.to_course(tmp_path / "made")
    with pytest.raises(
        FileExistsError, match=r"write_course: directory .*made already exists, expected no such"
    ):
        data.to_course(tmp_path / "made", features="full")
    back = CaptionData.from_course(tmp_path / "made", standardise=False)
    assert back.name == "made"
    assert back.image_dir is None
    assert back.vocabulary == data.vocabulary
    for name, split in data.splits.items():
        read = back.split(name)
        assert (read.names, read.references) == (split.names, split.references)
        for field in ("features", "captions", "image_idxs"):
            np.testing.assert_array_equal(getattr(read, field), getattr(split, field))


def test_without_references_they_are_the_captions(shapes_copy):
    (shapes_copy / "references.json").unlink()
    split = CaptionData.from_course(shapes_copy).split("train")
    assert len(split.references) == 40
    assert all(len(sentences) == 5 for sentences in split.references)
    assert split.references[7][2].split()[0] in ("a", "an", "the", "there", "only", "from", "in", "on", "at")


def test_from_the_dictionary_of_the_course(shapes):
    dictionary = load_coco_data(shapes, max_train=9)
    data = CaptionData.from_arrays(dictionary)
    np.testing.assert_array_equal(data.split("train").features, dictionary["train_features"])
    scaled = CaptionData.from_arrays(dictionary, standardise=True)
    np.testing.assert_array_equal(
        scaled.split("train").features, scaled.standardise(data.split("train").features)
    )
    assert not scaled.scaling["features"].is_identity
    assert list(data.splits) == ["train", "val"]
    assert data.split("train").captions.shape == (9, 17)
    assert data.split("val").names == tuple(dictionary["val_urls"])
    renamed = {key.replace("idxes", "idxs"): value for key, value in dictionary.items()}
    assert CaptionData.from_arrays(renamed, name="renamed").name == "renamed"
    del renamed["val_urls"]
    with pytest.raises(KeyError, match="from_arrays: found the keys .*, expected val_urls"):
        CaptionData.from_arrays(renamed)
    dictionary["val_captions"] = dictionary["val_captions"] + 900
    with pytest.raises(ValueError, match="from_arrays: val_captions: found token 901 at row 0"):
        CaptionData.from_arrays(dictionary)


def test_a_dictionary_is_no_folder(shapes):
    with pytest.raises(TypeError, match="directory is a dictionary, expected a folder: use from_arrays"):
        CaptionData.from_course(load_coco_data(shapes, max_train=9))


def test_refuses_splits_that_differ_and_none(rng):
    wide, narrow = small(rng), small(rng, dims=3)
    splits = {"train": wide.split("train"), "val": narrow.split("val")}
    with pytest.raises(
        ValueError, match=r"found \(6, 4\) in .*train.*, \(6, 3\) in .*val.*, expected one shape"
    ):
        CaptionData(wide.vocabulary, splits)
    with pytest.raises(ValueError, match="found no split, expected one shape"):
        CaptionData(wide.vocabulary, {})
    with pytest.raises(KeyError, match="not 'train'"):
        small(rng, splits=("val",), standardise=True)


def test_integer_dtypes_are_converted(rng):
    split = small(rng).split("train")
    made = CaptionSplit(
        split.features,
        split.captions.astype(np.int64),
        split.image_idxs.astype(np.uint8),
        split.names,
        split.references,
    )
    assert made.captions.dtype == made.image_idxs.dtype == np.int32
    assert (made.captions[:, 0] == START).all()
    assert (made.captions == END).any(axis=1).all()


def test_says_what_it_is(data):
    assert repr(data).startswith("CaptionData(shapes: train 40 images 200 captions, val 8 images")


def with_global_features(rng, **options):
    """Local features (3, 2, 4) and global ones (3, 5)."""
    data = small(rng)
    for name, split in data.splits.items():
        local, vectors = (rng.normal(7, 3, (split.num_images, *shape)) for shape in ((2, 4), (5,)))
        data.splits[name] = replace(
            split, features=local.astype(np.float32), global_features=vectors.astype(np.float32)
        )
    return CaptionData(data.vocabulary, data.splits, **options)


def test_global_features_come_beside_local_ones(rng):
    data = with_global_features(rng)
    split = data.split("train")
    (local, vectors), captions = data.batch("train", np.array([1, 0]))
    np.testing.assert_array_equal(local, split.features[split.image_idxs[[1, 0]]])
    np.testing.assert_array_equal(vectors, split.global_features[split.image_idxs[[1, 0]]])
    assert len(captions) == 2
    assert (data.num_features, data.num_global_features, data.in_memory) == (4, 5, True)
    assert data.inputs.reads == "a grid of vectors of 4 numbers and a vector of 5 numbers of each image"
    assert small(rng).inputs.reads == "one vector of 4 numbers of each image"
    split = data.split("val")
    local, vectors = data.features_of([split.names[2], split.names[0]])
    np.testing.assert_array_equal(local, split.features[[2, 0]])
    np.testing.assert_array_equal(vectors, split.global_features[[2, 0]])


def test_global_features_are_standardised_by_themselves(rng):
    raw = with_global_features(rng)
    data = CaptionData(raw.vocabulary, raw.splits, standardise=True)
    train = data.split("train")
    np.testing.assert_allclose(train.features.mean(axis=(0, 1)), 0, atol=1e-5)
    np.testing.assert_allclose(train.global_features.mean(axis=0), 0, atol=1e-5)
    local, vectors = data.standardise(raw.split("train").features_at(slice(None)))
    np.testing.assert_array_equal(local, train.features)
    np.testing.assert_array_equal(vectors, train.global_features)
    with pytest.raises(ValueError, match="found 1 array, expected one each of features, global_features"):
        data.standardise(local)


@pytest.mark.parametrize("lazy", [False, True])
def test_global_features_in_the_course_layout(rng, tmp_path, lazy):
    data = with_global_features(rng)
    data.to_course(tmp_path / "made", features="local", global_features="pca")
    back = CaptionData.from_course(
        tmp_path / "made", features="local", global_features="pca", standardise=False, lazy=lazy
    )
    assert back.in_memory is not lazy
    for split in data.splits:
        for found, expected in zip(
            *(each.split(split).features_at(slice(None)) for each in (back, data)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="global_features: found 'pca' with features 'full', expected"):
        CaptionData.from_course(tmp_path / "made", features="full", global_features="pca")


def test_global_features_that_do_not_fit(rng):
    split = small(rng).split("train")
    with pytest.raises(ValueError, match=r"global_features: found shape \(2, 5\), expected \(\d, G\)"):
        replace(split, global_features=np.zeros((2, 5), np.float32))
    data = with_global_features(rng)
    del data.splits["val"]
    data.splits["test"] = replace(data.split("train"), global_features=None)
    with pytest.raises(ValueError, match="global_features: found .*None in .*test.*, expected one shape"):
        CaptionData(data.vocabulary, data.splits)


def test_the_encoder_of_the_features_is_kept(rng, tmp_path):
    made = small(rng)
    encoding = ImageEncoding("/a/net.onnx", "12ab", "pool", False, Preprocessing(8))
    splits = {name: replace(split, encodings={"features": encoding}) for name, split in made.splits.items()}
    data = CaptionData(made.vocabulary, splits, standardise=True)
    assert data.inputs.encodings == {"features": encoding}
    assert data.preprocessing()["features_encoder"] == encoding.settings()
    assert data.preprocessing()["features_encoder_path"] == "/a/net.onnx"
    data.to_course(tmp_path / "scaled")  # these are not what the encoder makes
    assert CaptionData.from_course(tmp_path / "scaled").encodings == {}
    CaptionData(made.vocabulary, splits).to_course(tmp_path / "made")
    found = CaptionData.from_course(tmp_path / "made", lazy=True).encodings["features"]
    assert found.same_as(encoding)
    other = replace(encoding, sha256="34cd")
    splits["val"] = replace(splits["val"], encodings={"features": other})
    with pytest.raises(
        ValueError, match=r"found features by net\.onnx \(34cd\), .* expected by net\.onnx \(12ab\)"
    ):
        CaptionData(made.vocabulary, splits)
    splits["val"] = replace(splits["val"], encodings={})
    with pytest.raises(ValueError, match="found features by no recorded encoder, expected by net"):
        CaptionData(made.vocabulary, splits)


def test_images_are_found_by_either_form_of_a_name(data, rng):
    some = small(rng)
    split = some.split("val")
    some.splits["val"] = replace(split, names=("\u00e9.png", *split.names[1:]))
    np.testing.assert_array_equal(some.features_of(["e\u0301.png"]), some.features_of(["\u00e9.png"]))
    with pytest.raises(ValueError, match="features_of: names is empty, expected at least one image"):
        some.features_of([])
    with pytest.raises(TypeError, match="features_of: names is '0.jpg', expected a list of names"):
        some.features_of("0.jpg")
