"""Grids of overrides."""

import pytest

from rnnlab.recipes.grid import grid, split_values
from rnnlab.recipes.overrides import with_overrides
from rnnlab.recipes.schema import RecipeError


def test_every_combination():
    points = grid(["model.hidden_dim=8,16", "training.num_epochs=3", "model.cell_type=gru, lstm"])
    assert [point.name for point in points] == [
        "hidden_dim=8,cell_type=gru",
        "hidden_dim=8,cell_type=lstm",
        "hidden_dim=16,cell_type=gru",
        "hidden_dim=16,cell_type=lstm",
    ]
    assert points[1].overrides == ("model.hidden_dim=8", "training.num_epochs=3", "model.cell_type=lstm")


def test_without_several_values_there_is_one_point_without_a_name():
    assert grid([]) == [("", ())]
    assert grid(["model.hidden_dim=8"]) == [("", ("model.hidden_dim=8",))]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", ["1"]),
        ("", [""]),
        ("1e-3,1e-4", ["1e-3", "1e-4"]),
        ("[1, 2]", ["[1, 2]"]),
        ("[1, 2],[3, [4, 5]]", ["[1, 2]", "[3, [4, 5]]"]),
        ("{a = 1, b = 2},none", ["{a = 1, b = 2}", "none"]),
        ("'x,y',z", ["'x,y'", "z"]),
        ('"x, [y",z', ['"x, [y"', "z"]),
        ("[']', 1],2", ["[']', 1]", "2"]),
        ("o'brien,a[0", ["o'brien", "a[0"]),
    ],
)
def test_values_are_split_at_commas_outside_of_brackets_and_quotation_marks(text, values):
    assert split_values(text) == values


def test_an_array_is_a_value():
    (one, other) = grid(['evaluation.metrics=["BLEU", "CIDEr"],["BLEU"]'])
    assert one.name == "metrics=BLEU_CIDEr"
    assert with_overrides({}, one.overrides)[0] == {"evaluation": {"metrics": ["BLEU", "CIDEr"]}}
    assert with_overrides({}, other.overrides)[0] == {"evaluation": {"metrics": ["BLEU"]}}


def test_keys_with_the_same_end_are_written_out():
    (first, *_) = grid(["stage.1.num_epochs=1,2", "stage.2.num_epochs=3,4", "training.seed=0,1"])
    assert first.name == "stage.1.num_epochs=1,stage.2.num_epochs=3,seed=0"


def test_a_name_is_a_file_name():
    assert grid(["data.directory=a/b,../c"])[0].name == "directory=a_b"
    names = [point.name for point in grid(['training.trains=["*"],["!W_embed"]'])]
    assert names == ["trains=all", "trains=not_W_embed"]
    with pytest.raises(RecipeError, match=r"the name x=aaa.*\.\.\., expected at most 200 bytes"):
        grid([f"x={'a' * 300},b"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.hidden_dim"], "'model.hidden_dim', expected key.sub=value or key.sub=value,value"),
        (["=1,2"], "'=1,2', expected key.sub=value"),
        (["a=1,2", "a=3"], "a is given twice, expected all of its values in one: a=1,2"),
        (["a=1,,2"], "'a=1,,2' has an empty value, expected values around each comma"),
        (["a=1,1"], "'a=1,1' has a value twice, 1 and 1, expected different ones"),
        (["a=0.1,1e-3,0.001"], "'a=0.1,1e-3,0.001' has a value twice, 1e-3 and 0.001, expected"),
        (["a=[32, 64],[32,64]"], r"'a=\[32, 64\],\[32,64\]' has a value twice"),
        (["a=[1,2"], r"'\[1,2' has no closing \]"),
        (["a=x/y,x:y"], "two combinations have the name a=x_y, expected values that differ in a letter"),
    ],
)
def test_errors(settings, message):
    with pytest.raises(RecipeError, match=f"--set: {message}"):
        grid(settings)
