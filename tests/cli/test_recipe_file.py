"""Recipes as arguments of commands."""

from rnnlab import cli


def test_the_directory_of_a_run_is_no_recipe(tmp_path, capsys):
    folder = tmp_path / "my runs"
    folder.mkdir()
    (folder / "last.h5").touch()
    assert cli.main(["train", str(folder)]) == 2
    assert f"resume it with rnnlab train --resume '{folder}', or give the file" in capsys.readouterr().err


def test_a_missing_recipe_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "shaeps"]) == 2
    assert "recipe shaeps does not exist; did you mean shapes " in capsys.readouterr().err
