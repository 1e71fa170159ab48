"""The tasks of recipes, one object each: captioning, translation, language models, classification.

:class:`~rnnlab.tasks.task.Task` is their interface. What training, evaluation and the commands
do differently for a kind of recipe is a method or an attribute of its task.
"""

from __future__ import annotations

from typing import Any

from rnnlab.errors import InputTypeError
from rnnlab.recipes.recipe import Recipe
from rnnlab.tasks.captioning import CaptioningTask
from rnnlab.tasks.classification import ClassificationTask
from rnnlab.tasks.language import LanguageTask
from rnnlab.tasks.task import Task
from rnnlab.tasks.translation import TranslationTask

TASKS: tuple[Task, ...] = (CaptioningTask(), TranslationTask(), LanguageTask(), ClassificationTask())


def task_of(recipe: Recipe) -> Task:
    """The task of a recipe.

    Raises
    ------
    TypeError
        If ``recipe`` is not a recipe.
    """
    for task in TASKS:
        if isinstance(recipe, task.recipe_type):
            return task
    raise InputTypeError(f"recipe is a {type(recipe).__name__}, expected a recipe, as load_recipe returns")


def task_of_data(table: Any) -> Task:
    """The task of a table [data].

    Raises
    ------
    TypeError
        If ``table`` is not a table [data].
    """
    for task in TASKS:
        if type(table) in task.openers:
            return task
    raise InputTypeError(
        f"table is a {type(table).__name__}, expected the table [data] of a recipe: recipe.data"
    )


__all__ = ["TASKS", "Task", "task_of", "task_of_data"]
