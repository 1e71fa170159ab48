"""A chunk of steps of any cell with random arrays, run at once and one step after the other."""

import numpy as np

from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.layers.recurrent.cell_run import CellRun
from rnnlab.layers.recurrent.regularisation import Draws, Regularisation
from rnnlab.ops.steps import StepInputs, Steps

CELLS = ("rnn", "lstm", "gru", "simplified_gru")
RAGGED = {
    "one row": (1, 1, 1),
    "two steps": (9, 9),
    "equal": (50,) * 4,
    "ragged": (45, 45, 33, 32, 31, 17, 16, 3, 1),
}
SEEDS = [5, 2**63 - 1, 7, 11]


def regularisations(cell):
    """Options of every kind of mask that a cell can have, alone and together."""
    every = [{"zoneout_h": 0.3}, {"recurrent_dropout": 0.4}, {"zoneout_h": 0.2, "recurrent_dropout": 0.3}]
    if cell == "lstm":
        every += [{"zoneout_c": 0.4}, {"zoneout_h": 0.2, "zoneout_c": 0.3, "recurrent_dropout": 0.5}]
    if cell != "rnn":
        on_candidate = {"recurrent_dropout": 0.4, "recurrent_dropout_on": "candidate"}
        every += [on_candidate, {"zoneout_h": 0.2, **on_candidate}]
    return every


class Chunk:
    """Arrays of a chunk of steps; the first of the sequences' steps may have been in an earlier one."""

    def __init__(
        self, cell, alive, units, dtype, rng, *, earlier=0, width=3, regularisation=None, drawn=True
    ):
        self.cell, self.alive, self.steps, self.earlier = cell, alive, Steps(alive[0], alive), earlier
        self.draws = Draws(Regularisation.of("chunk", regularisation), SEEDS if drawn else None)
        kind, N, M, H = cell_for("Chunk", cell), alive[0], sum(alive), units
        G = kind.num_gates * H

        def normal(*shape):
            return rng.standard_normal(shape).astype(dtype)

        self.Wh, self.gates, self.dh = (H**-0.5 * normal(H, G)).astype(dtype), normal(M, G), normal(M, H)
        self.states = tuple(normal(N + M, H) for _ in range(kind.num_states))
        self.saved = normal(M, H if cell in ("lstm", "gru") else 0)
        self.dstate, self.da = tuple(normal(N, H) for _ in range(kind.num_states)), normal(M, G)
        self.x, self.Wx, self.b = normal(M, width), normal(width, G), normal(G)

    def prepared(self, ops):
        """The cell with its weight, in the arrays of a library."""
        h0 = ops.asarray(self.states[0][: self.alive[0]])
        return CellRun(cell_for("Chunk", self.cell), self.draws, {"Wh": ops.asarray(self.Wh)}, h0)

    def forward_arrays(self, view=np.copy):
        """Copies of what a forward gets: gates, states and saved."""
        return view(self.gates), tuple(map(view, self.states)), view(self.saved)

    def backward_arrays(self, view=np.copy):
        """Copies of what a backward gets besides, for the last steps: dh, dstate and da."""
        m = sum(self.alive[self.earlier :])
        return view(self.dh[:m]), tuple(map(view, self.dstate)), view(self.da[:m])

    def inputs(self, ops, view=np.copy):
        """The factors of the pre-activations of the last steps."""
        x = view(self.x[self.steps[self.earlier :].rows])
        return StepInputs(x, ops.prepacked(ops.asarray(self.Wx)), view(self.b))

    def run(self, ops, *, at_once, narrow=False, view=np.copy):
        """What both write by name, or None if they cannot run at once.

        The backward has the last steps alone, and with ``narrow`` the forward has them too, and computes
        their pre-activations.
        """
        run, (gates, states, saved) = self.prepared(ops), self.forward_arrays(view)
        dh, dstate, da = self.backward_arrays(view)
        later = self.steps[self.earlier :]
        inputs = self.inputs(ops, view) if narrow else None
        steps = later if narrow else self.steps
        if at_once:
            forward = run.chunked.chunk_forward(inputs, gates, states, saved, steps, run.masks)
            if not forward:
                return None
            assert run.chunked.chunk_backward(dh, dstate, gates, states, saved, da, later, run.masks)
        else:
            if inputs is not None:
                ops.affine_into(*inputs, gates[steps.rows])
            for each in steps:
                run.prepared.forward(step_of(run, each, gates, states, saved))
            first = later.rows.start
            for rows, before, after in reversed(later):
                here = slice(rows.start - first, rows.stop - first)
                dnow = tuple(array[: rows.stop - rows.start] for array in dstate)
                dnow[0][...] += dh[here]
                run.backward(step_of(run, (rows, before, after), gates, states, saved), dnow, da[here])
        found = {"gates": gates, "da": da} | dict(zip(("h", "c"), states, strict=False))
        found |= dict(zip(("dh0", "dc0"), dstate, strict=False))
        if saved.size:
            found["saved"] = saved
        return {name: ops.asnumpy(array) for name, array in found.items()}


def step_of(run, slices, gates, states, saved):
    """The arrays of one step."""
    rows, before, after = slices
    prev, now = (tuple(array[part] for array in states) for part in (before, after))
    return run.step(gates[rows], prev, now, saved[rows], rows.start)


def lstm_steps_forward(ops, gates, Wh, h, c, tanh_c, steps, inputs=None):
    """All steps of an LSTM, at once if the primitives can."""
    if ops.steps_forward("lstm", gates, [Wh], (h, c), tanh_c, steps, inputs):
        return
    if inputs is not None:
        ops.affine_into(*inputs, gates[steps.rows])
    for rows, before, after in steps:
        ops.matmul_add(h[before], Wh, gates[rows])
        ops.lstm_forward(gates[rows], c[before], c[after], tanh_c[rows], h[after])


def lstm_steps_backward(ops, dh, dstate, dcell, gates, c, tanh_c, da, to_h, steps):
    """Backward of :func:`lstm_steps_forward`."""
    if ops.steps_backward("lstm", dh, (dstate, dcell), gates, [to_h], (c, c), tanh_c, da, steps):
        return
    first = steps.rows.start
    for rows, before, _ in reversed(steps):
        alive, here = rows.stop - rows.start, slice(rows.start - first, rows.stop - first)
        dstate[:alive] += dh[here]
        ops.lstm_backward(dstate[:alive], dcell[:alive], gates[rows], c[before], tanh_c[rows], da[here])
        ops.matmul_into(da[here], to_h, dstate[:alive])
