"""Weight decay: before each update of the rule, w -= learning_rate decay w, with a decay for each parameter.

The decay is decoupled from the gradient (Loshchilov and Hutter 2019): it does not enter the gradient's norm,
its clipping or its averages. The learning rate is the scheduled one, as in PyTorch; the paper's lambda is the
decay times the base learning rate. For each rule that means:

    adam        AdamW
    sgd         equal to the gradient of the penalty decay / 2 |w|^2, if the gradient is not clipped
    momentum    SGDW: unlike that penalty, the decay does not enter the velocity
    others      as adam: the decay is not divided by the root of the squared gradients

The rule adamw has a decay of its own, the same for all parameters. A factor of a parameter's learning rate
(:mod:`rnnlab.training.learning_rates`) scales its decay as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from rnnlab.errors import InputError
from rnnlab.ops import ops_for
from rnnlab.options import NotNegative, accepts, expectation
from rnnlab.parameters import Parameters
from rnnlab.training.frozen_parameters import Trained
from rnnlab.training.patterns import places_of_values, values_by_name
from rnnlab.training.update_rule import UpdateRule
from rnnlab.types import Array

Decays: TypeAlias = float | Mapping[str, float] | None


class WeightDecay:
    """The decays of the parameters that train.

    Parameters
    ----------
    params : Parameters
    trained : Trained
        Frozen parameters do not decay.
    weight_decay : float, or mapping of str to float, optional
        A number is the decay of all parameters with two dimensions or more: not of biases. A mapping has
        patterns of names, as in :mod:`fnmatch`; the first one that matches a name has its decay, and without
        any it is 0.
    factors : mapping of str to float
        The factors of the learning rates of parameters; 1 for those left out.

    Attributes
    ----------
    parts : list of (slice, float)
        The parts of the flat buffer that decay, and how much, times the factor of the learning rate.

    Raises
    ------
    ValueError
        If a pattern matches no parameter.
    """

    def __init__(
        self,
        params: Parameters,
        trained: Trained,
        weight_decay: Decays = None,
        factors: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        if isinstance(weight_decay, Mapping):
            decays = values_by_name("weight_decay", weight_decay, params, 0.0)
        else:
            decays = {name: (weight_decay or 0.0) * (w.ndim > 1) for name, w in params.items()}
        scaled = {name: decay * factors.get(name, 1.0) for name, decay in decays.items()}
        places = places_of_values(params, trained.names, scaled)
        self.parts = [(place, decay) for place, decay in places if decay]

    def apply(self, w: Array, learning_rate: float, scale: Any) -> None:
        """Decay the parameters ``w`` (P,); ``scale`` is that of the update, which follows."""
        for part, decay in self.parts:
            ops_for(w).decay_weights(w[part], rate=learning_rate * decay, scale=scale)


def check_weight_decay(weight_decay: Decays, rule: UpdateRule) -> None:
    """Check decays before there is a model.

    Raises
    ------
    ValueError
        If a decay is negative or not a number, or the update rule has a decay of its own.
    """
    if weight_decay is None:
        return
    for pattern, decay in weight_decay.items() if isinstance(weight_decay, Mapping) else ():
        if not accepts(NotNegative, decay):
            raise InputError(f"weight_decay[{pattern!r}] is {decay!r}, expected {expectation(NotNegative)}")
    if hasattr(rule, "weight_decay"):
        raise InputError(
            f"weight_decay is given, but the update rule has optim_config.weight_decay {rule.weight_decay:g} "
            "for all parameters, expected one of them; update_rule 'adam' with weight_decay is AdamW"
        )
