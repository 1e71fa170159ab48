from __future__ import annotations

import dataclasses
from typing import get_args, get_type_hints

import pytest

from rnnlab.data.text_inputs import TEXT_TOKENIZERS
from rnnlab.recipes import data
from rnnlab.recipes.recipe import (
    CaptioningRecipe,
    ClassificationRecipe,
    LanguageRecipe,
    TranslationRecipe,
    recipe_from_dict,
)

RECIPES = {kind: CaptioningRecipe for kind in ("shapes", "course", "karpathy", "coco")}
RECIPES |= {"parallel": TranslationRecipe, "habeas": TranslationRecipe}
RECIPES |= {"text": LanguageRecipe, "running_text": LanguageRecipe}
RECIPES |= {"mnist": ClassificationRecipe, "digits": ClassificationRecipe}
TABLES = [table for table in vars(data).values() if dataclasses.is_dataclass(table)]


def kind_of(table):
    return get_args(get_type_hints(table)["kind"])[0]


@pytest.mark.parametrize("table", [data.TextTable, data.RunningTextTable])
def test_the_tokenizers_of_text(table):
    assert get_args(get_type_hints(table)["tokenizer"]) == tuple(TEXT_TOKENIZERS)


def test_every_kind_has_a_table():
    assert {kind_of(table) for table in TABLES} == set(RECIPES)


@pytest.mark.parametrize("table", TABLES, ids=kind_of)
def test_the_kind_chooses_table_and_recipe(table):
    required = [
        field.name
        for field in dataclasses.fields(table)
        if field.default is field.default_factory is dataclasses.MISSING
    ]
    keys = {name: "$SOMEWHERE/data" for name in required} | {"kind": kind_of(table)}
    recipe = recipe_from_dict({"data": keys})
    assert type(recipe) is RECIPES[kind_of(table)]
    assert type(recipe.data) is table
    assert all(str(getattr(recipe.data, name)) == keys[name] for name in required)
    assert recipe_from_dict(recipe.to_dict()) == recipe
