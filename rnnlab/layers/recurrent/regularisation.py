"""Regularisation of a recurrence: zoneout, recurrent dropout, and DropConnect on the recurrent weight.

    zoneout            h_t = d * h_{t-1} + (1 - d) * h~_t,  d = 1 with probability p     Krueger et al. 2017
                       likewise c_t, with draws of its own; h~_t is made of c~_t
    recurrent dropout  on the state: the products read m * h_{t-1},
                       one m for all steps of a sequence                                Gal, Ghahramani 2016
                       on the candidate: m_t * g_t is added to the state,
                       another m_t at each step                                         Semeniuta et al. 2016
    DropConnect        the products read with m * Wh, one m for the batch               Wan et al. 2013

h~ and c~ are the cell's new state; m is 0 with probability p, else 1 / (1 - p). In inference nothing is
dropped, and zoneout takes its expectation, h_t = p h_{t-1} + (1 - p) h~_t. All of them can be combined.

Backward, with dh_t the total gradient with respect to h_t: dh~_t = (1 - d) dh_t, and d dh_t is added to
dh_{t-1}; a mask multiplies the gradient of what it multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.recurrent.cell import Cell, cell_name
from rnnlab.ops import Primitives, StepMasks, ops_for
from rnnlab.options import Probability, check_option
from rnnlab.types import Array, Random

RecurrentDropoutOn: TypeAlias = Literal["state", "candidate"]

RECURRENT_DROPOUT_ON = get_args(RecurrentDropoutOn)


class Regularisation(NamedTuple):
    """The regularisation of a recurrence; every number is a probability in [0, 1).

    Attributes
    ----------
    zoneout_h : float
        Probability that a unit of the hidden state keeps its value.
    zoneout_c : float
        Probability that a unit of an LSTM's cell state keeps its value.
    recurrent_dropout : float
        Probability of dropping a unit from what ``recurrent_dropout_on`` names.
    recurrent_dropout_on : "state" or "candidate"
        What is dropped: units of the state that the recurrent weights read, or of the candidate that a step
        adds. "candidate" needs ``recurrent_dropout``.
    weight_dropout : float
        Probability of dropping a weight of Wh.
    """

    zoneout_h: Probability = 0.0
    zoneout_c: Probability = 0.0
    recurrent_dropout: Probability = 0.0
    recurrent_dropout_on: RecurrentDropoutOn = "state"
    weight_dropout: Probability = 0.0

    @classmethod
    def of(cls, function: str, options: Mapping[str, Any] | Self | None) -> Self:
        """From options by name; None for no regularisation. Errors begin with ``function``.

        Raises
        ------
        TypeError, ValueError
            If ``options`` is something else, or has an unknown name.
        """
        if isinstance(options, cls):
            return options
        if not isinstance(options, Mapping | None):
            raise InputTypeError(
                f"{function}: regularisation is {options!r}, expected a mapping or a Regularisation"
            )
        options = dict(options or {})
        if unknown := [name for name in options if name not in cls._fields]:
            raise InputError(
                f"{function}: regularisation has {', '.join(unknown)}, expected {', '.join(cls._fields)}"
            )
        return cls(**options)

    def check(self, function: str, cell: Cell) -> None:
        """Raise ValueError if a number is out of range, or an option has no effect with this cell."""
        for name in ("zoneout_h", "zoneout_c", "recurrent_dropout", "weight_dropout"):
            check_option(function, name, Probability, getattr(self, name))
        if self.recurrent_dropout_on not in RECURRENT_DROPOUT_ON:
            raise InputError(
                f"{function}: recurrent_dropout_on is {self.recurrent_dropout_on!r}, "
                f"expected one of {', '.join(RECURRENT_DROPOUT_ON)}"
            )
        name = cell_name(cell)
        if self.zoneout_c and cell.num_states == 1:
            raise InputError(
                f"{function}: zoneout_c is {self.zoneout_c}, but cell {name!r} has no cell state"
            )
        if self.weight_dropout and "Wh" not in cell.recurrent_shapes(1):
            raise InputError(
                f"{function}: weight_dropout is {self.weight_dropout}, but cell {name!r} has no Wh"
            )
        if not self.recurrent_dropout:
            if self.recurrent_dropout_on != "state":
                raise InputError(
                    f"{function}: recurrent_dropout_on is {self.recurrent_dropout_on!r}, which needs a "
                    "recurrent_dropout above 0"
                )
            return
        if self.recurrent_dropout_on == "candidate" and not cell.drops_candidate:
            raise InputError(
                f"{function}: recurrent_dropout_on is 'candidate', but cell {name!r} has no candidate"
            )
        if self.recurrent_dropout_on == "state" and cell.carries_h and not cell.is_prepared:
            raise InputError(
                f"{function}: recurrent_dropout_on is 'state', but the step functions of {name!r} "
                "cannot tell what the recurrent weights read from the state that they carry: "
                "use zoneout_h or weight_dropout"
            )

    @property
    def rates(self) -> tuple[float, ...]:
        """All probabilities."""
        return self.zoneout_h, self.zoneout_c, self.recurrent_dropout, self.weight_dropout

    @property
    def zoneout(self) -> tuple[float, float]:
        """The probabilities of the arrays of a state."""
        return self.zoneout_h, self.zoneout_c


UNREGULARISED = Regularisation()


class Draws(NamedTuple):
    """The random numbers of one batch: the seeds from which all masks are computed.

    A backward computes the masks of its forward again from the seeds, so that a cache holds no masks.

    Attributes
    ----------
    regularisation : Regularisation
    seeds : sequence of 4 integers, or None
        Those of zoneout of h and c, of recurrent dropout, and of DropConnect. None in inference.
    """

    regularisation: Regularisation
    seeds: Any

    @classmethod
    def of(cls, regularisation: Regularisation, rng: Random, ops: Primitives) -> Draws:
        """Draw all seeds if any rate is above 0, so that the masks of one option do not depend on others."""
        if rng is None or not any(regularisation.rates):
            return cls(regularisation, None)
        return cls(regularisation, ops.mask_seeds(rng, 4))

    def state_mask(self, h0: Array) -> Array | None:
        """The mask (N, H) of recurrent dropout on the state, the longest sequence first, if there is one."""
        p, on = self.regularisation.recurrent_dropout, self.regularisation.recurrent_dropout_on
        if self.seeds is None or not p or on != "state":
            return None
        ops = ops_for(h0)
        mask = ops.empty(h0.shape, h0.dtype)
        ops.dropout_mask(p, self.seeds[2], 0, mask)
        return mask

    def step_masks(self) -> StepMasks | None:
        """The masks of all steps together; None if steps have no masks."""
        drawn = self.seeds is not None and self.regularisation.recurrent_dropout_on == "candidate"
        dropout = self.regularisation.recurrent_dropout if drawn else 0.0
        if not any((*self.regularisation.zoneout, dropout)):
            return None
        seeds = None if self.seeds is None else self.seeds[:3]
        return StepMasks(self.regularisation.zoneout, dropout, seeds)

    def dropped(self, params: Mapping[str, Array]) -> Mapping[str, Array]:
        """The recurrent parameters as the steps read them: Wh after DropConnect."""
        if not self._drops_weights:
            return params
        return {**params, "Wh": self._drop(params["Wh"])}

    def gradient_workspace(self, grads: Mapping[str, Array]) -> Mapping[str, Array]:
        """The arrays that the steps add their gradients to before :meth:`finish`."""
        if not self._drops_weights:
            return grads
        dWh = grads["Wh"]
        return {**grads, "Wh": ops_for(dWh).zeros(dWh.shape, dWh.dtype)}

    def finish(self, workspace: Mapping[str, Array], grads: Mapping[str, Array]) -> None:
        """Add the sum over all steps to the gradient of Wh, after DropConnect's mask."""
        if self._drops_weights:
            grads["Wh"][...] += self._drop(workspace["Wh"])

    @property
    def _drops_weights(self) -> bool:
        return self.seeds is not None and self.regularisation.weight_dropout > 0

    def _drop(self, weight: Array) -> Array:
        ops = ops_for(weight)
        out = ops.empty(weight.shape, weight.dtype)
        ops.dropout(weight, self.regularisation.weight_dropout, self.seeds[3], out)
        return out
