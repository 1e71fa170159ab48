from __future__ import annotations

import os
import stat

import pytest

from rnnlab.files import atomic_write


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_writes_and_makes_the_directory(tmp_path):
    target = tmp_path / "a" / "b" / "x.txt"
    with atomic_write(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == target.parent
        assert temporary.suffix == ".txt"
        assert not target.exists()
    assert target.read_text() == "new"
    assert names(target.parent) == ["x.txt"]


def test_replaces_only_at_the_end(tmp_path):
    target = tmp_path / "x.txt"
    target.write_text("old")
    with atomic_write(str(target)) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "x.txt"
    target.write_text("old")

    def write():
        with atomic_write(target) as temporary:
            temporary.write_text("half of the n")
            raise error

    with pytest.raises(error):
        write()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


def test_data_are_on_disk_before_the_rename(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (steps.append("sync"), fsync(handle)))
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda self, target: (steps.append("rename"), replace(self, target))
    )
    with atomic_write(tmp_path / "x") as temporary:
        temporary.write_text("new")
        assert steps == []
    assert steps[:2] == ["sync", "rename"]


def test_mode_is_that_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    with atomic_write(tmp_path / "x") as temporary:
        temporary.touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "x")}
    assert len(modes) == 1
