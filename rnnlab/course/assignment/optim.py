"""Update rules."""

from rnnlab.cs231n.optim import adam, rmsprop, sgd, sgd_momentum

__all__ = ["adam", "rmsprop", "sgd", "sgd_momentum"]
