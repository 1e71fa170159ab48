"""The parameters that train, with their learning rates and decays, as the options of a solver select them."""

from __future__ import annotations

from typing import Any

from rnnlab.parameters import Parameters
from rnnlab.training.frozen_parameters import Trained
from rnnlab.training.learning_rates import LearningRates
from rnnlab.training.weight_decay import WeightDecay


class TrainedParameters:
    """The parts of a model's parameters that an update changes.

    Parameters
    ----------
    params : Parameters
    options : Options or TrainingTable
        Has ``trains``, ``learning_rate_factors`` and ``weight_decay``.

    Attributes
    ----------
    trained : Trained
    rates : LearningRates
    decay : WeightDecay

    Raises
    ------
    ValueError
        If an option has a pattern that matches no parameter.
    """

    def __init__(self, params: Parameters, options: Any) -> None:
        self.trained = Trained(params, options.trains)
        self.rates = LearningRates(params, self.trained, options.learning_rate_factors)
        self.decay = WeightDecay(params, self.trained, options.weight_decay, self.rates.factors)
