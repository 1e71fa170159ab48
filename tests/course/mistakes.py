"""Typical mistakes in implementations of the layers, and unusual implementations without a mistake.

``MISTAKES`` are what a diagnosis must explain, ``RIGHT`` is what it must not accuse. ``HELD_OUT`` are
mistakes that a diagnosis is measured on but not tuned on. What each mistake holds is described in
:class:`Mistake`; :func:`names` decides whether a message names a mistake.
"""

from __future__ import annotations

import importlib
import pkgutil

from . import students
from .students.mistake import KINDS, Mistake, Right, names

__all__ = ["HELD_OUT", "KINDS", "MISTAKES", "RIGHT", "Mistake", "Right", "names"]

_FILES = [
    importlib.import_module(f"{students.__name__}.{found.name}")
    for found in pkgutil.iter_modules(students.__path__)
]

MISTAKES: list[Mistake] = [mistake for file in _FILES for mistake in getattr(file, "MISTAKES", [])]
HELD_OUT: list[Mistake] = [mistake for file in _FILES for mistake in getattr(file, "HELD_OUT", [])]
RIGHT: list[Right] = [right for file in _FILES for right in getattr(file, "RIGHT", [])]
