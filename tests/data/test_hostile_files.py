"""Small files that ask for gigabytes are refused before the memory is allocated."""

import gzip
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

pytest.importorskip("resource")  # limits of a process
if not Path("/proc/self/statm").exists():
    pytest.skip("the size of a process is read from /proc", allow_module_level=True)

# Each reader is called in a process that may grow by 250 MB. What it says is printed as JSON.
READ = """
import json, resource, sys
from pathlib import Path
from rnnlab.data import *
from rnnlab.data import LazyFeatures
from rnnlab.data.annotations import open_features
from rnnlab.data.parallel_text import read_lines
from rnnlab.data.photographs import read_photograph
from rnnlab.decoding import read_lexicon

pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, 2 * (pages * resource.getpagesize() + (250 << 20),))
said = []
for name, file in json.loads(sys.argv[1]):
    try:
        eval(name)(file)
        said.append("no error")
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
print(json.dumps(said))
"""
MEMBER = gzip.compress(bytes(100 << 20))  # of a gzip file


def png(path):
    header = struct.pack(">4sIIBBBBB", b"IHDR", 9000, 9000, 8, 6, 0, 0, 0)
    pixels = b"IDAT" + zlib.compress(bytes(9000 * 100), 9)
    chunks = [header, pixels, b"IEND"]
    whole = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(whole))


def hdf5(**fields):
    """A file with the names of three images, and datasets by their options."""

    def write(path):
        with h5py.File(path, "w") as file:
            file["filenames"] = np.array([b"a", b"b", b"c"])
            for name, options in fields.items():
                file.pop(name, None)
                file.create_dataset(name, **options)

    return write


def text(line, times):
    def write(path):
        with open(path, "wb") as file:
            for _ in range(times):
                file.write(line)

    return write


ENORMOUS = {"shape": (10**9, 500), "dtype": "f4", "chunks": (256, 500)}
ZEROS = {"data": np.zeros((3, 2 * 10**7)), "chunks": (1, 2 * 10**7), "compression": "gzip"}
WIDE = {"shape": (3, 10**6), "dtype": "f4", "chunks": (300, 10**6), "maxshape": (None, None)}
ROWS = {"data": np.zeros((3, 2), np.float32)}
NAMES = {"shape": (10**8,), "dtype": h5py.string_dtype(), "chunks": (1 << 16,)}

CASES = {
    "gzip, lines": ("read_lines", text(MEMBER, 5), "a line of more than 4,194,304 bytes"),
    "gzip, images": ("lambda file: read_idx(file, 3)", text(MEMBER, 5), "decompresses to more than"),
    "gzip, vectors": ("lambda file: read_word_vectors(file, ['a'])", text(MEMBER, 5), "a line of more than"),
    "a line": ("read_lines", text(b"word " * 200_000, 400), ":1: found a line of more than 4,194,304 bytes"),
    "a line, lexicon": ("read_lexicon", text(b"word " * 200_000, 400), ":1: found a line of more than"),
    "JSON": ("read_karpathy", text(bytes(1 << 20), 600), "found 629,145,600 bytes, expected a JSON file of"),
    "PNG": ("read_photograph", png, r"9,000 x 9,000 pixels in [\d,]+ bytes, at most 200 for a byte"),
    "shape": (
        "read_features",
        hdf5(features=ENORMOUS),
        "features: found float32 .* of 2,000,000,000,000",
    ),
    "shape, lazy": (
        "LazyFeatures",
        hdf5(features=ENORMOUS),
        "features: found .* expected what 0 stored bytes",
    ),
    "compressed": ("read_features", hdf5(features=ZEROS), "at most 100 for each compressed byte"),
    "compressed, lazy": ("LazyFeatures", hdf5(features=ZEROS), "at most 100 for each compressed byte"),
    "chunk": (
        "read_features",
        hdf5(features=WIDE),
        r"features: found .* \(3, 1000000\) of 1,200,000,000",
    ),
    "names": (
        "open_features",
        hdf5(features=ROWS, filenames=NAMES),
        "filenames: found object .* of 1,600,000,000",
    ),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    folder, calls = tmp_path_factory.mktemp("files"), []
    for number, (read, write, _) in enumerate(CASES.values()):
        write(folder / f"{number}.file")
        calls.append((read, str(folder / f"{number}.file")))
    command = [sys.executable, "-c", READ, json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_file_that_asks_for_too_much_memory(said, case):
    assert "MemoryError" not in said[case]
    with pytest.raises(Exception, match=CASES[case][2]):
        raise RuntimeError(said[case])
