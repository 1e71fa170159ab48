import pytest

from rnnlab import cli
from rnnlab.recipes import shipped
from rnnlab.recipes.recipe import load_recipe
from rnnlab.recipes.template import template


def test_the_list_has_every_recipe_with_its_subject(capsys):
    assert cli.main(["recipes", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == shipped.names()
    assert all(len(line.split()) > 2 for line in lines if not line.startswith(" "))


def test_a_copy_is_the_recipe_and_overwrites_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recipes", "copy", "shapes"]) == 0
    assert capsys.readouterr().out == "shapes.toml: train it with rnnlab train shapes.toml\n"
    assert load_recipe("shapes.toml") == load_recipe("shapes")
    (tmp_path / "shapes.toml").write_text("# mine")
    assert cli.main(["recipes", "copy", "shapes"]) == 2
    assert "shapes.toml already exists" in capsys.readouterr().err
    assert (tmp_path / "shapes.toml").read_text() == "# mine"
    assert cli.main(["recipes", "copy", "shapes", "other.toml"]) == 0
    assert load_recipe("other.toml") == load_recipe("shapes")


def test_a_name_that_is_unknown_is_reported_with_one_that_is_near(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["recipes", "copy", "shaeps"]) == 2
    assert "rnnlab has no recipe 'shaeps'; did you mean shapes?" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_all_keys_of_a_kind_are_printed(capsys):
    assert cli.main(["recipes", "keys", "digits"]) == 0
    assert capsys.readouterr().out == template("digits")
    assert cli.main(["recipes", "keys", "digit"]) == 2
    assert capsys.readouterr().err == "rnnlab recipes: kind is 'digit'; did you mean digits?\n"


@pytest.mark.parametrize("arguments", [[], ["copy"], ["keys"]])
def test_what_is_missing_is_named(arguments, capsys):
    try:
        status = cli.main(["recipes", *arguments])
    except SystemExit as end:
        status = end.code
    assert status == (2 if arguments else 0)
    assert "usage: rnnlab recipes" in "".join(capsys.readouterr())
