"""Regular files alone, of a bounded size; gzipped or not, decided by their content."""

import collections
import gzip
import hashlib
import os
import time
import tracemalloc
from functools import partial

import pytest

from rnnlab import reading
from rnnlab.data import read_idx
from rnnlab.data.hdf5 import read_json
from rnnlab.errors import RnnlabError
from rnnlab.hdf5_objects import open_hdf5
from rnnlab.limits import FREE_BYTES
from rnnlab.reading import (
    check_regular,
    file_hash,
    lines_in_pieces,
    load_json,
    open_bytes,
    read_bytes,
    read_limited,
    text_lines,
    utf8,
)

READERS = {
    "bytes": read_bytes,
    "lines": lambda path: list(text_lines(path)),
    "pieces": lambda path: list(lines_in_pieces(path)),
    "json": load_json,
    "limited": lambda path: read_limited(path, 100, "a file"),
    "hash": file_hash,
}


@pytest.mark.parametrize("content", [b"", b"text", bytes(range(256)) * 50])
def test_the_content_decides_not_the_name(tmp_path, content):
    for name, stored in (("plain.gz", content), ("packed.txt", gzip.compress(content))):
        (tmp_path / name).write_bytes(stored)
        assert read_bytes(tmp_path / name) == content


def test_a_hash_is_that_of_the_bytes_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 7)
    content = gzip.compress(b"text" * 100)
    (tmp_path / "x.gz").write_bytes(content)
    assert file_hash(tmp_path / "x.gz") == hashlib.sha256(content).hexdigest()
    assert file_hash(tmp_path / "x.gz", tmp_path / "x.gz") == hashlib.sha256(content * 2).hexdigest()


def test_a_damaged_file_is_named(tmp_path):
    packed = gzip.compress(b"text" * 100)
    for damaged in (packed[:-9], packed[:12] + b"\xff" * 9 + packed[21:]):
        (tmp_path / "x.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match="x.gz: found a damaged gzip file"):
            read_bytes(tmp_path / "x.gz")


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_is_no_regular_file_is_not_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    started = time.monotonic()
    for path, kind in (
        (tmp_path / "pipe", "a named pipe"),
        (tmp_path, "a directory"),
        ("/dev/zero", "a device"),
    ):
        with pytest.raises(OSError, match=f"{path}: found {kind}, expected a"):
            read(path)
    with pytest.raises(FileNotFoundError, match="absent: found no such file, expected a"):
        read(tmp_path / "absent")
    assert time.monotonic() - started < 5


def test_an_empty_path_is_named():
    with pytest.raises(FileNotFoundError, match="^an empty path: found no such file, expected a file$"):
        check_regular("")


@pytest.mark.parametrize("path", [None, 3])
def test_what_is_no_path(path):
    for read in (*READERS.values(), read_json, open_hdf5, partial(read_idx, dimensions=1)):
        with pytest.raises(RnnlabError, match=f"^found {path} as the path of a file, expected ") as found:
            read(path)
        assert isinstance(found.value, TypeError)


def test_utf8():
    assert utf8("x", "é") == "é".encode()
    with pytest.raises(RnnlabError, match=r"^x: found 'a \\ud800', expected text, without lone surrogates$"):
        utf8("x", "a \ud800")


def test_the_size_of_a_regular_file(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("x")
    assert check_regular(tmp_path / "x") == check_regular(tmp_path / "link") == 5


@pytest.mark.slow
def test_a_file_that_decompresses_to_far_more(tmp_path):
    """1 GB in 1 MB, as members of a gzip file, read as a whole and in parts."""
    member = gzip.compress(bytes(FREE_BYTES), 1)
    (tmp_path / "x.gz").write_bytes(member)
    assert len(read_bytes(tmp_path / "x.gz")) == FREE_BYTES
    (tmp_path / "x.gz").write_bytes(member * 16)
    message = (
        r"x.gz: found a gzip file of [\d,]+ bytes that decompresses to more than [\d,]+, expected at most 100"
    )
    with pytest.raises(ValueError, match=message):
        read_bytes(tmp_path / "x.gz")
    with open_bytes(tmp_path / "x.gz") as stream, pytest.raises(ValueError, match=message):
        collections.deque(iter(partial(stream.read, 1 << 20), b""), 0)


def test_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "x.txt"
    for content, lines in (
        (b"", []),
        (b"\n", [""]),
        ("\ufeffein\u2028Satz\r\n\nzwei".encode(), ["ein\u2028Satz", "", "zwei"]),
        (b"a\rb\n", ["a\rb"]),
    ):
        path.write_bytes(content)
        assert list(text_lines(path)) == lines
        path.write_bytes(gzip.compress(content))
        assert list(text_lines(path)) == lines


def test_lines_that_are_too_long_or_no_text(tmp_path, monkeypatch):
    path = tmp_path / "x.txt"
    path.write_bytes(b"good\nb\xe4d\n")
    with pytest.raises(ValueError, match="x.txt:2: found bytes that are not UTF-8"):
        list(text_lines(path))
    monkeypatch.setattr(reading, "LINE_BYTES", 10)
    path.write_bytes(b"1234567890\n12345678901\n")
    with pytest.raises(
        ValueError, match="x.txt:2: found a line of more than 10 bytes, expected shorter ones"
    ):
        list(text_lines(path))


def pieces_of(path):
    return [list(line) for line in lines_in_pieces(path)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pieces_are_the_lines(tmp_path, monkeypatch, size, pack):
    """For all sizes of a block, which may divide a character or a line end."""
    monkeypatch.setattr(reading, "_BLOCK", size)
    path = tmp_path / "text"
    for text in (
        "",
        "\n",
        "a",
        "ab cd ",
        "ab \n",
        "aé 日本 b\r\n\n  \nc\rd\r\n€",
        "one two three\r\n" * 3,
        "x" * 11 + "\n",
    ):
        path.write_bytes(pack((text and "\ufeff" + text).encode()))
        found = pieces_of(path)
        assert ["".join(line) for line in found] == list(text_lines(path))
        assert all(len(piece) <= 3 * size + 1 for line in found for piece in line)


def test_long_lines_are_divided_after_spaces(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 8)
    path = tmp_path / "text"
    path.write_text("ab cd\nij\n")
    assert pieces_of(path) == [["ab cd"], ["ij"]]
    path.write_text("ab cd ef gh ij kl mn op qr\n")
    (found,) = pieces_of(path)
    assert len(found) > 2
    assert all(piece.endswith(" ") for piece in found[:-1])
    path.write_text("abcdefghijklmnopqrst\n")
    assert len(pieces_of(path)[0]) > 1


def test_pieces_that_are_no_text(tmp_path):
    (tmp_path / "text").write_bytes(b"fine\n" * 3 + b"a\xff\n")
    with pytest.raises(ValueError, match=r"text:4: found bytes that are not UTF-8"):
        pieces_of(tmp_path / "text")
    (tmp_path / "text").write_bytes(b"fine\nends \xe2\x82")
    with pytest.raises(ValueError, match=r"text:2: found bytes that are not UTF-8"):
        pieces_of(tmp_path / "text")


def test_json(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"a": [1, null]}', "utf-8-sig")
    assert load_json(path) == {"a": [1, None]}
    path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(
        ValueError, match="x.json: found JSON that is nested too deeply to be read, expected a"
    ):
        load_json(path)
    path.write_text('["\\ud83d\\ude00", "\\\\ud800"]')
    assert load_json(path) == ["\N{GRINNING FACE}", "\\ud800"]
    for content in (b"{", b"\xff\xfe", b"1" * 5000, b'["a \\ud800 b"]', b'{"\\uDFFF": 1}'):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="x.json: found text that is not JSON"):
            load_json(path)


def test_a_file_above_a_limit_is_not_read(tmp_path):
    with open(tmp_path / "x.json", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(
        ValueError, match="x.json: found 1,099,511,627,776 bytes, expected a JSON file of at most 536,"
    ):
        load_json(tmp_path / "x.json")


def test_a_small_file_takes_little_memory(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    tracemalloc.start()
    try:
        assert load_json(tmp_path / "a.json") == {}
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
