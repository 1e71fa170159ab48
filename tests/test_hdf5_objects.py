"""Objects of HDF5 files: through hard links only, in the file itself, of a size that the file can hold."""

import os
import time

import h5py
import numpy as np
import pytest

from rnnlab.hdf5_objects import find_object, names_in, open_hdf5, read_attribute, read_strings, read_values

NAMES = ("a.jpg", "ü.jpg", "", *(f"{number}_03d33305cf.jpg" for number in range(3000)))


@pytest.fixture
def made(tmp_path):
    """Fill a file and open it for reading."""
    opened = []

    def made(fill, **options):
        path = tmp_path / f"{len(opened)}.h5"
        with h5py.File(path, "w", **options) as file:
            fill(file)
        opened.append(open_hdf5(path))
        return opened[-1]

    yield made
    for file in opened:
        file.close()


def test_what_is_no_hdf5(tmp_path):
    path = tmp_path / "x.h5"
    with pytest.raises(FileNotFoundError, match="x.h5: found no such file, expected an HDF5 file"):
        open_hdf5(path)
    path.write_bytes(b"word " * 500)
    with pytest.raises(OSError, match=r"x.h5: found a file of another kind, expected a complete HDF5 file"):
        open_hdf5(path)
    with pytest.raises(OSError, match="found a device, expected an HDF5 file"):
        open_hdf5("/dev/zero")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no advisory locks")
def test_a_file_that_is_locked(tmp_path):
    import fcntl

    h5py.File(tmp_path / "0.h5", "w").close()
    with open(tmp_path / "0.h5", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError, match=r"another program has locked it, .*0\.h5"):
            open_hdf5(tmp_path / "0.h5")


def test_datasets_and_groups_by_name(made):
    def fill(file):
        file["group/inner/x"] = [1, 2]
        file["group/again"] = file["group/inner"]

    file = made(fill)
    assert read_values(find_object(file, "group/inner/x")).tolist() == [1, 2]
    assert read_values(find_object(file, "group/again/x"), slice(1, 2)).tolist() == [2]
    assert isinstance(find_object(file, "group"), h5py.Group)
    for absent in ("x", "group/x", "group/inner/x/y"):
        assert find_object(file, absent) is None
    assert names_in(file["group"]) == ["again", "inner"]


def links(file):
    file["real"] = [1.0]
    file["soft"] = h5py.SoftLink("/real")
    file["cycle"] = h5py.SoftLink("/cycle")
    file["group/far"] = h5py.ExternalLink("other.h5", "/x")
    file["elsewhere"] = h5py.ExternalLink("other.h5", "/")
    file["type"] = np.dtype("f4")
    file.create_dataset("external", (8,), "u1", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(4,))
    file.create_virtual_dataset("virtual", layout)
    file["empty"] = h5py.Empty("f4")
    file.create_dataset("enormous", (10**8,), h5py.string_dtype(), chunks=(1 << 16,))
    file.create_dataset("features", (10**9, 100), "f4", chunks=(256, 100))
    file.create_dataset("chunk", (1,), "f4", chunks=(10**8,), maxshape=(None,))
    file.create_dataset("long", (1,), "S1000000000", chunks=(1,), compression="gzip")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("soft", "soft: found a soft link to /real, expected an object of this file"),
        ("cycle", "cycle: found a soft link to /cycle, expected an object of this file"),
        ("group/far", "group/far: found an external link to other.h5: /x, expected an object of this file"),
        ("elsewhere/x", "elsewhere/x: found an external link to other.h5: /, expected"),
        ("type", "type: found a named type, expected a dataset or a group"),
        (
            "external",
            r"external: found values in other files \(external storage\), expected values in this file",
        ),
        (
            "virtual",
            r"virtual: found values in other files \(a virtual dataset\), expected values in this file",
        ),
        ("empty", "empty: found an empty dataspace, expected a dataset of values"),
        (
            "enormous",
            r"enormous: found object \(100000000,\) of 1,600,000,000 bytes, expected what 0 stored bytes",
        ),
        (
            "features",
            r"features: found float32 \(1000000000, 100\) of 400,000,000,000 bytes, expected what 0 st",
        ),
        ("chunk", r"chunk: found float32 \(1,\) of 400,000,000 bytes, expected what 0 stored bytes can hold"),
        ("long", r"long: found .* \(1,\) of 1,000,000,000 bytes, .* at most 100 for each compressed byte"),
    ],
)
def test_what_leads_out_of_the_file_or_beyond_its_size(made, name, message):
    with pytest.raises(ValueError, match=rf"0\.h5: {message}"):
        find_object(made(links), name)


def test_what_is_not_compressed_is_no_larger_than_its_bytes(made, monkeypatch):
    def fill(file):
        file.create_dataset("half", (4, 100), "f4", chunks=(2, 100))[:2] = 1
        file.create_dataset("whole", (4, 100), "f4", chunks=(2, 100))[:] = 1

    file = made(fill)
    monkeypatch.setattr("rnnlab.hdf5_objects.FREE_BYTES", 0)
    with pytest.raises(ValueError, match=r"half: .* of 1,600 bytes, expected what 800 stored bytes can"):
        find_object(file, "half")
    assert find_object(file, "whole").nbytes == 1600


@pytest.mark.slow
def test_a_compressed_dataset_that_expands_a_thousandfold(made):
    def fill(file):
        file.create_dataset("zeros", data=np.zeros((2, 10**7)), chunks=(1, 10**7), compression="gzip")
        file.create_dataset("small", data=np.zeros(10**6), compression="gzip")

    file = made(fill)
    with pytest.raises(ValueError, match=r"zeros: found float64 .* of 160,000,000 bytes, expected what 15"):
        find_object(file, "zeros")
    assert not read_values(find_object(file, "small")).any()


def test_features_larger_than_memory_are_not_refused(made, tmp_path):
    """A dataset of 100 GB in a file of that size, of which the disk stores nothing."""

    def fill(file):
        space = h5py.h5s.create_simple((10**7, 2560))
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        h5py.h5d.create(file.id, b"features", h5py.h5t.IEEE_F32LE, space, properties)

    file = made(fill)
    features = find_object(file, "features")
    assert features.nbytes == 102_400_000_000
    assert read_values(features, slice(0, 1)).shape == (1, 2560)


def test_a_part_that_cannot_be_read_is_named(made, tmp_path):
    file = made(lambda file: file.create_dataset("x", data=np.arange(9), chunks=(9,), compression="gzip"))
    chunk = file["x"].id.get_chunk_info(0)
    file.close()
    content = bytearray((tmp_path / "0.h5").read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    (tmp_path / "0.h5").write_bytes(content)
    with (
        open_hdf5(tmp_path / "0.h5") as file,
        pytest.raises(OSError, match=r"0\.h5: x: found a part that cannot"),
    ):
        read_values(find_object(file, "x"))


def test_attributes(made):
    def fill(file):
        file["x"] = [1.0]
        file["x"].attrs.update(
            {"scale": 0.5, "text": np.bytes_("a"), "variable": "a", "reference": file["x"].ref}
        )

    x = made(fill)["x"]
    assert read_attribute(x, "scale") == 0.5
    assert read_attribute(x, "text") == b"a"
    assert read_attribute(x, "absent") is None
    for name in ("variable", "reference"):
        with pytest.raises(
            ValueError, match=f"x: attribute {name}: found a string of variable length or a ref"
        ):
            read_attribute(x, name)


def shuffled(file):
    """Names whose bytes are shuffled: HDF5 does that only where the size of an item is set."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk((100,))
    properties.set_filter(h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FLAG_OPTIONAL, (16,))
    properties.set_deflate(4)
    kind, space = h5py.h5t.py_create(h5py.string_dtype(), logical=True), h5py.h5s.create_simple((len(NAMES),))
    dataset = h5py.Dataset(h5py.h5d.create(file.id, b"names", kind, space, properties))
    dataset[:] = NAMES
    assert dataset.id.get_chunk_info(0).filter_mask == 0  # no filter was skipped


STORED = {
    "fixed": lambda file: file.create_dataset("names", data=np.array([name.encode() for name in NAMES])),
    "contiguous": lambda file: file.create_dataset("names", data=NAMES, dtype=h5py.string_dtype()),
    "chunked": lambda file: file.create_dataset("names", data=NAMES, chunks=(700,)),
    "compressed": lambda file: file.create_dataset("names", data=NAMES, compression="gzip", shuffle=True),
    "shuffled": shuffled,
}


@pytest.mark.parametrize("store", STORED.values(), ids=STORED)
@pytest.mark.parametrize("options", [{}, {"userblock_size": 1024}, {"libver": "latest"}], ids=str)
def test_strings_however_they_are_stored(made, store, options):
    file = made(lambda file: store(file), **options)
    assert read_strings(find_object(file, "names")) == NAMES


def test_strings_that_were_never_written(made):
    def fill(file):
        file.create_dataset("none", (0,), h5py.string_dtype())
        file.create_dataset("all", (3,), h5py.string_dtype())
        file.create_dataset("some", (8,), h5py.string_dtype(), chunks=(2,))[3] = "d"

    file = made(fill)
    assert read_strings(file["none"]) == ()
    assert read_strings(file["all"]) == ("", "", "")
    assert read_strings(file["some"]) == ("", "", "", "d", "", "", "", "")


def test_what_is_no_list_of_strings(made):
    def fill(file):
        file["numbers"], file["table"] = [1], [["a"]]
        file["latin"] = np.array([b"good.jpg", "schön.jpg".encode("latin-1")])
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        kind, space = h5py.h5t.py_create(h5py.string_dtype(), logical=True), h5py.h5s.create_simple((2,))
        h5py.h5d.create(file.id, b"compact", kind, space, properties)

    file = made(fill)
    for name in ("numbers", "table"):
        with pytest.raises(ValueError, match=f"0.h5: {name}: found .*, expected a list of strings"):
            read_strings(file[name])
    with pytest.raises(ValueError, match=r"latin: row 1: found b'sch\\xf6n.jpg', expected text in UTF-8"):
        read_strings(file["latin"])
    with pytest.raises(
        ValueError, match=r"compact: found strings of variable length in an unusual layout, expected"
    ):
        read_strings(file["compact"])


def outcome(file):
    try:
        return read_strings(find_object(file, "names"))
    except ValueError as error:
        return error


@pytest.mark.slow
def test_a_changed_byte_in_the_heap_is_an_error_and_no_loop(made, tmp_path):
    """Every byte before the first string: with some of them, HDF5 itself loops forever."""
    made(lambda file: file.create_dataset("names", data=[f"{number}.jpg" for number in range(9)])).close()
    content = (tmp_path / "0.h5").read_bytes()
    heap, expected = content.find(b"GCOL"), tuple(f"{number}.jpg" for number in range(9))
    started, outcomes = time.monotonic(), [0, 0]  # refused, and read in spite of the change
    for place in range(heap, heap + 32):
        for value in (0, 1, *range(2, 256, 23), 255):
            changed = bytearray(content)
            changed[place] = value
            (tmp_path / "1.h5").write_bytes(changed)
            with open_hdf5(tmp_path / "1.h5") as file:
                found = outcome(file)
            outcomes[found == expected] += 1
            assert found == expected or "1.h5: names: row" in str(found)
    assert min(outcomes) > 50
    assert time.monotonic() - started < 30


def test_a_string_longer_than_its_item(made, tmp_path):
    made(lambda file: file.create_dataset("names", data=["a.jpg"])).close()
    content = bytearray((tmp_path / "0.h5").read_bytes())
    with h5py.File(tmp_path / "0.h5") as file:
        place = file["names"].id.get_offset()
    content[place : place + 4] = (10**9).to_bytes(4, "little")
    (tmp_path / "0.h5").write_bytes(content)
    message = (
        r"names: row 0: a string: found 1,000,000,000 bytes, expected at most 65,536, and the 5 that the heap"
    )
    with open_hdf5(tmp_path / "0.h5") as file, pytest.raises(ValueError, match=message):
        read_strings(find_object(file, "names"))
