"""Learning rates of single parameters: factors of the learning rate, by patterns of names.

The learning rate of a parameter is that of the update rule times the factor of the schedule times its own.
Weight decay is scaled with it, as in PyTorch's parameter groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.errors import InputError
from rnnlab.options import Positive, accepts, expectation
from rnnlab.parameters import Parameters
from rnnlab.training.frozen_parameters import Trained
from rnnlab.training.patterns import places_of_values, values_by_name


class LearningRates:
    """The factors of the learning rate of the parameters that train.

    Parameters
    ----------
    params : Parameters
    trained : Trained
    factors : mapping of str to float, optional
        Patterns of names, as in :mod:`fnmatch`; the first one that matches a name has its factor, and without
        any it is 1.

    Attributes
    ----------
    factors : dict of str to float
        The factor of each parameter.
    parts : list of (slice, float)
        The parts of the flat buffer that train, each with its factor.

    Raises
    ------
    ValueError
        If a pattern matches no parameter.
    """

    def __init__(
        self, params: Parameters, trained: Trained, factors: Mapping[str, float] | None = None
    ) -> None:
        self.factors = values_by_name("learning_rate_factors", factors or {}, params, 1.0)
        self.parts = places_of_values(params, trained.names, self.factors)


def check_learning_rate_factors(factors: Mapping[str, Any] | None) -> None:
    """Check factors before there is a model.

    Raises
    ------
    ValueError
        If a factor is not a number above 0.
    """
    for pattern, factor in (factors or {}).items():
        if not accepts(Positive, factor):
            raise InputError(
                f"learning_rate_factors[{pattern!r}] is {factor!r}, expected {expectation(Positive)}; trains "
                "freezes parameters"
            )
