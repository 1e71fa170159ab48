"""The parameters that train, with factors of their learning rates and their weight decays.

Frozen parameters do not change at all. Their gradients are set to zero before the norm is computed, and the
update rule skips them, since weight decay or momentum would change them even without a gradient.

The learning rate of a parameter is that of the update rule, times the factor of the schedule, times its own
factor.

Weight decay: before each update of the rule, w -= learning_rate decay w, with a decay for each parameter. The
decay is decoupled from the gradient (Loshchilov and Hutter 2019): it does not enter the gradient's norm, its
clipping or its averages. The learning rate is the parameter's own, as in PyTorch's parameter groups. The
paper's lambda is the decay times the base learning rate. For each rule that means:

    adam        AdamW
    sgd         equal to the gradient of the penalty decay / 2 |w|^2, if the gradient is not clipped
    momentum    SGDW: unlike that penalty, the decay does not enter the velocity
    others      as adam: the decay is not divided by the root of the squared gradients

The rule adamw has a decay of its own, the same for all parameters.

All three are chosen by patterns of names, as in :mod:`fnmatch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

from rnnlab.errors import InputError
from rnnlab.ops import ops_for
from rnnlab.options import NotNegative, Positive, accepts, expectation
from rnnlab.parameters import Parameters
from rnnlab.training.patterns import matching, places_of_values, values_by_name
from rnnlab.training.update_rule import UpdateRule
from rnnlab.types import Array

Decays: TypeAlias = float | Mapping[str, float] | None


class ParameterGroups:
    """The parameters that train, in groups of one learning rate and of one decay.

    Parameters
    ----------
    params : Parameters
    trains : sequence of str, optional
        Patterns of the names that train: ``["W_vocab", "*_source*"]``. A pattern after "!" excludes:
        ``["!W_embed"]`` selects all parameters but W_embed, ``["W*", "!W_embed"]`` all that begin with W
        except W_embed. The order does not matter. All parameters train if left out.
    learning_rate_factors : mapping of str to float, optional
        The first pattern that matches a name has its factor; without any it is 1.
    weight_decay : float, or mapping of str to float, optional
        A number is the decay of all parameters with two dimensions or more: not of biases. In a mapping, the
        first pattern that matches a name has its decay; without any it is 0.

    Attributes
    ----------
    trained, frozen : tuple of str
        The parameters that train, and those that do not.
    rates : list of (slice, float)
        The parts of the flat buffer that train, each with its factor of the learning rate.
    decays : list of (slice, float)
        The parts that decay, each with its decay times the factor of its learning rate.

    Raises
    ------
    ValueError
        If a pattern matches no parameter, an earlier pattern of factors or decays matches all of its
        parameters, or none is left to train.
    """

    def __init__(
        self,
        params: Parameters,
        trains: Sequence[str] | None = None,
        learning_rate_factors: Mapping[str, float] | None = None,
        weight_decay: Decays = None,
    ) -> None:
        trained = _selected(params, ["*"] if trains is None else trains)
        self.trained = tuple(name for name in params if name in trained)
        self.frozen = tuple(name for name in params if name not in trained)
        factors = values_by_name("learning_rate_factors", learning_rate_factors or {}, params, 1.0)
        self.rates = places_of_values(params, self.trained, factors)
        if isinstance(weight_decay, Mapping):
            decays = values_by_name("weight_decay", weight_decay, params, 0.0)
        else:
            decays = {name: (weight_decay or 0.0) * (w.ndim > 1) for name, w in params.items()}
        scaled = {name: decay * factors[name] for name, decay in decays.items()}
        places = places_of_values(params, self.trained, scaled)
        self.decays = [(place, decay) for place, decay in places if decay]

    @classmethod
    def of(cls, params: Parameters, options: Any) -> Self:
        """The groups of the options of a solver, or of a recipe's table [training]."""
        return cls(params, options.trains, options.learning_rate_factors, options.weight_decay)

    def clear_frozen(self, grads: Parameters) -> None:
        """Set the gradients of the frozen parameters to zero."""
        for name in self.frozen:
            grads[name][...] = 0

    def decay(self, w: Array, learning_rate: float, scale: Any) -> None:
        """Decay the parameters ``w`` (P,); ``scale`` is that of the update, which follows."""
        for part, decay in self.decays:
            ops_for(w).decay_weights(w[part], rate=learning_rate * decay, scale=scale)


def _selected(params: Parameters, patterns: Sequence[str]) -> set[str]:
    """The parameters that train, by the patterns of ``trains``."""
    if not patterns:
        raise InputError("trains is empty, expected patterns of the names of parameters")
    for pattern in patterns:
        if not matching(params, [pattern.removeprefix("!")]):
            raise InputError(f"trains has {pattern!r}, which matches none of {', '.join(params)}")
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    selected = matching(params, included or ["*"]) - matching(params, excluded)
    if not selected:
        raise InputError(f"trains is {patterns}, which leaves none of {', '.join(params)}")
    return selected


def check_groups(options: Any, rule: UpdateRule) -> None:
    """Check the factors and the decays of options before there is a model.

    Raises
    ------
    ValueError
        If a factor is not a number above 0, a decay is negative or not a number, or the update rule has a
        decay of its own.
    """
    for pattern, factor in (options.learning_rate_factors or {}).items():
        if not accepts(Positive, factor):
            raise InputError(
                f"learning_rate_factors[{pattern!r}] is {factor!r}, expected {expectation(Positive)}; trains "
                "freezes parameters"
            )
    decays = options.weight_decay
    for pattern, decay in decays.items() if isinstance(decays, Mapping) else ():
        if not accepts(NotNegative, decay):
            raise InputError(f"weight_decay[{pattern!r}] is {decay!r}, expected {expectation(NotNegative)}")
    if decays is not None and hasattr(rule, "weight_decay"):
        raise InputError(
            f"weight_decay is given, but the update rule has optim_config.weight_decay {rule.weight_decay:g} "
            "for all parameters, expected one of them; update_rule 'adam' with weight_decay is AdamW"
        )
