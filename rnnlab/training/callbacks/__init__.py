"""Callbacks: code that runs at fixed points of a training.

:mod:`~rnnlab.training.callbacks.callback` has the interface, with an example. Each of the other files has one
callback.
"""

from rnnlab.training.callbacks.callback import Callback, Training
from rnnlab.training.callbacks.gradient_statistics import GradientStatistics
from rnnlab.training.callbacks.json_lines import JSONLines
from rnnlab.training.callbacks.log import Log
from rnnlab.training.callbacks.tensorboard import TensorBoard
from rnnlab.training.callbacks.time_budget import TimeBudget
from rnnlab.training.callbacks.weights_and_biases import WeightsAndBiases

__all__ = [
    "Callback",
    "GradientStatistics",
    "JSONLines",
    "Log",
    "TensorBoard",
    "TimeBudget",
    "Training",
    "WeightsAndBiases",
]
