"""Training: the solver and its parts.

Read :mod:`~rnnlab.training.solver` first; its docstring lists the file of each part of the loop.
"""

from rnnlab.training.callbacks import Callback
from rnnlab.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    load_checkpoint,
    load_model,
    load_parameters,
    save_checkpoint,
    save_model,
)
from rnnlab.training.clipping import clip_by_norm, clip_by_value, gradient_norm
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.optim import UPDATE_RULES, make_update_rule, register_update_rule
from rnnlab.training.protocols import Objective, Rollout
from rnnlab.training.sampling_schedules import (
    SAMPLING_SCHEDULES,
    SamplingSchedule,
    make_sampling_schedule,
    register_sampling_schedule,
)
from rnnlab.training.schedules import SCHEDULES, Schedule, make_schedule, register_schedule
from rnnlab.training.self_critical import SelfCritical
from rnnlab.training.solver import Solver
from rnnlab.training.update_rule import UpdateRule
from rnnlab.training.validation import validation_loss
from rnnlab.training.warm_start import WarmStart, warm_start

__all__ = [
    "SAMPLING_SCHEDULES",
    "SCHEDULES",
    "UPDATE_RULES",
    "Callback",
    "Checkpoint",
    "CheckpointError",
    "NonFiniteError",
    "Objective",
    "Rollout",
    "SamplingSchedule",
    "Schedule",
    "SelfCritical",
    "Solver",
    "UpdateRule",
    "WarmStart",
    "clip_by_norm",
    "clip_by_value",
    "gradient_norm",
    "load_checkpoint",
    "load_model",
    "load_parameters",
    "make_sampling_schedule",
    "make_schedule",
    "make_update_rule",
    "register_sampling_schedule",
    "register_schedule",
    "register_update_rule",
    "save_checkpoint",
    "save_model",
    "validation_loss",
    "warm_start",
]
