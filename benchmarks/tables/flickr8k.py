"""Trainings on Flickr8k that several tables share, and options of their evaluation."""

from __future__ import annotations

from benchmarks.trainings import Training

LSTM = Training("flickr8k_lstm", "flickr8k_lstm")
# Other trainings start from this one, so that all rows of a table come from the same runs.
LSTM_BFLOAT16 = Training("flickr8k_lstm_bfloat16", "flickr8k_lstm", ("training.matmul=bfloat16",))
SOFT_ATTENTION = Training("flickr8k_soft_attention", "flickr8k_soft_attention")


def test(beam: int) -> tuple[str, ...]:
    """Options to evaluate on the test images, which were not used to select a model."""
    return ("--split", "test", "--beam", str(beam))


def val(beam: int) -> tuple[str, ...]:
    """Options to evaluate on the validation images, which selected the epoch."""
    return ("--split", "val", "--beam", str(beam))
