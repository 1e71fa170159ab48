"""Recipes: TOML files that describe an experiment, and their schema."""

from rnnlab.recipes.recipe import (
    CaptioningRecipe,
    ClassificationRecipe,
    LanguageRecipe,
    Recipe,
    RecipeError,
    TranslationRecipe,
    load_recipe,
)

__all__ = [
    "CaptioningRecipe",
    "ClassificationRecipe",
    "LanguageRecipe",
    "Recipe",
    "RecipeError",
    "TranslationRecipe",
    "load_recipe",
]
