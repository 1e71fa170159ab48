from __future__ import annotations

import os
import stat
import tempfile

import pytest

from rnnlab.files import atomic_write, check_writable


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


def test_what_cannot_be_written_is_found_early(tmp_path, monkeypatch):
    check_writable("--out", tmp_path / "new" / "folder" / "x.txt")
    check_writable("--out", tmp_path / "new" / "folder", is_folder=True)
    check_writable("--out", tmp_path, is_folder=True)
    assert names(tmp_path) == []
    with pytest.raises(IsADirectoryError, match="--out .* cannot be written: it is a directory, expected a"):
        check_writable("--out", tmp_path)
    (tmp_path / "file").touch()
    check_writable("--out", tmp_path / "file")
    for path, is_folder in ((tmp_path / "file" / "x", False), (tmp_path / "file", True)):
        with pytest.raises(NotADirectoryError, match="file is a file, expected a folder"):
            check_writable("--out", path, is_folder=is_folder)

    def refuse(dir):
        raise PermissionError(13, "Permission denied", f"{dir}/tmp12345")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    target = tmp_path / "new" / "x.txt"
    with pytest.raises(PermissionError) as caught:
        check_writable("--out", target)
    reason = f"{tmp_path} takes no new files (Permission denied)"
    assert str(caught.value) == f"--out {target} cannot be written: {reason}"
