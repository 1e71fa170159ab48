"""Scores: of captions and translations against references, and of a model's probabilities."""

from rnnlab.metrics.captions import METRICS, CaptionScores, Metric, score_captions
from rnnlab.metrics.java import JavaError, ptb_tokenizer
from rnnlab.metrics.library import bleu_available, require_bleu, require_scorers, scorers_available
from rnnlab.metrics.perplexity import perplexity
from rnnlab.metrics.translation import TranslationScores, corpus_bleu

__all__ = [
    "METRICS",
    "CaptionScores",
    "JavaError",
    "Metric",
    "TranslationScores",
    "bleu_available",
    "corpus_bleu",
    "perplexity",
    "ptb_tokenizer",
    "require_bleu",
    "require_scorers",
    "score_captions",
    "scorers_available",
]
