import math
import os
import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from rnnlab.options import Count, Range
from rnnlab.recipes.schema import EnvPath, Place, RecipeError, from_table, to_table
from rnnlab.recipes.stages import StageTable
from rnnlab.recipes.tables import TrainingTable


@dataclass
class Circle:
    kind: Literal["circle"]
    radius: Annotated[float, Range("(0, inf)")]


@dataclass
class Square:
    kind: Literal["square"]
    side: float = 1.0
    folder: EnvPath | None = None


@dataclass
class Drawing:
    shape: Circle | Square
    count: Annotated[int, Range("[1, 9]")] = 1
    colour: Literal["red", "blue"] = "red"
    tags: list[Literal["big", "old"]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    title: str | None = None
    filled: bool = False

    def __post_init__(self):
        if self.title == "untitled":
            raise ValueError("title is 'untitled', expected a better one")


CIRCLE = {"kind": "circle", "radius": 2}


def read(overrides=(), **table):
    return from_table(Drawing, {"shape": CIRCLE, **table}, Place("file.toml", overrides=overrides))


def test_defaults_and_values():
    drawing = read(count=3, tags=["old"], options={"any": [1, "thing"]})
    assert drawing == Drawing(Circle("circle", 2.0), 3, "red", ["old"], {"any": [1, "thing"]}, None, False)
    assert type(drawing.shape.radius) is float


def test_kind_chooses_the_table():
    assert read(shape={"kind": "square", "folder": "a/$B"}).shape == Square("square", 1.0, EnvPath("a/$B"))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"count": "many"}, "count is 'many', expected an integer in [1, 9]"),
        ({"count": 10}, "count is 10, expected an integer in [1, 9]"),
        ({"count": 2.0}, "count is 2.0, expected an integer in [1, 9]"),
        ({"count": True}, "count is True, expected an integer in [1, 9]"),
        ({"colour": "green"}, "colour is 'green', expected one of 'red', 'blue'"),
        ({"colour": "blu"}, "colour is 'blu', expected one of 'red', 'blue'; did you mean 'blue'?"),
        (
            {"tags": "old"},
            "tags is 'old', expected an array, each item one of 'big', 'old', such as [\"old\"]",
        ),
        ({"tags": "new"}, "tags is 'new', expected an array, each item one of 'big', 'old'"),
        ({"tags": ["old", "new"]}, "tags.2 is 'new', expected one of 'big', 'old'"),
        ({"options": 3}, "options is 3, expected a table"),
        ({"title": 3}, "title is 3, expected a string"),
        ({"title": "untitled"}, "title is 'untitled', expected a better one"),
        ({"filled": 1}, "filled is 1, expected true or false"),
        ({"shape": 3}, "shape is 3, expected a table"),
        ({"shape": {}}, "shape.kind is missing, expected one of 'circle', 'square'"),
        ({"shape": {"kind": "oval"}}, "shape.kind is 'oval', expected one of 'circle', 'square'"),
        ({"shape": {"kind": "circle"}}, "shape.radius is missing, expected a positive number"),
        ({"shape": CIRCLE | {"radius": 0}}, "shape.radius is 0, expected a positive number"),
        ({"shape": CIRCLE | {"radius": math.nan}}, "shape.radius is nan, expected a positive number"),
        ({"shape": CIRCLE | {"radus": 1}}, "shape.radus is unknown; did you mean radius?"),
        ({"shape": {"kind": "square", "folder": 1}}, "shape.folder is 1, expected a path or 'none'"),
        ({"title": "a\0b"}, r"title is 'a\x00b', expected a string without the character 0"),
        (
            {"shape": {"kind": "square", "folder": "C:\temp"}},
            r"shape.folder is 'C:\temp', expected a path without control characters: in double quotes, TOML "
            r"reads \t and \n as such; write / instead of \, or use single quotes",
        ),
        ({"count": 10**30}, f"count is {10**30}, expected an integer in [1, 9], of 64 bits"),
        ({"size": 1}, "size is unknown; there are shape, count, colour, tags, options, title, filled"),
    ],
)
def test_errors_name_file_key_found_and_expected(table, message):
    with pytest.raises(RecipeError) as error:
        read(**table)
    assert str(error.value) == f"file.toml: {message}"


def test_errors_of_overrides_name_the_command_line():
    with pytest.raises(RecipeError, match="^--set: count is 0"):
        read(overrides=["count"], count=0)
    with pytest.raises(RecipeError, match=r"^--set: shape\.radius is 0"):
        read(overrides=["shape"], shape=CIRCLE | {"radius": 0})
    with pytest.raises(RecipeError, match=r"^file.toml: count is 0"):
        read(overrides=["count.x", "coun"], count=0)


@pytest.mark.parametrize(
    ("text", "key", "source"),
    [
        ("optim_config: learning_rate is -1, expected", "training.optim_config.learning_rate", "--set"),
        ("optim_config: learning_rate is -1, expected", "training.optim_config.beta1", "file.toml"),
        ("schedule exponential: decay is 2, expected", "training.schedule.decay", "--set"),
        ("schedule exponential: decay is 2, expected", "training.schedule", "--set"),
        ("schedule exponential: decay is 2, expected", "training.num_epochs", "file.toml"),
        ("schedule exponential: unknown key 'rate'; it has", "training.schedule.rate", "--set"),
        ("schedule exponential: unknown key 'rate'; it has", "training.schedule.decay", "file.toml"),
    ],
)
def test_errors_of_options_of_a_rule_name_the_command_line(text, key, source):
    place = Place("file.toml", overrides=[key])
    assert place.message(ValueError(f"training.{text}")) == f"{source}: training.{text}"


def test_checks_of_a_nested_dataclass_name_its_key():
    @dataclass
    class Outer:
        inner: Drawing

    with pytest.raises(RecipeError, match=r"^file\.toml: inner\.title is 'untitled'"):
        from_table(Outer, {"inner": {"shape": CIRCLE, "title": "untitled"}}, Place("file.toml"))
    with pytest.raises(RecipeError, match=r"^file\.toml: inner is 1, expected a table"):
        from_table(Outer, {"inner": 1}, Place("file.toml"))
    with pytest.raises(RecipeError, match=r"^file\.toml: inner is missing, expected a table"):
        from_table(Outer, {}, Place("file.toml"))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("device", "training.device is unknown; it is the option --device of the command"),
        ("graphs", "training.graphs is unknown; it is the option --graphs or --no-graphs of the command"),
        ("graph", "training.graph is unknown; there are "),
    ],
)
def test_options_of_the_command_are_no_keys(key, message):
    with pytest.raises(RecipeError, match=re.escape(message)):
        from_table(TrainingTable, {key: True}, Place("file.toml") / "training")
    with pytest.raises(RecipeError, match=re.escape(message.replace("training", "stage.1"))):
        from_table(StageTable, {key: True}, Place("file.toml") / "stage.1")


def test_round_trip():
    drawing = read(shape={"kind": "square", "folder": "$HOME/x"}, tags=["big"], options={"a": {"b": 1}})
    table = to_table(drawing)
    assert table["shape"] == {"kind": "square", "side": 1.0, "folder": "$HOME/x"}
    assert table["title"] is None
    assert from_table(Drawing, table, Place("again")) == drawing


def test_env_path(monkeypatch):
    monkeypatch.setenv("PLACE", "/data")
    monkeypatch.setenv("HOME", "/home/me")
    assert os.fspath(EnvPath("$PLACE/a")) == os.fspath(EnvPath("${PLACE}/a")) == "/data/a"
    assert os.fspath(EnvPath("~/a")) == "/home/me/a"
    assert str(EnvPath("$PLACE/a")) == "$PLACE/a"
    assert repr(EnvPath("$PLACE/a")) == "EnvPath('$PLACE/a')"
    assert len({EnvPath("a"), EnvPath("a")}) == 1
    monkeypatch.delenv("PLACE")
    with pytest.raises(
        ValueError, match=r"path '\$PLACE/a' needs the environment variable PLACE, which is not"
    ):
        os.fspath(EnvPath("$PLACE/a"))
    monkeypatch.setenv("PLACE", "")  # not the path /a
    with pytest.raises(ValueError, match=r"needs the environment variable PLACE, which is empty"):
        os.fspath(EnvPath("$PLACE/a"))


@pytest.mark.parametrize("nothing", ["none", None])
def test_none_is_written_as_a_string(nothing):
    @dataclass
    class Options:
        attention: Literal["dot"] | None = "dot"
        units: Count | None = 3
        folder: EnvPath | None = None

    table = {"attention": nothing, "units": nothing, "folder": nothing}
    options = from_table(Options, table, Place("file.toml"))
    assert options == Options(None, None, None)
    assert from_table(Options, to_table(options), Place("file.toml")) == options
    with pytest.raises(RecipeError, match=r"file\.toml: attention is 'add', expected 'dot' or 'none'$"):
        from_table(Options, {"attention": "add"}, Place("file.toml"))
