"""Search over a model's step function: greedy, sampling and beam search."""

from rnnlab.decoding.beam import beam_search
from rnnlab.decoding.rollout import greedy, sample
from rnnlab.decoding.search import Hypothesis, StepModel

__all__ = ["Hypothesis", "StepModel", "beam_search", "greedy", "sample"]
