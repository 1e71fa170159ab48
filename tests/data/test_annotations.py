import json
import os
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab.data import (
    LazyFeatures,
    open_annotated,
    open_features,
    read_coco,
    read_features,
    read_karpathy,
)

KARPATHY = {
    "dataset": "toy",
    "images": [
        {"filename": "b.jpg", "split": "train", "sentences": [{"raw": "A dog runs ."}, {"raw": "The dog!"}]},
        {"filename": "c.jpg", "split": "val", "sentences": [{"raw": "A zebra runs."}]},
        {"filename": "a.jpg", "split": "restval", "sentences": [{"raw": "a dog and a cat"}]},
    ],
}
COCO = {
    "images": [
        {"id": 7, "file_name": "b.jpg"},
        {"id": 3, "file_name": "a.jpg"},
        {"id": 5, "file_name": "d.jpg"},
    ],
    "annotations": [
        {"image_id": 3, "caption": "a cat"},
        {"image_id": 7, "caption": "A dog."},
        {"image_id": 3, "caption": "a dog"},
    ],
}
FEATURES = np.arange(12, dtype=np.float16).reshape(4, 3)


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "features.h5"
    with h5py.File(path, "w") as file:
        file["features"] = FEATURES
        file["filenames"] = ["a.jpg", "unused.jpg", "b.jpg", "c.jpg"]
    return path


def written(path, content):
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def karpathy(tmp_path):
    return written(tmp_path / "dataset_toy.json", KARPATHY)


@pytest.mark.parametrize("lazy", [False, True])
def test_karpathy(karpathy, features, lazy, tmp_path):
    annotations = read_karpathy(karpathy)
    data = open_annotated(annotations, features, images=tmp_path, min_count=1, standardise=False, lazy=lazy)
    assert (data.name, data.image_dir) == ("dataset_toy.json", tmp_path)
    train, val = data.split("train"), data.split("val")
    assert train.names == ("b.jpg", "a.jpg")
    assert isinstance(train.features, LazyFeatures) == lazy
    np.testing.assert_array_equal(train.features[:], FEATURES[[2, 0]].astype(np.float32))
    np.testing.assert_array_equal(val.features[:], FEATURES[[3]])
    np.testing.assert_array_equal(train.image_idxs, [0, 0, 1])
    assert train.references == [["A dog runs .", "The dog!"], ["a dog and a cat"]]
    assert train.captions.shape == (3, 22)
    assert [data.vocabulary.decode(row) for row in train.captions] == [
        "a dog runs",
        "the dog",
        "a dog and a cat",
    ]
    assert data.vocabulary.decode(val.captions[0]) == "a <UNK> runs", (
        "the vocabulary is that of the training split"
    )


def test_names_in_decomposed_unicode(tmp_path, karpathy):
    """On a Mac the name of a photograph may have an umlaut as two characters."""
    composed, decomposed = "B\u00e4r.jpg", "Ba\u0308r.jpg"
    path, content = tmp_path / "features.h5", json.dumps(KARPATHY).replace("b.jpg", composed)
    with h5py.File(path, "w") as file:
        file["features"] = FEATURES
        file["filenames"] = ["a.jpg", "unused.jpg", decomposed, "c.jpg"]
    annotations = read_karpathy(written(tmp_path / "dataset.json", json.loads(content)))
    train = open_annotated(annotations, path, min_count=1, standardise=False).split("train")
    np.testing.assert_array_equal(train.features[:], FEATURES[[2, 0]].astype(np.float32))
    assert open_features(path)[0][2] == decomposed  # the name of the file


def test_rare_words_and_long_captions(karpathy, features):
    data = open_annotated(read_karpathy(karpathy), features, min_count=2, max_words=3, max_train=2)
    assert data.vocabulary.idx_to_word[4:] == ["a", "dog"]
    train = data.split("train")
    assert train.captions.shape == (2, 5)
    whole = open_annotated(read_karpathy(karpathy), features, min_count=2, max_words=3)
    assert whole.vocabulary.decode(whole.split("train").captions[2]) == "a dog <UNK>"
    np.testing.assert_allclose(whole.split("train").features.mean(axis=0), 0, atol=1e-6)


def test_the_most_frequent_words(karpathy, features):
    every = open_annotated(read_karpathy(karpathy), features, min_count=1).vocabulary
    data = open_annotated(read_karpathy(karpathy), features, min_count=1, max_size=1)
    assert data.vocabulary.idx_to_word == every.idx_to_word[:5] != every.idx_to_word
    with pytest.raises(ValueError, match="max_size is 0, expected at least 1"):
        open_annotated(read_karpathy(karpathy), features, max_size=0)


def test_coco(features, tmp_path):
    train = written(tmp_path / "captions_train.json", COCO)
    val = {"images": [{"id": 1, "file_name": "c.jpg"}], "annotations": [{"image_id": 1, "caption": "A cow"}]}
    annotations = read_coco({"train": train, "val": written(tmp_path / "val.json", val)})
    data = open_annotated(annotations, features, min_count=1)
    assert data.split("train").names == ("b.jpg", "a.jpg"), "d.jpg has no caption"
    assert data.split("train").references == [["A dog."], ["a cat", "a dog"]]
    assert data.split("val").references == [["A cow"]]
    np.testing.assert_array_equal(data.split("train").image_idxs, [0, 1, 1])


def test_an_image_in_two_files_of_coco(tmp_path):
    path = written(tmp_path / "train.json", COCO)
    message = r"train.json and .*train.json: found the image 'b.jpg' in the splits train and val"
    with pytest.raises(ValueError, match=message):
        read_coco({"train": path, "val": path})


def test_the_files_of_coco_are_by_splits():
    with pytest.raises(
        TypeError, match="read_coco: paths is 'x.json', expected a mapping of splits to files"
    ):
        read_coco("x.json")


def test_a_file_of_coco_without_captions(tmp_path):
    path = written(tmp_path / "val.json", COCO | {"annotations": []})
    with pytest.raises(ValueError, match=r"val.json: annotations: found no caption, expected at least one"):
        read_coco({"val": path})


def test_features_that_are_not_finite_are_those_of_an_image(karpathy, features):
    with h5py.File(features, "a") as file:
        file["features"][2] = np.nan
        name = file["filenames"][2].decode()
    with pytest.raises(
        ValueError, match=f"features: found NaN or infinity in row 0, {name}, expected finite"
    ):
        open_annotated(read_karpathy(karpathy), features, min_count=1)


def test_errors_about_references_name_the_file(karpathy, features):
    data = open_annotated(read_karpathy(karpathy), features, min_count=1)
    train = replace(data.split("train"), references=[[" "], ["a"]])
    with pytest.raises(ValueError, match=r"dataset_toy.json: image b.jpg has no sentence with words"):
        train.check_references([0])


def test_an_image_that_is_listed_twice_is_one(tmp_path):
    """Files that were joined may have entries of both."""
    content = COCO | {"images": COCO["images"] * 2}
    joined, single = (read_coco({"train": written(tmp_path / "f.json", each)}) for each in (content, COCO))
    assert joined.splits == single.splits


def test_an_annotation_that_is_listed_twice_is_one(tmp_path):
    content = COCO | {"annotations": [each | {"id": k} for k, each in enumerate(COCO["annotations"])]}
    joined = {"images": content["images"] * 2, "annotations": content["annotations"] * 2}
    read = [read_coco({"train": written(tmp_path / "f.json", each)}).splits for each in (joined, content)]
    assert read[0] == read[1]
    without_ids = COCO | {"annotations": COCO["annotations"] * 2}  # two people may have written the same
    read = read_coco({"train": written(tmp_path / "f.json", without_ids)}).splits["train"]
    assert [len(image.sentences) for image in read] == [2, 4]
    content["annotations"][2]["id"] = 0
    with pytest.raises(
        ValueError, match=r"annotations\[2\]: id: found 0, which another caption has, expected"
    ):
        read_coco({"train": written(tmp_path / "f.json", content)})


def test_captions_without_words_are_left_out(tmp_path, features):
    images = [{"filename": "b.jpg", "split": "train", "sentences": [{"raw": raw} for raw in ("", "A dog.")]}]
    images.append({"filename": "c.jpg", "split": "val", "sentences": [{"raw": ". . ."}]})
    data = open_annotated(
        read_karpathy(written(tmp_path / "f.json", {"images": images})), features, min_count=1
    )
    train, val = data.split("train"), data.split("val")
    assert [data.vocabulary.decode(row) for row in train.captions] == ["a dog"]
    assert (train.image_idxs.tolist(), val.captions.shape) == ([0], (0, 22))


def test_errors_name_the_file_of_the_split(tmp_path, features):
    val = {"images": [{"id": 1, "file_name": "c.jpg"}], "annotations": [{"image_id": 1, "caption": "."}]}
    train = COCO | {"images": COCO["images"][:2]}
    paths = {"train": written(tmp_path / "t.json", train), "val": written(tmp_path / "v.json", val)}
    data = open_annotated(read_coco(paths), features, min_count=1)
    with pytest.raises(ValueError, match=r"v\.json: image c\.jpg has no sentence with words"):
        data.split("val").check_references([0])


def test_read_features(features):
    names, values = read_features(features)
    assert names == ("a.jpg", "unused.jpg", "b.jpg", "c.jpg")
    np.testing.assert_array_equal(values, FEATURES)
    assert values.dtype == np.float32


def test_bytes_with_offset_and_scale(karpathy, tmp_path):
    path = tmp_path / "bytes.h5"
    with h5py.File(path, "w") as file:
        file["features"] = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
        file["features"].attrs.update(offset=np.float32(-1), scale=np.full(4, 0.5, np.float32))
        file["filenames"] = ["a.jpg", "b.jpg", "c.jpg"]
    data = open_annotated(read_karpathy(karpathy), path, min_count=1, standardise=False)
    np.testing.assert_array_equal(data.split("val").features, np.arange(16, 24).reshape(1, 2, 4) * 0.5 - 1)


def with_image(changes):
    images = [dict(image) for image in KARPATHY["images"]]
    images[1] = {key: value for key, value in (images[1] | changes).items() if value is not None}
    return {"images": images}


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ({"sentences": []}, KeyError, "toy.json: found the fields sentences, expected images"),
        ({"images": {}}, ValueError, "toy.json: images: found a JSON dict, expected a list"),
        (
            with_image({"filename": None}),
            ValueError,
            r"images\[1\]: found the keys split, sentences, expected file",
        ),
        (
            with_image({"sentences": [{"tokens": []}]}),
            ValueError,
            r"images\[1\]: .* expected .* each with raw",
        ),
        (with_image({"sentences": 3}), ValueError, r"toy.json: images\[1\]"),
        (
            with_image({"sentences": [{"raw": 7}]}),
            ValueError,
            r"images\[1\]: sentences: found 7, expected a t",
        ),
        (
            with_image({"sentences": [{"raw": ["a"]}]}),
            ValueError,
            r"images\[1\]: sentences: found \['a'\]",
        ),
        (
            with_image({"filename": ["a"]}),
            ValueError,
            r"images\[1\]: filename: found \['a'\], expected",
        ),
        (with_image({"split": {}}), ValueError, r"images\[1\]: split: found \{\}, expected a text"),
        ({"images": ["x" * 9999]}, ValueError, r"images\[0\]: found 'x{12}\.\.\.x{13}', expected filename"),
        ({"images": [5]}, ValueError, r"images\[0\]: found 5, expected filename, split and sentences"),
        (
            {"images": KARPATHY["images"][1:2]},
            ValueError,
            "found the splits val, expected images of a split train",
        ),
        ({"images": []}, ValueError, "found the splits none, expected images of a split train"),
        (
            with_image({"filename": "x.jpg"}),
            KeyError,
            "filenames: found no 'x.jpg', expected all the images of",
        ),
    ],
)
def test_bad_karpathy(tmp_path, features, content, error, message):
    with pytest.raises(error, match=message):
        open_annotated(read_karpathy(written(tmp_path / "toy.json", content)), features)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"annotations": None}, KeyError, "found the fields images, expected annotations"),
        ({"images": [{"id": 3}]}, ValueError, r"images\[0\]: found the keys id, expected id and file_name"),
        (
            {"annotations": [{"image_id": 3}]},
            ValueError,
            r"annotations\[0\]: .*expected image_id and caption",
        ),
        (
            {"annotations": [{"image_id": 99, "caption": "a"}]},
            ValueError,
            r"annotations\[0\]: image_id: found 99, expected the id of an image",
        ),
        (
            {"annotations": [{"image_id": [3], "caption": "a"}]},
            ValueError,
            r"annotations\[0\]: image_id: found \[3\], expected the id of an image",
        ),
        (
            {"annotations": [{"image_id": 3, "caption": None}]},
            ValueError,
            r"annotations\[0\]: caption: found None, expected a text",
        ),
        ({"annotations": 3}, ValueError, "coco.json: annotations: found a JSON int, expected a list"),
        (
            {"images": [{"id": [3], "file_name": "a"}]},
            ValueError,
            r"images\[0\]: id: found \[3\], expe",
        ),
        (
            {"images": [{"id": 3, "file_name": 3}]},
            ValueError,
            r"images\[0\]: file_name: found 3, expected",
        ),
        (
            {"images": [{"id": 3, "file_name": "cat.jpg"}, {"id": 3, "file_name": "dog.jpg"}]},
            ValueError,
            r"coco.json: images\[1\]: id: found 3 of 'dog.jpg', which 'cat.jpg' has, expected one id for an",
        ),
    ],
)
def test_bad_coco(tmp_path, change, error, message):
    content = {key: value for key, value in (COCO | change).items() if value is not None}
    with pytest.raises(error, match=message):
        read_coco({"train": written(tmp_path / "coco.json", content)})


@pytest.mark.parametrize(
    ("field", "values", "error", "message"),
    [
        ("filenames", None, KeyError, "found the fields features, expected filenames"),
        ("filenames", ["a.jpg", "b.jpg"], ValueError, "filenames: found 2 names, expected one for each of 4"),
        ("filenames", np.arange(4), ValueError, r"filenames: found int64 \(4,\), expected a list of strings"),
        ("features", None, KeyError, "found the fields filenames, expected features"),
        ("features", 3.0, ValueError, "features: found one value, expected a row for each name"),
        (
            "filenames",
            np.array([b"a.jpg", b"b.jpg", b"\xff.jpg", b"d.jpg"]),
            ValueError,
            r"filenames: row 2: found b'\\xff.jpg', expected text in UTF-8",
        ),
    ],
)
def test_bad_features(karpathy, features, field, values, error, message):
    with h5py.File(features, "r+") as file:
        del file[field]
        if values is not None:
            file[field] = values
    for read in (lambda: open_annotated(read_karpathy(karpathy), features), lambda: read_features(features)):
        with pytest.raises(error, match=f"features.h5: {message}"):
            read()


def test_a_name_of_two_rows(karpathy, features):
    with h5py.File(features, "r+") as file:
        file["filenames"][1] = "a.jpg"
    for read in (lambda: open_annotated(read_karpathy(karpathy), features), lambda: open_features(features)):
        with pytest.raises(ValueError, match="filenames: found 1 names twice, expected each name once"):
            read()


@pytest.mark.parametrize(("option", "value"), [("min_count", 0), ("max_words", 0), ("max_words", -7)])
def test_counts_are_positive(karpathy, features, option, value):
    with pytest.raises(ValueError, match=f"{option} is {value}, expected at least 1"):
        open_annotated(read_karpathy(karpathy), features, **{option: value})


@pytest.mark.slow
@pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")
def test_real_data():
    root = Path(os.environ["RNNLAB_DATA"])
    splits = read_karpathy(root / "flickr8k" / "dataset_flickr8k.json").splits
    assert {name: len(images) for name, images in splits.items()} == {
        "train": 6000,
        "val": 1000,
        "test": 1000,
    }
    mini = read_coco({"train": root / "coco_mini" / "captions_train2017.json"}).splits["train"]
    assert len(mini) == 80
    assert all(len(image.sentences) >= 5 for image in mini)


@pytest.mark.parametrize("lazy", [False, True])
def test_global_features_from_a_file_in_another_order(karpathy, features, lazy, tmp_path):
    path = tmp_path / "global.h5"
    with h5py.File(path, "w") as file:
        file["features"] = np.arange(15, dtype=np.float32).reshape(3, 5)
        file["filenames"] = ["c.jpg", "b.jpg", "a.jpg"]
    local = tmp_path / "local.h5"
    with h5py.File(local, "w") as file:
        file["features"] = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
        file["filenames"] = ["a.jpg", "b.jpg", "c.jpg"]
    data = open_annotated(
        read_karpathy(karpathy), local, global_features=path, min_count=1, standardise=False, lazy=lazy
    )
    regions, vectors = data.split("train").features_at(slice(None))  # b.jpg, a.jpg
    np.testing.assert_array_equal(regions[:, 0, 0], [8, 0])
    np.testing.assert_array_equal(vectors[:, 0], [5, 10])


def test_an_image_is_in_one_split(karpathy):
    content = json.loads(karpathy.read_text())
    first = content["images"][0]
    content["images"].append(first | {"split": "test" if first["split"] != "test" else "val"})
    karpathy.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"found the image '{first['filename']}' in the splits \w+ and \w+"):
        read_karpathy(karpathy)
    content["images"][-1] = first
    karpathy.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"found the image '{first['filename']}' twice in the split \w+"):
        read_karpathy(karpathy)
