"""Missing recipes are reported with names of others."""

from rnnlab import cli


def test_a_recipe_is_suggested_from_the_folder_of_recipes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "shapes"]) == 2
    assert "recipe shapes does not exist, expected a TOML file such as" in capsys.readouterr().err
    (tmp_path / "runs").mkdir()
    assert cli.main(["train", "runs"]) == 2
    assert "recipe runs is a directory, expected a TOML file such as" in capsys.readouterr().err
    (tmp_path / "recipes").mkdir()
    for name in ("shapes", "multi30k"):
        (tmp_path / "recipes" / f"{name}.toml").touch()
    assert cli.main(["train", "shaeps"]) == 2
    assert "recipe shaeps does not exist; did you mean recipes/shapes.toml?" in capsys.readouterr().err
    assert cli.main(["train", "else/x.toml"]) == 2
    assert "does not exist; there are recipes/multi30k.toml, recipes/shapes.toml" in capsys.readouterr().err
