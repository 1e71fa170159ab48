"""Scores of captions, translations and classes, saved keystrokes, perplexity, distances of states."""

from rnnlab.metrics.bleu import bleu_counts, bleu_of
from rnnlab.metrics.bootstrap import Difference, Statistics, mean_of, paired_bootstrap
from rnnlab.metrics.captions import METRICS, CaptionScores, Metric, score_captions
from rnnlab.metrics.cider_d import CiderD
from rnnlab.metrics.classification import accuracy, confusion_matrix
from rnnlab.metrics.discrepancy import mean_centroid_distance, pointwise_distance
from rnnlab.metrics.java import JavaError, check_java, ptb_tokenizer
from rnnlab.metrics.keystrokes import KeystrokeScores, PrefixIndex, keystrokes
from rnnlab.metrics.perplexity import perplexity
from rnnlab.metrics.scorers import CAPTION_SCORERS, TRANSLATION_SCORERS
from rnnlab.metrics.translation import (
    TRANSLATION_METRICS,
    LengthScore,
    TranslationMetric,
    TranslationScores,
    corpus_bleu,
)

__all__ = [
    "CAPTION_SCORERS",
    "METRICS",
    "TRANSLATION_METRICS",
    "TRANSLATION_SCORERS",
    "CaptionScores",
    "CiderD",
    "Difference",
    "JavaError",
    "KeystrokeScores",
    "LengthScore",
    "Metric",
    "PrefixIndex",
    "Statistics",
    "TranslationMetric",
    "TranslationScores",
    "accuracy",
    "bleu_counts",
    "bleu_of",
    "check_java",
    "confusion_matrix",
    "corpus_bleu",
    "keystrokes",
    "mean_centroid_distance",
    "mean_of",
    "paired_bootstrap",
    "perplexity",
    "pointwise_distance",
    "ptb_tokenizer",
    "score_captions",
]
