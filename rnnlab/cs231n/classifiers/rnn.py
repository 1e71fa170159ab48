"""The course's ``classifiers.rnn``."""

from rnnlab.models import CaptioningRNN

__all__ = ["CaptioningRNN"]
