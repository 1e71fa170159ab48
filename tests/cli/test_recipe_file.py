"""Recipes as arguments of commands."""

from rnnlab import cli


def test_a_missing_recipe_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "shaeps"]) == 2
    assert "recipe shaeps does not exist; did you mean shapes " in capsys.readouterr().err
