"""The saved state of a run, checked before the run resumes from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnlab.errors import InputError
from rnnlab.options import as_json
from rnnlab.training.checkpoint import Checkpoint, CheckpointError
from rnnlab.training.compatibility import check_data, check_model
from rnnlab.training.previous import load_or_previous
from rnnlab.training.protocols import Data, Model, Objective


def load_saved_run(
    path: Path, model: Model, data: Data, *, evaluate: Any, objective: Objective | None
) -> Checkpoint:
    """Load the checkpoint from which a run resumes, and check that it fits the arguments.

    If it is damaged, the previous one is loaded, which replaces it when training begins.

    Raises
    ------
    CheckpointError
        If the checkpoint is damaged or is not of this model or of these data.
    ValueError
        If ``evaluate`` is missing or the run had none, or the objective is not the one that the run had.
    """
    checkpoint = load_or_previous(path)
    for name in ("options", "own_evaluate"):
        if name not in checkpoint.solver:
            raise CheckpointError(path, f"solver: {name}", "nothing", "the state of a training run")
    if checkpoint.solver["own_evaluate"] and evaluate is None:
        raise InputError("resume: this run had its own evaluation function, pass it as evaluate")
    if evaluate is not None and not checkpoint.solver["own_evaluate"]:
        raise InputError("resume: this run had no evaluation function of its own, leave evaluate out")
    saved, given = checkpoint.solver.get("objective"), config_of(objective)
    if saved != given:
        raise InputError(f"resume: objective is {given}, and this run has {saved}: pass the same")
    check_model(path, checkpoint, model)
    check_data(path, checkpoint, data, same=True)
    return checkpoint


def config_of(objective: Objective | None) -> Any:
    """The options of an objective as they return from JSON; None if there is no objective.

    Raises
    ------
    TypeError
        If JSON cannot hold them.
    """
    return None if objective is None else as_json(objective.config(), f"{type(objective).__name__}.config()")
