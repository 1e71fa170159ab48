"""The types that users of type checkers meet: a program with their annotations has no errors."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnnlab.data import ArrayData
from rnnlab.decoding import StepModel

BATCHES = """
from rnnlab.data import open_shapes
from rnnlab.decoding import StepModel, beam_search
from rnnlab.models import CaptioningRNN

data = open_shapes()
model: StepModel = CaptioningRNN(data.vocabulary.word_to_idx)
features, captions = data.batch("train", range(4))
features, captions = data.batch("train", [3, 1])
for (best,) in beam_search(model, features):
    print(best.score)
"""

EXTENSIONS = """
from dataclasses import dataclass
from typing import Any, ClassVar

from rnnlab.layers import Cell
from rnnlab.parameters import Parameters
from rnnlab.training import Callback, UpdateRule
from rnnlab.training.callbacks import Training
from rnnlab.types import Array, Params, State


class Plain(Cell):
    def step_forward(self, a: Array, state: State, params: Params) -> tuple[State, Any]:
        return state, None

    def step_backward(
        self, dstate: State, params: Params, cache: Any
    ) -> tuple[Array, State, dict[str, Array]]:
        return dstate[0], dstate, {}


class Dropping(Plain):
    drops_candidate = True

    def step_forward(
        self, a: Array, state: State, params: Params, candidate_mask: Array | None = None
    ) -> tuple[State, Any]:
        return state, None


@dataclass(kw_only=True)
class Momentum(UpdateRule):
    slots: ClassVar[tuple[str, ...]] = ("m",)

    def update(self, w: Array, dw: Array, m: Array, *, learning_rate: float, scale: float) -> None:
        w -= learning_rate * m


class Watch(Callback):
    def on_step(self, solver: Training, loss: Any, grads: Parameters) -> None:
        print(solver.iteration, float(loss))
"""


def strictly_checked(program, folder):
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "program.py"]
    environment = os.environ | {"MYPYPATH": str(Path(__file__).parents[1])}
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, capture_output=True, check=False
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize("program", [BATCHES, EXTENSIONS], ids=["batches", "extensions"])
def test_a_program_without_type_errors(program, tmp_path):
    assert strictly_checked(program, tmp_path) == "Success: no issues found in 1 source file\n"


def test_a_batch_of_a_range_or_a_list(rng):
    x = rng.standard_normal((5, 2))
    data = ArrayData({"train": (x,)})
    for indices in (range(1, 3), [1, 2], np.array([1, 2])):
        np.testing.assert_array_equal(*data.batch("train", indices), x[1:3])


@pytest.mark.parametrize("method", [StepModel.start, StepModel.advance])
def test_a_step_model_may_name_its_arguments(method):
    """Pyright compares the names of a protocol's arguments, unless they are positional only."""
    kinds = {each.kind for each in list(inspect.signature(method).parameters.values())[1:]}
    assert kinds == {inspect.Parameter.POSITIONAL_ONLY}
