"""A step of beam search: that of NumPy with the compiled search for the largest scores."""

from __future__ import annotations

from rnnlab.ops.beams import BeamRules, BeamStep, Found
from rnnlab.ops.numba.scores import top
from rnnlab.ops.numpy.beams import step_by
from rnnlab.types import Array


def beam_step(
    log_probs: Array,
    before: BeamStep,
    found: Found,
    pointers: Array,
    rules: BeamRules,
    places: Array | None = None,
    penalty: Array | None = None,
) -> BeamStep:
    return step_by(top, log_probs, before, found, pointers, rules, places, penalty)
