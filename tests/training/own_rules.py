"""An update rule and a schedule as somebody outside the package writes them: in plain NumPy."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rnnlab.options import Count, NotNegative, Positive, Probability
from rnnlab.training import Schedule, UpdateRule


@dataclass(kw_only=True)
class Lion(UpdateRule):
    """Lion (Chen et al. 2023): w -= learning_rate (sign(beta1 m + (1 - beta1) g) + weight_decay w)."""

    slots: ClassVar[tuple[str, ...]] = ("m",)
    learning_rate: Positive = 1e-3
    beta1: Probability = 0.9
    beta2: Probability = 0.99
    weight_decay: NotNegative = 0.0

    def update(self, w, dw, m, *, learning_rate, scale):
        g = scale * dw
        w -= learning_rate * (np.sign(self.beta1 * m + (1 - self.beta1) * g) + self.weight_decay * w)
        m *= self.beta2
        m += (1 - self.beta2) * g


@dataclass(kw_only=True)
class Halving(UpdateRule):
    """Plain gradient descent at a learning rate of 0.5, which is no option."""

    slots: ClassVar[tuple[str, ...]] = ()
    learning_rate: ClassVar[float] = 0.5

    def update(self, w, dw, *, learning_rate, scale):
        w -= learning_rate * scale * dw


@dataclass(kw_only=True)
class Cosine(Schedule):
    """Half a cosine from 1 to ``least`` within ``over`` epochs, restarted when the metric improves."""

    over: Count
    least: Probability = 0.0
    restarts = 0

    def multiplier(self, iteration, epoch):
        done = min(1.0, (epoch + self.restarts) / self.over)
        return self.least + (1 - self.least) * 0.5 * (1 + math.cos(math.pi * done))

    def end_epoch(self, improved):
        self.restarts += improved

    def state(self):
        return {"restarts": self.restarts}

    def load_state(self, state):
        self.restarts = state["restarts"]
