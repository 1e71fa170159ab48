"""Changes of a saved recipe with which its run resumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnlab.recipes.schema import ConfigError
from rnnlab.recipes.stages import Stage
from rnnlab.recipes.tables import NOT_IN_RECIPES
from rnnlab.training.options import CHANGEABLE

_LEARNING_RATE = "optim_config.learning_rate"
_KEYS = (_LEARNING_RATE, *(name for name in CHANGEABLE if name not in NOT_IN_RECIPES))


def changes_within_a_run(overrides: Sequence[str], under_way: Stage) -> dict[str, Any]:
    """The changes that overrides make to the solver of the stage under way.

    Parameters
    ----------
    overrides : sequence of str
        ``key.sub=value`` each, with which the saved recipe was read.
    under_way : Stage
        Of the recipe with the overrides.

    Returns
    -------
    dict
        Keyword arguments of :meth:`rnnlab.training.Solver.resume`.

    Raises
    ------
    ConfigError
        If a key cannot change within a run, or is of a stage that has ended.
    """
    changes: dict[str, Any] = {}
    for key in (override.partition("=")[0].strip() for override in overrides):
        table, _, name = key.partition(".")
        number = under_way.number
        if table == "stage":
            text, _, name = name.partition(".")
            number = int(text)
        if table == "callbacks":
            continue
        if table not in ("training", "stage") or name not in _KEYS:
            raise ConfigError(
                f"--set {key}: it cannot change within a run; [callbacks] can, and of [training] and "
                f"[[stage]] {', '.join(_KEYS)}"
            )
        if number < under_way.number:
            raise ConfigError(f"--set {key}: stage {number} has ended, stage {under_way.number} resumes")
        if number == under_way.number and name == _LEARNING_RATE:
            changes["learning_rate"] = under_way.options()["optim_config"].get("learning_rate")
        elif number == under_way.number:
            changes[name] = under_way.options()[name]
    return changes
