from rnnlab import cli
from rnnlab.recipes.template import template


def test_a_recipe_is_printed(capsys):
    assert cli.main(["recipe", "digits"]) == 0
    assert capsys.readouterr().out == template("digits")
    assert cli.main(["recipe", "digit"]) == 2
    assert capsys.readouterr().err == "rnnlab recipe: kind is 'digit'; did you mean digits?\n"
