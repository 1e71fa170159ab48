"""Recipes by file or by name."""

from pathlib import Path

import pytest

from rnnlab.recipes.shipped import find, names, subject


def test_a_recipe_is_a_file_or_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find("shapes").name == "shapes.toml"
    (tmp_path / "shapes.toml").touch()
    assert find("shapes.toml").resolve() == tmp_path / "shapes.toml"
    assert find("shapes").resolve() != tmp_path / "shapes.toml"


def test_similar_names_and_files_are_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"recipes/shapes.toml does not exist; did you mean shapes "):
        find("recipes/shapes.toml")
    with pytest.raises(FileNotFoundError, match="recipe 1234 does not exist, expected a TOML file or a name"):
        find("1234")
    (tmp_path / "12345.toml").touch()
    with pytest.raises(FileNotFoundError, match=r"did you mean 12345.toml\?"):
        find("1234")
    (tmp_path / "shapes.toml").touch()
    with pytest.raises(FileNotFoundError, match=r"did you mean shapes or shapes.toml"):
        find("shpaes")
    with pytest.raises(FileNotFoundError, match="is a directory"):
        find(tmp_path)


def test_what_is_there_is_found_even_if_it_is_no_file():
    """The reader says what it is."""
    assert find("/dev/zero") == Path("/dev/zero")


@pytest.mark.parametrize("name", names())
def test_each_recipe_begins_with_its_subject(name):
    assert len(subject(name)) > 20
