from dataclasses import replace

import numpy as np
import pytest

from rnnlab.data import Vocabulary
from rnnlab.data.course import feature_kinds, read_course, write_course, write_features


def test_the_kinds_of_features_of_a_folder(shapes, shapes_copy, tmp_path):
    assert feature_kinds(shapes) == ["pca", "local"]
    assert feature_kinds(tmp_path) == []
    write_features(shapes_copy / "train2014_vgg16_fc7.h5", np.ones((3, 2), np.float32))
    assert feature_kinds(shapes_copy) == ["pca", "full", "local"]


def test_a_kind_that_is_missing_names_the_others(shapes):
    message = (
        "train2014_vgg16_fc7.h5: .* expected features of kind 'full': set data.features to 'pca' or 'local'"
    )
    with pytest.raises(FileNotFoundError, match=message):
        read_course(shapes, features="full")
    with pytest.raises(FileNotFoundError, match=message):
        read_course(shapes, features="local", global_features="full")


@pytest.mark.parametrize("name", ["a\nb.jpg", "a.jpg\r", "\udcff.jpg"])
def test_a_name_of_an_image_is_a_line(shapes, tmp_path, name):
    vocabulary, splits = read_course(shapes, splits=["val"])
    val = splits["val"]
    splits["val"] = replace(val, names=(*val.names[:-1], name))
    with pytest.raises(ValueError, match="write_course: val: names of images: found '.*', expected names wi"):
        write_course(tmp_path / "out", vocabulary, splits)
    assert not (tmp_path / "out").exists()
    write_course(tmp_path / "out", vocabulary, {"val": replace(val, names=(*val.names[:-1], "ü\x0b.jpg"))})
    assert read_course(tmp_path / "out")[1]["val"].names[-1] == "ü\x0b.jpg"


@pytest.mark.parametrize("word", ["New York", ""])
def test_a_word_that_could_not_be_read_is_not_written(shapes, tmp_path, word):
    vocabulary, splits = read_course(shapes, splits=["val"])
    count = len(vocabulary)
    message = rf"vocabulary: idx_to_word\[{count}\]: found '{word}', expected a word without white space"
    with pytest.raises(ValueError, match=message):
        write_course(tmp_path / "out", Vocabulary([*vocabulary.idx_to_word, word]), splits)
    assert not (tmp_path / "out").exists()


def test_captions_that_are_nearly_all_padding(shapes, tmp_path, monkeypatch):
    for module in ("rnnlab.hdf5_objects", "rnnlab.data.course"):
        monkeypatch.setattr(f"{module}.FREE_BYTES", 0, raising=False)
    vocabulary, splits = read_course(shapes, splits=["val"])
    captions = np.pad(splits["val"].captions, [(0, 0), (0, 4000)])
    write_course(tmp_path / "out", vocabulary, {"val": replace(splits["val"], captions=captions)})
    assert (read_course(tmp_path / "out")[1]["val"].captions == captions).all()
