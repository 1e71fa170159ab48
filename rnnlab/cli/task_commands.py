"""Which command is for which task."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from rnnlab.recipes.recipe import ClassificationConfig, Config, Recipe, TranslationConfig
from rnnlab.runs import Run

Kind = TypeVar("Kind", Config, TranslationConfig, ClassificationConfig)


class _Words(NamedTuple):
    does: str
    makes: str
    command: str


WORDS: dict[type[Recipe], _Words] = {
    Config: _Words("captions", "captions", "caption"),
    TranslationConfig: _Words("translates", "translations", "translate"),
    ClassificationConfig: _Words("classifies", "classes", "evaluate"),
}


def recipe_of(run: Run, kind: type[Kind]) -> Kind:
    """The recipe of a run.

    Raises
    ------
    ValueError
        If it is a recipe of another task. The message names the command for that task.
    """
    if not isinstance(run.config, kind):
        words = WORDS[type(run.config)]
        raise ValueError(
            f"{run.directory} holds a model that {words.does}: rnnlab {words.command} {run.directory}"
        )
    return run.config
