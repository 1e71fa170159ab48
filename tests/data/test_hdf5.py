"""Fields of HDF5 and JSON: values, and errors that name file and field."""

import h5py
import numpy as np
import pytest

from rnnlab.data.hdf5 import fixed_length, get_dataset, read_dataset, read_json, read_names
from rnnlab.hdf5_objects import open_hdf5


@pytest.fixture
def write(tmp_path):
    """Write fields to an HDF5 file and open it."""
    opened = []

    def write(attributes=None, **fields):
        path = tmp_path / f"{len(opened)}.h5"
        with h5py.File(path, "w") as file:
            for name, values in fields.items():
                file[name] = values
                file[name].attrs.update(attributes or {})
        opened.append(open_hdf5(path))
        return opened[-1]

    yield write
    for file in opened:
        file.close()


def test_the_first_field_that_a_file_has(write):
    file = write(idxes=[1, 2], other=[3])
    assert get_dataset(file, "idxs", "idxes").name == "/idxes"
    with pytest.raises(KeyError, match="found the fields idxes, other, expected idxs or rows"):
        get_dataset(file, "idxs", "rows")


def test_a_group_is_no_field(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/values"] = [1]
        with pytest.raises(KeyError, match="found the fields group, expected group"):
            get_dataset(file, "group")


def test_bytes_are_offset_and_scaled(write):
    values = np.array([[0, 255], [10, 1]], np.uint8)
    found = read_dataset(write({"offset": np.array([1.0, -1.0]), "scale": 0.5}, x=values), "x")
    np.testing.assert_array_equal(found, [[1, 126.5], [6, -0.5]])
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("stored", "read"), [(np.float16, np.float32), (np.float64, np.float64), (np.uint8, np.uint8)]
)
def test_only_half_precision_is_converted(write, stored, read):
    found = read_dataset(write(x=np.arange(3, dtype=stored)), "x")
    assert found.dtype == read
    np.testing.assert_array_equal(found, [0, 1, 2])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"offset": 1.0}, "x: found only one of the attributes offset and scale, expected both or neither"),
        (
            {"offset": 0.0, "scale": np.ones(3)},
            r"x: attribute scale: found \(3,\), expected \(2,\)",
        ),
        ({"offset": np.nan, "scale": 1.0}, "x: attribute offset: found nan, expected finite numbers"),
        ({"offset": 0.0, "scale": np.bytes_("a")}, "x: attribute scale: found b'a', expected finite numbers"),
        ({"offset": 0.0, "scale": "a"}, "x: attribute scale: found a string of variable length"),
    ],
)
def test_an_offset_and_a_scale_that_do_not_fit(write, attributes, message):
    file = write(attributes, x=np.zeros((4, 2), np.uint8))
    with pytest.raises(ValueError, match=message):
        read_dataset(file, "x")


def test_names_are_one_for_each_row(write):
    names = fixed_length(["a", "\u00e9"])
    assert read_names(write(filenames=names, features=np.zeros((2, 3)))) == ("a", "\u00e9")
    for fields, message in (
        (
            {"filenames": names, "features": np.zeros((3, 3))},
            "filenames: found 2 names, expected one for each of",
        ),
        (
            {"filenames": names, "features": 5.0},
            "features: found one value, expected a row for each",
        ),
        (
            {"filenames": "a", "features": np.zeros((1, 3))},
            r"filenames: found object \(\), expected a list",
        ),
        (
            {"filenames": [1, 2], "features": np.zeros((2, 3))},
            r"filenames: found int64 \(2,\), expected a",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            read_names(write(**fields))


def test_strings_are_written_with_a_fixed_length(write):
    for names in ([], ["a"], ["a", "\u00e9\u4e2d.jpg"]):
        dataset = write(names=fixed_length(names))["names"]
        assert h5py.check_string_dtype(dataset.dtype).length is not None
        assert dataset.asstr()[()].tolist() == names  # as other programs read them
    with pytest.raises(ValueError, match=r"text to write to HDF5: found 'a\\udcff.jpg', expected text"):
        fixed_length(["a\udcff.jpg"])


def test_a_message_lists_a_few_of_many_fields(write):
    file = write(**{f"field{number:04}": [1] for number in range(1000)})
    with pytest.raises(KeyError, match="found the fields field0000, .* and 988 more, expected features"):
        get_dataset(file, "features")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"words": [', "found text that is not JSON .* expected a JSON file"),
        (b"\xff\xfe\x89HDF", "found text that is not JSON"),
        (b"[1]", "found a JSON list, expected an object with words, numbers"),
    ],
)
def test_what_is_no_json_object(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"x.json: {message}"):
        read_json(path, "words", "numbers")


def test_what_is_no_json_object_where_no_field_is_needed(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(ValueError, match="x.json: found a JSON list, expected an object$"):
        read_json(tmp_path / "x.json")


def test_fields_of_json(tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(FileNotFoundError, match="x.json: found no such file, expected a JSON file"):
        read_json(path)
    path.write_text('{"words": ["a"]}')
    assert read_json(path, "words") == {"words": ["a"]}
    with pytest.raises(KeyError, match="found the fields words, expected numbers"):
        read_json(path, "words", "numbers")
