"""Changes of a saved recipe when its run resumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rnnlab.recipes.overrides import key_of
from rnnlab.recipes.recipe import Recipe
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.stages import Stage, has_own
from rnnlab.recipes.tables import NOT_IN_RECIPES
from rnnlab.training.options import CHANGEABLE

_LEARNING_RATE = "optim_config.learning_rate"
_KEYS = (_LEARNING_RATE, *(name for name in CHANGEABLE if name not in NOT_IN_RECIPES))


def check_changeable(overrides: Sequence[str]) -> None:
    """Raise RecipeError if an override, ``key.sub=value``, changes a key that is fixed within a run."""
    for key, table, _, name in _split(overrides):
        if table != "callbacks" and (table not in ("training", "stage") or name not in _KEYS):
            remedy = "train a new run, which can copy parameters of the same shapes by training.warm_start"
            if table in ("decoding", "evaluation"):
                remedy = "rnnlab evaluate, caption and translate have options for it"
            raise RecipeError(
                f"--set {key}: it cannot change within a run; {remedy}. A resumed run can change all keys of "
                f"[callbacks], and these of [training] and [[stage]]: {', '.join(_KEYS)}"
            )


def changes_within_a_run(overrides: Sequence[str], recipe: Recipe, under_way: Stage) -> dict[str, Any]:
    """The changes that overrides make to the solver of the stage under way.

    Parameters
    ----------
    overrides : sequence of str
        ``key.sub=value`` each, which :func:`check_changeable` has checked.
    recipe : CaptioningRecipe, TranslationRecipe or ClassificationRecipe
        The saved recipe, with the overrides applied.
    under_way : Stage
        The stage that trains next.

    Returns
    -------
    dict
        Keyword arguments of :meth:`rnnlab.training.Solver.resume`.

    Raises
    ------
    RecipeError
        If a key belongs to a stage that has ended, or to [training] although all remaining stages have their
        own value.
    """
    changes: dict[str, Any] = {}
    for key, table, number, name in _split(overrides):
        if table == "callbacks":
            continue
        if table == "stage":
            if int(number) < under_way.number:
                raise RecipeError(f"--set {key}: stage {number} has ended, stage {under_way.number} is next")
            is_reached = int(number) == under_way.number
        else:
            keep = [has_own(stage, name, recipe.training) for stage in recipe.stage[under_way.number - 1 :]]
            if keep and all(keep):
                own = f"stage.{under_way.number}.{name}"
                raise RecipeError(f"--set {key}: stage {under_way.number} has its own {name}, so set {own}")
            is_reached = not any(keep[:1])  # else it is for a later stage
        if is_reached and name == _LEARNING_RATE:
            changes["learning_rate"] = under_way.options()["optim_config"]["learning_rate"]
        elif is_reached:
            changes[name] = under_way.options()[name]
    return changes


def _split(overrides: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """The key of each override, its table, the number of its stage or "", and its name in the table."""
    for key in map(key_of, overrides):
        table, _, name = key.partition(".")
        number = ""
        if table == "stage":
            number, _, name = name.partition(".")
        yield key, table, number, name
