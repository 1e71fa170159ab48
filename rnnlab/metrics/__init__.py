"""Scores: of captions against references, and of a model's probabilities."""

from rnnlab.metrics.captions import METRICS, CaptionScores, Metric, score_captions
from rnnlab.metrics.java import JavaError, ptb_tokenizer
from rnnlab.metrics.library import require_scorers, scorers_available
from rnnlab.metrics.perplexity import perplexity

__all__ = [
    "METRICS",
    "CaptionScores",
    "JavaError",
    "Metric",
    "perplexity",
    "ptb_tokenizer",
    "require_scorers",
    "score_captions",
    "scorers_available",
]
