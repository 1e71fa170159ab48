import numpy as np
import pytest

from rnnlab.data.course import feature_kinds, read_course, write_features


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
