"""The solver, which trains your model."""

from rnnlab.cs231n.captioning_solver import CaptioningSolver

__all__ = ["CaptioningSolver"]
