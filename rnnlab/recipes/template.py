"""Templates of recipes in TOML: every key with its default, its meaning and its allowed values."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from collections.abc import Collection, Iterator
from typing import Any, get_args, get_origin

from rnnlab.options import annotations_of, suggestion
from rnnlab.recipes.derived import help_of
from rnnlab.recipes.recipe import Recipe, data_tables, recipes_by_kind
from rnnlab.recipes.schema import RecipeError, toml_expectation
from rnnlab.recipes.stages import OF_STAGES, LossWeights, StageTable
from rnnlab.recipes.tables import SelfCriticalTable

_WIDTH = 100


def kinds() -> list[str]:
    """The kinds of data that recipes can have."""
    return list(recipes_by_kind())


def template(kind: str) -> str:
    """A recipe for one kind of data, with all keys of all tables; those of [[stage]] are named at its end.

    Parameters
    ----------
    kind : str
        "shapes", "parallel", "mnist" or another ``data.kind``. Keys without a default are paths, written as
        ``PATH``.

    Raises
    ------
    RecipeError
        If there is no such kind.
    """
    if kind not in kinds():
        raise RecipeError(f"kind is {kind!r}; {suggestion(kind, kinds())}")
    recipe = recipes_by_kind()[kind]
    return "\n".join([*_tables(recipe, kind), "", *_stage(recipe)]) + "\n"


def _tables(recipe: type[Recipe], kind: str) -> Iterator[str]:
    tables = dict(annotations_of(recipe))
    tables["data"] = data_tables(recipe)[kind]
    yield f"# All keys of a recipe with data.kind = {kind!r}."
    for name in (field.name for field in dataclasses.fields(recipe) if field.name != "stage"):
        yield from ("", f"[{name}]")
        yield from _keys(tables[name], without=recipe.REFUSED)


def _stage(recipe: type[Recipe]) -> Iterator[str]:
    """The keys of a stage, as comments: a recipe need not have stages."""
    model = {each.name for each in dataclasses.fields(annotations_of(recipe)["model"])}
    stage = [each.name for each in dataclasses.fields(StageTable) if each.name not in recipe.REFUSED]
    shared = [name for name in stage if name not in OF_STAGES]
    others = [f"losses.{each.name}" for each in dataclasses.fields(LossWeights) if each.name in model]
    if "self_critical" in stage:
        others += [f"self_critical.{each.name}" for each in dataclasses.fields(SelfCriticalTable)]
    yield from textwrap.wrap(
        "Tables [[stage]], if there are any, train one after another. A key of [training] may be in a stage "
        f"instead: {', '.join(shared)}. A stage may also have {', '.join(others)}.",
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
    )


def _keys(table: Any, prefix: str = "", without: Collection[str] = ()) -> Iterator[str]:
    """The lines of a table's keys; a table inside it has dotted keys."""
    helps = help_of(table)
    annotations = annotations_of(table)
    for field in (each for each in dataclasses.fields(table) if each.name not in without):
        annotation, key = annotations[field.name], f"{prefix}{field.name}"
        if dataclasses.is_dataclass(annotation):
            yield from _keys(annotation, f"{key}.")
            continue
        if field.name != "kind":
            yield from textwrap.wrap(
                f"{_plain(helps[field.name])} Expected: {toml_expectation(annotation)}.",
                _WIDTH,
                initial_indent="# ",
                subsequent_indent="# ",
                break_long_words=False,
            )
        yield f"{key} = {_toml(_default(field, annotation))}"


def _default(field: Any, annotation: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return get_args(annotation)[0] if get_origin(annotation) is not None else "PATH"


def _toml(value: Any) -> str:
    """A value as TOML. Strings, numbers, booleans and arrays in JSON are valid TOML."""
    return json.dumps("none" if value is None else value)


def _plain(text: str) -> str:
    """A description without the markup of docstrings, and with TOML's values instead of Python's."""
    text = re.sub(r" \(:mod:`[^`]+`\)", "", text)  # for readers of the API reference
    text = re.sub(r":\w+:`~?([^`]+)`", lambda match: match[1].rpartition(".")[2], text)
    text = re.sub(r"``\{(.+?)\}``", lambda match: f"{{ {_inline(match[1])} }}", text)
    return re.sub(r"\bNone\b", '"none"', text).replace("``", "")


def _inline(items: str) -> str:
    """The items of a Python dict literal as those of a TOML inline table."""
    return re.sub(r'"([^"]+)": ', lambda match: f"{_key(match[1])} = ", items)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
