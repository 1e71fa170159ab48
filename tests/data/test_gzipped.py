import gzip

import pytest

from rnnlab.data.gzipped import read_bytes


@pytest.mark.parametrize("content", [b"", b"text", bytes(range(256)) * 50])
def test_the_content_decides_not_the_name(tmp_path, content):
    for name, stored in (("plain.gz", content), ("packed.txt", gzip.compress(content))):
        (tmp_path / name).write_bytes(stored)
        assert read_bytes(tmp_path / name) == content


def test_a_damaged_file_is_named(tmp_path):
    packed = gzip.compress(b"text" * 100)
    for damaged in (packed[:-9], packed[:12] + b"\xff" * 9 + packed[21:]):
        (tmp_path / "x.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match="x.gz: found a damaged gzip file"):
            read_bytes(tmp_path / "x.gz")
