"""The time that a new process takes to import a library and to finish a first training step.

The imports are those of a training script: models, data, training and decoding, or torch. The
compiled kernels are on disk already. "import and first step" also makes the data, the weights and the model;
"first step" starts after that.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from benchmarks.table import AtMost

MODULES = {
    "rnnlab": ("rnnlab.data", "rnnlab.decoding", "rnnlab.models", "rnnlab.training"),
    "torch": ("torch",),
}
CAPTIONS = "N=25 T=16 H=512 V=1004"  # the batch of the first step
CASES = {what: what for what in ("import", "import and first step", "first step")}
SIDES = ("rnnlab", "torch")
TARGETS = {
    "import": {"torch": AtMost(500)},
    "import and first step": {"torch": AtMost(1000)},
    "first step": {"torch": AtMost(1000)},
}
FRESH = True
ROUNDS = 5


def prepare(side: str, case: str) -> Callable[[], object]:
    """The work of one of the three cases, to be called once in a process."""
    if case == "import":
        return lambda: _import(side)
    if case == "first step":
        _import(side)
        return _first_step(side)
    return lambda: (_import(side), _first_step(side)())


def _import(side: str) -> None:
    for name in MODULES[side]:
        importlib.import_module(name)


def _first_step(side: str) -> Callable[[], object]:
    from benchmarks import captioning

    return captioning.prepare(side, captioning.CASES[CAPTIONS])
