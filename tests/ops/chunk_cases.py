"""A chunk of steps of any cell: random arrays, and what the primitives make of them."""

import inspect

import numpy as np

from rnnlab.ops.api import Primitives
from rnnlab.ops.steps import StepInputs, Steps

CELLS = {"rnn": 1, "lstm": 4, "gru": 3, "simplified_gru": 2}  # columns of gates in H
RAGGED = {
    "one row": (1, 1, 1),
    "one step": (9,),
    "equal": (50,) * 4,
    "ragged": (45, 45, 33, 32, 31, 17, 16, 3, 1),
}


def steps_of(module, cell):
    """The forward and the backward of a cell's steps."""
    return getattr(module, f"{cell}_steps_forward"), getattr(module, f"{cell}_steps_backward")


def noted(by_steps, names):
    """The same primitives, which append their names when they are called."""

    def note(name):
        return lambda *given: (names.append(name), getattr(by_steps, name)(*given))

    return by_steps._replace(**{name: note(name) for name in by_steps._fields})


class Chunk:
    """Arrays of a chunk of steps; the first of the sequences' steps may have been in an earlier one.

    Each argument of the cell's primitives is an attribute of the chunk.
    """

    def __init__(self, cell, alive, units, dtype, rng, earlier=0, width=3):
        self.cell, self.alive, self.steps, self.earlier = cell, alive, Steps(alive[0], alive), earlier
        N, M, H, G = alive[0], sum(alive), units, CELLS[cell] * units

        def normal(*shape):
            return rng.standard_normal(shape).astype(dtype)

        Wh = (H**-0.5 * normal(H, G)).astype(dtype)
        self.Wh, self.Wh_gates, self.Wh_candidate = Wh, Wh[:, : 2 * H], Wh[:, 2 * H :]
        self.to_h, self.gates_to_h, self.candidate_to_h = self.Wh.T, self.Wh_gates.T, self.Wh_candidate.T
        self.gates, self.tanh_c, self.reset_h, self.dh = (
            normal(M, G),
            normal(M, H),
            normal(M, H),
            normal(M, H),
        )
        self.h, self.c = normal(N + M, H), normal(N + M, H)
        self.dstate, self.dcell, self.da = normal(N, H), normal(N, H), normal(M, G)
        self.x, self.Wx, self.b = normal(M, width), normal(width, G), normal(G)

    def arguments(self, way, prepacked, view=np.copy):
        """The arguments of the cell's "forward" or "backward" by name, except steps and inputs, in copies."""
        signature = inspect.signature(getattr(Primitives, f"{self.cell}_steps_{way}"))
        names = [name for name in signature.parameters if name not in ("self", "steps", "inputs")]
        weight = {name for name in names if name.startswith("Wh") or name.endswith("to_h")}
        return {name: (prepacked if name in weight else view)(getattr(self, name)) for name in names}

    def run(self, forward, backward, prepacked, view=np.copy, narrow=False):
        """What both write; the backward has the last steps alone, and of a narrow input the forward too."""
        later, inputs = self.steps[self.earlier :], ()
        if narrow:
            inputs = (StepInputs(view(self.x[later.rows]), prepacked(self.Wx), view(self.b)),)
        first = self.arguments("forward", prepacked, view)
        forward(*first.values(), later if narrow else self.steps, *inputs)
        second = self.arguments("backward", prepacked, view)
        m = sum(self.alive[self.earlier :])
        second |= {name: view(getattr(self, name)[:m]) for name in ("dh", "da")}
        second |= {name: first[name] for name in first.keys() & second.keys()}
        backward(*second.values(), later)
        written = ("gates", "h", "c", "tanh_c", "reset_h", "dstate", "dcell", "da")
        return {name: array for name, array in (first | second).items() if name in written}
