"""Trainings on Flickr8k that several tables have, and how they are evaluated."""

from __future__ import annotations

from benchmarks.trainings import Training

LSTM = Training("flickr8k_lstm", "flickr8k_lstm")
SOFT_ATTENTION = Training("flickr8k_soft_attention", "flickr8k_soft_attention")


def test(beam: int) -> tuple[str, ...]:
    """Options that caption the test images, which have chosen nothing."""
    return ("--split", "test", "--beam", str(beam))


def val(beam: int) -> tuple[str, ...]:
    """Options that caption the validation images, which have chosen the epoch."""
    return ("--split", "val", "--beam", str(beam))
