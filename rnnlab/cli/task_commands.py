"""The commands for each task."""

from __future__ import annotations

from typing import TypeVar

from rnnlab.errors import InputError
from rnnlab.recipes.recipe import CaptioningRecipe, ClassificationRecipe, LanguageRecipe, TranslationRecipe
from rnnlab.runs import Run
from rnnlab.shell import quoted
from rnnlab.tasks import task_of

Kind = TypeVar("Kind", CaptioningRecipe, TranslationRecipe, LanguageRecipe, ClassificationRecipe)

_OPERANDS = {"caption": " IMAGES", "translate": " SENTENCE"}  # arguments of a command after the run


def recipe_of(run: Run, kind: type[Kind]) -> Kind:
    """The recipe of a run.

    Raises
    ------
    ValueError
        If it is a recipe of another task. The message names the command for that task.
    """
    if not isinstance(run.recipe, kind):
        task = task_of(run.recipe)
        raise InputError(
            f"{run.directory} holds a model that {task.verb}: rnnlab {task.command} "
            f"{quoted(run.directory)}{_OPERANDS.get(task.command, '')}"
        )
    return run.recipe
