"""Truncated, mislabelled and mismatched files: the error names file, field, found and expected."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab.data import CaptionData

CAPTIONS, VOCABULARY = "coco2014_captions.h5", "coco2014_vocab.json"
FEATURES, URLS, REFERENCES = "train2014_vgg16_fc7_pca.h5", "train2014_urls.txt", "references.json"


def replaced(field, change):
    """Put something else in a dataset of an HDF5 file; without it where ``change`` gives None."""

    def spoil(path):
        with h5py.File(path, "r+") as file:
            values = change(file[field][()])
            del file[field]
            if values is not None:
                file[field] = values

    return spoil


def with_value(value, *place):
    def change(values):
        values = values.copy()
        values[place] = value
        return values

    return change


def edited(change):
    """Change a JSON file."""

    def spoil(path):
        content = json.loads(path.read_text())
        path.write_text(json.dumps(change(content)))

    return spoil


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def broken_chunk(path):
    with h5py.File(path) as file:
        chunk = file["train_captions"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    path.write_bytes(content)


def text(content):
    return lambda path: path.write_bytes(content)


BAD = {
    "captions file missing": (CAPTIONS, Path.unlink, OSError, "no such file, expected an HDF5 file"),
    "captions truncated": (
        CAPTIONS,
        cut,
        OSError,
        "a file that is cut short.* expected a complete HDF5 file",
    ),
    "captions chunk broken": (
        CAPTIONS,
        broken_chunk,
        OSError,
        "train_captions: found a part .* expected a complete dataset",
    ),
    "captions field missing": (
        CAPTIONS,
        replaced("train_image_idxs", lambda values: None),
        KeyError,
        "found the fields .*train_captions.* expected train_image_idxs or train_image_idxes",
    ),
    "captions of float": (
        CAPTIONS,
        replaced("train_captions", lambda values: values.astype(float)),
        ValueError,
        "train_captions: found dtype float64, expected an integer dtype",
    ),
    "captions flat": (
        CAPTIONS,
        replaced("train_captions", np.ravel),
        ValueError,
        r"train_captions: found shape \(3400,\), expected 2 dimensions",
    ),
    "token out of range": (
        CAPTIONS,
        replaced("train_captions", with_value(999, 3, 2)),
        ValueError,
        r"train_captions: found token 999 at row 3, expected at least 0 and less than the \d+ words",
    ),
    "token negative": (
        CAPTIONS,
        replaced("train_captions", with_value(-1, 4, 0)),
        ValueError,
        "train_captions: found token -1 at row 4",
    ),
    "caption without start": (
        CAPTIONS,
        replaced("val_captions", with_value(5, 1, 0)),
        ValueError,
        r"val_captions: found row 1 = \[5, .* expected <START> first",
    ),
    "caption without end": (
        CAPTIONS,
        replaced("val_captions", with_value(5, 2)),
        ValueError,
        "val_captions: found row 2 = .* expected <",
    ),
    "image index past the features": (
        CAPTIONS,
        replaced("train_image_idxs", with_value(40, 7)),
        ValueError,
        "train_image_idxs: found image index 40 at row 7, expected at least 0 and less than the 40 features",
    ),
    "too few image indices": (
        CAPTIONS,
        replaced("train_image_idxs", lambda values: values[:9]),
        ValueError,
        "train_image_idxs: found 9 numbers, expected one for each of 200 captions",
    ),
    "vocabulary missing": (VOCABULARY, Path.unlink, OSError, "no such file, expected a JSON file"),
    "vocabulary field missing": (
        VOCABULARY,
        edited(lambda content: {"word_to_idx": content["word_to_idx"]}),
        KeyError,
        "found the fields word_to_idx, expected idx_to_word",
    ),
    "vocabulary not of words": (
        VOCABULARY,
        edited(lambda content: content | {"idx_to_word": [0, 1]}),
        ValueError,
        r"idx_to_word\[0\]: found 0, expected a word without white space",
    ),
    "vocabulary of two words in one": (
        VOCABULARY,
        edited(lambda content: content | {"idx_to_word": [*content["idx_to_word"], "two words"]}),
        ValueError,
        r"idx_to_word\[\d+\]: found 'two words', expected a word without white space",
    ),
    "vocabulary without any special word": (
        VOCABULARY,
        edited(lambda content: {"idx_to_word": ["a", "b"], "word_to_idx": {"a": 0, "b": 1}}),
        ValueError,
        "idx_to_word: found no special words, expected <NULL>, <START>, <END>, <UNK> first",
    ),
    "vocabulary with special words in other places": (
        VOCABULARY,
        edited(lambda content: content | {"idx_to_word": content["idx_to_word"][::-1]}),
        ValueError,
        r"idx_to_word: Vocabulary: words begin with .* expected \['<NULL>'",
    ),
    "vocabulary that disagrees with itself": (
        VOCABULARY,
        edited(lambda content: content | {"word_to_idx": {"a": 4}}),
        ValueError,
        "word_to_idx: found other words or numbers than in idx_to_word, expected its inverse",
    ),
    "features missing": (FEATURES, Path.unlink, OSError, "no such file, expected features of kind 'pca'"),
    "features truncated": (FEATURES, cut, OSError, "a file that is cut short"),
    "features under another name": (
        FEATURES,
        lambda path: h5py.File(path, "r+").move("features", "fc7"),
        KeyError,
        "found the fields fc7, expected features",
    ),
    "features of integers": (
        FEATURES,
        replaced("features", lambda values: values.astype(np.uint8)),
        ValueError,
        "features: found dtype uint8, expected a floating-point dtype",
    ),
    "features flat": (
        FEATURES,
        replaced("features", lambda values: values[:, 0]),
        ValueError,
        r"features: found shape \(40,\), expected \(num_images, ..., D\)",
    ),
    "features of width 0": (
        FEATURES,
        replaced("features", lambda values: values[:, :0]),
        ValueError,
        r"features: found shape \(40, 0\), expected \(num_images, ..., D\), each but the first at least 1",
    ),
    "features not finite": (
        FEATURES,
        replaced("features", with_value(np.nan, 6, 1)),
        ValueError,
        "features: found NaN or infinity in row 6, .*, expected finite numbers",
    ),
    "features beyond 32 bits": (
        FEATURES,
        replaced("features", lambda values: values.astype(float) + 1e300),
        ValueError,
        "features: found NaN or infinity in row 0, .*, expected finite numbers",
    ),
    "features too few": (
        FEATURES,
        replaced("features", lambda values: values[:30]),
        ValueError,
        "train_image_idxs: found image index 30 at row 150, expected .* less than the 30 features",
    ),
    "features of another width": (
        FEATURES,
        replaced("features", lambda values: values[:, :20]),
        ValueError,
        r"features: found \(40, 20\) in .*train2014_vgg16.*, \(8, 39\) in .*expected one shape in all splits",
    ),
    "urls missing": (URLS, Path.unlink, OSError, "no such file, expected a file with one line per image"),
    "urls too few": (
        URLS,
        text(b"one.png\n"),
        ValueError,
        "train2014_urls.txt: found 1 entries, expected one for each of 40 images",
    ),
    "references of another form": (
        REFERENCES,
        edited(lambda content: content | {"val": ["a sentence"]}),
        ValueError,
        "references.json: val: found other JSON, expected a list of sentences for each image",
    ),
    "references too few": (
        REFERENCES,
        edited(lambda content: content | {"train": content["train"][:3]}),
        ValueError,
        "references.json: train: found 3 entries, expected one for each of 40 images",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file(shapes_copy, case):
    name, spoil, error, message = BAD[case]
    spoil(shapes_copy / name)
    with pytest.raises(error, match=message) as caught:
        CaptionData.from_course(shapes_copy)
    if case != "features of another width":  # which names the splits
        named = {"features too few": CAPTIONS}.get(case, name)
        assert str(shapes_copy / named) in str(caught.value)


def test_bad_files_are_found_when_read_lazily_too(shapes_copy):
    replaced("features", with_value(np.inf, 6, 1))(shapes_copy / FEATURES)
    with pytest.raises(ValueError, match=f"{FEATURES}.*features"):
        CaptionData.from_course(shapes_copy, lazy=True)


def test_unknown_kind_of_features(shapes):
    with pytest.raises(ValueError, match="features: found 'fc7', expected one of pca, full, local"):
        CaptionData.from_course(shapes, features="fc7")


def test_unknown_split(shapes):
    with pytest.raises(KeyError, match="expected dev_captions"):
        CaptionData.from_course(shapes, splits=["dev"])
