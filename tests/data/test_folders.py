"""Folders that environment variables name."""

import pytest

from rnnlab.data import folders


def test_the_home_folder_is_expanded(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RNNLAB_DATA", "~/data")
    assert folders.folder_named_by("RNNLAB_DATA") == folders.public_data() == tmp_path / "data"
    assert folders.cache_folder() == tmp_path / ".cache" / "rnnlab"


@pytest.mark.parametrize("empty", [True, False])
def test_no_folder_is_named(monkeypatch, empty):
    monkeypatch.setenv("RNNLAB_DATA", "")
    if not empty:
        monkeypatch.delenv("RNNLAB_DATA")
    assert folders.folder_named_by("RNNLAB_DATA") is folders.public_data() is None


def test_a_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"RNNLAB_DATA is '.*absent', expected an existing folder"):
        folders.public_data()
    (tmp_path / "absent").write_text("a file")
    with pytest.raises(FileNotFoundError, match=r"RNNLAB_DATA is '.*absent', expected an existing folder"):
        folders.public_data()


def test_no_home_folder(monkeypatch):
    monkeypatch.setattr(folders.os.path, "expanduser", lambda path: path)  # as for a user without an entry
    with pytest.raises(FileNotFoundError, match="found no home folder, expected one, or the variable HOME"):
        folders.cache_folder()
