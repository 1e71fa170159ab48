"""TOML of a bounded size and depth."""

import time

import pytest

from rnnlab.limits import RECIPE_BYTES, RECIPE_LINE
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.toml_text import check_depth, parse_toml, read_toml


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recipe.toml"


def test_the_tables_of_a_file(path):
    path.write_text('# a comment\r\n[data]\nkind = "shapes"\n', newline="")
    assert read_toml(path) == {"data": {"kind": "shapes"}}
    path.write_text('[data]\nkind = "shapes"\n', encoding="utf-8-sig")  # as editors on Windows do
    assert read_toml(path) == {"data": {"kind": "shapes"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a = ", "not a TOML file: "),
        (b'a = "\xff"', "not a TOML file: .*utf-8"),
        (
            b".".join([b"a"] * 100_000) + b" = 1",
            "found a line of 200,003 characters, 'a.a.a.* expected at most 2,000",
        ),
        (b"a = " + b"[\n" * 5000 + b"]\n" * 5000, "found tables or arrays nested deeper than 16"),
    ],
    ids=range(4),
)
def test_what_is_refused(path, text, message):
    path.write_bytes(text)
    started = time.monotonic()
    with pytest.raises(RecipeError, match=rf"recipe\.toml: {message}"):
        read_toml(path)
    assert time.monotonic() - started < 10


def test_the_longest_keys_take_a_fraction_of_a_second(path):
    key = ".".join(["a"] * (RECIPE_LINE // 2 - 4))
    path.write_text("".join(f"b{number}.{key} = 1\n" for number in range(3)))
    started = time.monotonic()
    tables = read_toml(path)
    assert time.monotonic() - started < 3
    with pytest.raises(RecipeError, match="x: found tables or arrays nested deeper than 16, expected fewer"):
        check_depth(tables, "x")


def test_a_file_above_the_limit(path):
    path.write_bytes(b"#" * (RECIPE_BYTES + 1))
    with pytest.raises(
        ValueError, match="recipe.toml: found 262,145 bytes, expected a recipe of at most 262,144"
    ):
        read_toml(path)


def test_depth():
    check_depth({"stage": [{"optim_config": {"beta": [1, 2]}}]}, "x")
    deep: dict = {}
    for _ in range(20_000):
        deep = {"a": [deep]}
    with pytest.raises(RecipeError, match="x: found tables or arrays nested deeper"):
        check_depth(deep, "x")
    while deep:  # freed from outside to inside: the interpreter would recurse
        (deep,) = deep["a"]


def test_text_that_is_no_toml_is_a_value_error():
    with pytest.raises(ValueError, match="Invalid"):
        parse_toml("a = b", "x")
    with pytest.raises(RecipeError, match="--set: found tables or arrays nested deeper"):
        parse_toml("a = " + "[" * 1900, "--set")
