"""Noise in a recurrence: zoneout, recurrent dropout, and DropConnect on the recurrent weight.

    zoneout            h_t = d * h_{t-1} + (1 - d) * h~_t,  d = 1 with probability p     Krueger et al. 2017
                       likewise c_t, with draws of its own; h~_t is made of c~_t
    recurrent dropout  on the state: the products read m * h_{t-1},
                       one m for all steps of a sequence                                Gal, Ghahramani 2016
                       on the candidate: m_t * g_t is added to the state,
                       another m_t at each step                                         Semeniuta et al. 2016
    DropConnect        the products read with m * Wh, one m for the batch               Wan et al. 2013

h~ and c~ are what the cell makes; m is 0 with probability p, else 1 / (1 - p). In inference nothing is
dropped, and zoneout is its expectation, h_t = p h_{t-1} + (1 - p) h~_t. All of them go together.

Backward, with dh_t the whole gradient that reaches h_t: dh~_t = (1 - d) dh_t, and d dh_t reaches h_{t-1}
beside what comes through the cell; a mask multiplies the gradient of what it multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from rnnlab.layers.checks import check_probability
from rnnlab.layers.recurrent.cell import CellSteps, State, cell_steps
from rnnlab.layers.recurrent.packing import Chunk
from rnnlab.ops import StepMasks, ops_for
from rnnlab.options import Probability
from rnnlab.types import Array

Random = np.random.Generator | None

RecurrentDropoutOn: TypeAlias = Literal["state", "candidate"]

RECURRENT_DROPOUT_ON = get_args(RecurrentDropoutOn)


class Regularisation(NamedTuple):
    """Which noise a recurrence has; every number is a probability in [0, 1).

    Attributes
    ----------
    zoneout_h, zoneout_c : float
        That a unit of the hidden state, of an LSTM's cell state, stays as it was.
    recurrent_dropout : float
        That a unit is dropped,
    recurrent_dropout_on : "state" or "candidate"
        of what the recurrent products read, or of what is added to the state.
    weight_dropout : float
        That a recurrent weight is dropped.
    """

    zoneout_h: Probability = 0.0
    zoneout_c: Probability = 0.0
    recurrent_dropout: Probability = 0.0
    recurrent_dropout_on: RecurrentDropoutOn = "state"
    weight_dropout: Probability = 0.0

    @classmethod
    def of(cls, options: Mapping[str, Any] | Self | None) -> Self:
        """From options by name, none for no noise; or what it is already.

        Raises
        ------
        TypeError, ValueError
            If it is something else, or an option is unknown.
        """
        if isinstance(options, cls):
            return options
        if not isinstance(options, Mapping | None):
            raise TypeError(f"regularisation is {options!r}, expected a mapping or a Regularisation")
        options = dict(options or {})
        if unknown := [name for name in options if name not in cls._fields]:
            raise ValueError(f"regularisation has {', '.join(unknown)}, expected {', '.join(cls._fields)}")
        return cls(**options)

    def check(self, function: str, cell: str) -> None:
        """Raise ValueError if a number is out of range, or a cell lacks what is to be regularised."""
        for name in ("zoneout_h", "zoneout_c", "recurrent_dropout", "weight_dropout"):
            check_probability(function, name, getattr(self, name))
        if self.recurrent_dropout_on not in RECURRENT_DROPOUT_ON:
            raise ValueError(
                f"{function}: recurrent_dropout_on is {self.recurrent_dropout_on!r}, "
                f"expected one of {', '.join(RECURRENT_DROPOUT_ON)}"
            )
        if self.zoneout_c and cell_steps(function, cell).states == 1:
            raise ValueError(
                f"{function}: zoneout_c is {self.zoneout_c}, but cell {cell!r} has no cell state"
            )
        if self.recurrent_dropout and self.recurrent_dropout_on == "candidate" and cell == "rnn":
            raise ValueError(
                f"{function}: recurrent_dropout_on is 'candidate', but cell 'rnn' adds none to its state"
            )

    @property
    def rates(self) -> tuple[float, ...]:
        """All probabilities: without any, there is no noise."""
        return self.zoneout_h, self.zoneout_c, self.recurrent_dropout, self.weight_dropout

    @property
    def zoneout(self) -> tuple[float, float]:
        """The rates of the arrays of a state."""
        return self.zoneout_h, self.zoneout_c


class RegularisedSteps:
    """A cell's steps over a batch, with their noise: what is drawn depends on the generator alone.

    The methods are those of :class:`~rnnlab.layers.recurrent.cell.CellSteps`. Besides, they take ``rows``, the
    slice of packed arrays that a step or a chunk of steps is.

    Parameters
    ----------
    cell : str
    regularisation : Regularisation
    rng : numpy Generator or None
        None is inference.
    h0 : (N, H)
        The initial hidden state.
    """

    def __init__(self, cell: str, regularisation: Regularisation, rng: Random, h0: Array) -> None:
        self._steps: CellSteps = cell_steps("RegularisedSteps", cell)
        self._options = regularisation
        self.gates, self.states = self._steps.gates, self._steps.states
        ops, noisy = ops_for(h0), rng is not None and any(regularisation.rates)
        # As many numbers whatever is on, so that one option's draws do not depend on another's.
        keys: Any = ops.mask_seeds(rng, 4) if noisy and rng is not None else None
        p, on = regularisation.recurrent_dropout, regularisation.recurrent_dropout_on
        self._drops_state = noisy and p > 0 and on == "state"
        self._drops_weights = noisy and regularisation.weight_dropout > 0
        # Of a step: what the cell's primitives draw, or of which in inference they have the expectation.
        dropout = p if noisy and on == "candidate" else 0.0
        self._noise = regularisation.zoneout, dropout, keys and keys[:3]
        self._has_noise = any((*regularisation.zoneout, dropout))
        self._weight_key = keys and keys[3]
        if self._drops_state:
            # (N, H): the mask, for the longest sequence first; what the products read; its gradient
            self._mask, self._read, self._dread = (ops.empty(h0.shape, h0.dtype) for _ in range(3))
            ops.dropout_mask(p, keys[2], 0, self._mask)

    def lay_out(self, ops: Any, Wh: Array) -> Any:
        """Wh as :meth:`forward` takes it."""
        return self._steps.lay_out(ops, self._dropped(ops, Wh))

    def lay_out_transposed(self, ops: Any, Wh: Array) -> Any:
        """Wh as :meth:`backward` takes it."""
        return self._steps.lay_out_transposed(ops, self._dropped(ops, Wh))

    def forward(
        self, ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array, rows: slice
    ) -> None:
        """One step of some rows."""
        self._steps.forward(ops, Wh, gates, prev, after, kept, **self._noise_of(prev[0], rows))

    def backward(
        self,
        ops: Any,
        to_h: Any,
        dstate: State,
        gates: Array,
        prev: State,
        after: State,
        kept: Array,
        da: Array,
        rows: slice,
    ) -> None:
        """Backward of a step: ``dstate`` comes in as of ``after`` and leaves as of ``prev``."""
        dh, noise = dstate[0], self._noise_of(prev[0], rows)
        dread, apart = dh, self._drops_state and (self._steps.carries_h or self._has_noise)
        if apart:
            dread = noise["dread"] = self._dread[: len(da)]
            dread[...] = 0
        past = self._steps.backward(ops, to_h, dstate, gates, prev, after, kept, da, **noise)
        if self._drops_state:
            dread *= self._mask[: len(da)]
        if apart:
            dh += dread
        if past is not None:
            dh += past

    def add_gradient(self, ops: Any, prev_h: Array, kept: Array, da: Array, dWh: Array, chunk: Chunk) -> None:
        """Add the gradient of Wh of a chunk of steps."""
        if self._drops_state:
            prev_h = prev_h.copy()
            for rows, _, _ in chunk.steps:
                prev_h[chunk.here(rows)] *= self._mask[: rows.stop - rows.start]
        self._steps.add_gradient(ops, prev_h, kept, da, dWh)

    def gradient_room(self, ops: Any, dWh: Array) -> Array:
        """Where :meth:`add_gradient` is to add, until :meth:`finish`."""
        return ops.zeros(dWh.shape, dWh.dtype) if self._drops_weights else dWh

    def finish(self, ops: Any, room: Array, dWh: Array) -> None:
        """Add what was added up to dWh."""
        if self._drops_weights:
            ops.dropout(room, self._options.weight_dropout, self._weight_key, room)
            dWh += room

    def _noise_of(self, prev_h: Array, rows: slice) -> dict[str, Any]:
        """What a step reads instead of prev_h, and what its primitives draw, if anything."""
        noise: dict[str, Any] = {}
        if self._drops_state:
            noise["read"] = self._read[: len(prev_h)]
            np.multiply(prev_h, self._mask[: len(prev_h)], out=noise["read"])
        if self._has_noise:
            noise["noise"] = StepMasks(*self._noise, rows.start * prev_h.shape[1])
        return noise

    def _dropped(self, ops: Any, Wh: Array) -> Array:
        if not self._drops_weights:
            return Wh
        out = ops.empty(Wh.shape, Wh.dtype)
        ops.dropout(Wh, self._options.weight_dropout, self._weight_key, out)
        return out


def expected_state(regularisation: Regularisation, before: State, after: State) -> State:
    """What inference makes of a step from one state to another: zoneout's expectation."""
    pairs = zip(regularisation.zoneout, before, after, strict=False)
    return tuple(now + p * (was - now) if p else now for p, was, now in pairs)
