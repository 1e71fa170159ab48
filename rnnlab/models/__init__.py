"""Models: encoders, decoders and outputs composed into one loss and one step function."""

from rnnlab.models.captioning import CaptioningRNN

__all__ = ["CaptioningRNN"]
