"""BLEU, ROUGE-L, CIDEr and METEOR of captions, computed by pycocoevalcap.

    BLEU-n    geometric mean of the clipped precisions of 1- to n-grams, summed over the corpus, times
              exp(1 - r / c) where the candidates are shorter (c words) than the closest references (r words)
    ROUGE-L   from the longest common subsequence with each reference: the best precision P and the best
              recall R are taken independently, score = (1 + b^2) P R / (R + b^2 P), b = 1.2
    CIDEr     the variant CIDEr-D, which COCO's evaluation calls CIDEr: 10 x cosine similarity of tf-idf
              vectors of 1- to 4-grams with clipped counts, times a Gaussian penalty on the difference in
              length, mean over references. The document frequencies come from the references that are
              evaluated, so a single image scores 0
    METEOR    unigrams aligned by word, stem, synonym and paraphrase, F-mean with a penalty on fragments;
              needs Java

Scores are on the scale of the library: BLEU, ROUGE-L and METEOR from 0 to 1, CIDEr from 0 to 10. Papers print
all of them times 100.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from rnnlab.errors import InputError, InputTypeError
from rnnlab.metrics.bleu import bleu_counts, bleu_of, brevity
from rnnlab.metrics.bootstrap import Statistics, mean_of
from rnnlab.metrics.java import JavaError, meteor
from rnnlab.metrics.scorers import CAPTION_SCORERS

Metric = Literal["BLEU", "ROUGE-L", "CIDEr", "METEOR"]

# The scores of each metric.
METRICS: dict[Metric, tuple[str, ...]] = {
    "BLEU": ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"),
    "ROUGE-L": ("ROUGE-L",),
    "CIDEr": ("CIDEr",),
    "METEOR": ("METEOR",),
}

Sentences = dict[int, list[str]]  # image -> sentences, their words separated by one space


@dataclass(frozen=True)
class CaptionScores:
    """The result of :func:`score_captions`.

    Attributes
    ----------
    corpus : dict of str to float
        The score of all captions, by name: BLEU-1 to BLEU-4, ROUGE-L, CIDEr, METEOR.
    images : dict of str to list of float
        By the same names, the score of each image in the order of the candidates.
    notes : list of str
        Remarks for the reader, such as a metric that could not be computed, and why.
    bleu_counts : (images, 10) list of list of int, or None
        Those of :func:`~rnnlab.metrics.bleu.bleu_counts`; None without BLEU.
    """

    corpus: dict[str, float]
    images: dict[str, list[float]]
    notes: list[str]
    bleu_counts: list[list[int]] | None = None

    @property
    def brevity(self) -> float | None:
        """BLEU's penalty on captions that are shorter than their references, from 0 to 1; None without BLEU.

        BLEU without the penalty, as Xia et al. (2017) report it for captions, is BLEU divided by it.
        """
        if self.bleu_counts is None:
            return None
        *_, length, closest = map(sum, zip(*self.bleu_counts, strict=True))
        return float(brevity(length, closest)) if length else 0.0

    def statistics(self) -> dict[str, Statistics]:
        """The statistics of each score for :func:`~rnnlab.metrics.paired_bootstrap`.

        METEOR is left out, because it is not a function of a mean over images.
        """
        found = {}
        if self.bleu_counts is not None:
            for order, name in enumerate(METRICS["BLEU"], start=1):
                found[name] = bleu_of(self.bleu_counts, order, coco=True)
        for name in ("ROUGE-L", "CIDEr"):
            if name in self.images:
                found[name] = mean_of(self.images[name])
        return found

    def __str__(self) -> str:
        rows = [f"{name:<8} {score:6.3f}" for name, score in self.corpus.items()]
        return "\n".join(rows + [f"note: {note}" for note in self.notes])


Scored = dict[str, tuple[float, Sequence[float]]]  # name -> corpus score, score of each image


def _bleu(references: Sentences, captions: Sentences) -> Scored:
    corpus, images = (
        CAPTION_SCORERS.module("bleu.bleu").Bleu(4).compute_score(references, captions, verbose=0)
    )
    return dict(zip(METRICS["BLEU"], zip(corpus, images, strict=True), strict=True))


def _rouge_l(references: Sentences, captions: Sentences) -> Scored:
    return {"ROUGE-L": CAPTION_SCORERS.module("rouge.rouge").Rouge().compute_score(references, captions)}


def _cider(references: Sentences, captions: Sentences) -> Scored:
    return {"CIDEr": CAPTION_SCORERS.module("cider.cider").Cider().compute_score(references, captions)}


def _meteor(references: Sentences, captions: Sentences) -> Scored:
    return {"METEOR": meteor(references, captions)}


_SCORERS: dict[Metric, Callable[[Sentences, Sentences], Scored]] = {
    "BLEU": _bleu,
    "ROUGE-L": _rouge_l,
    "CIDEr": _cider,
    "METEOR": _meteor,
}


def score_captions(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Callable[[str], Sequence[str]],
    metrics: Collection[Metric] = tuple(METRICS),
) -> CaptionScores:
    """Score one caption for each image against the image's references.

    Parameters
    ----------
    candidates : sequence of str
        One caption per image. An empty caption scores 0.
    references : sequence of sequence of str
        At least one sentence per image. Sentences without words are ignored.
    tokenize : callable
        Splits candidates and references into words. Only scores by the same tokenizer are comparable:
        :func:`rnnlab.data.vocabulary.tokenize` (lower case, without punctuation), ``str.split`` for sentences
        that are tokenised already, or the result of :func:`~rnnlab.metrics.ptb_tokenizer` for all of them.
    metrics : collection of str
        Some of the keys of ``METRICS``: BLEU, ROUGE-L, CIDEr, METEOR.

    Returns
    -------
    CaptionScores
        Where Java is missing or fails, METEOR is replaced by a note.

    Raises
    ------
    ImportError
        If the extra ``eval`` is not installed.
    ValueError
        If there are no candidates, the lengths differ, an image has no reference, or a metric is unknown.
    TypeError
        If the references of an image, or the metrics, are a string.
    """
    if isinstance(metrics, str):
        raise InputTypeError(f"score_captions: metrics is {metrics!r}, expected a list of names")
    unknown = [metric for metric in metrics if metric not in _SCORERS]
    if unknown:
        raise InputError(f"score_captions: metrics has {unknown[0]!r}, expected some of {', '.join(METRICS)}")
    expected, captions = _prepare(candidates, references, tokenize)
    scored: Scored = {}
    notes = []
    for metric in metrics:
        try:
            scored |= _SCORERS[metric](expected, captions)
        except JavaError as error:
            notes.append(f"{metric} is left out: {error}")
    if "CIDEr" in scored and len(candidates) == 1:
        notes.append("CIDEr of a single image is always 0: it weights words by how few images have them")
    return CaptionScores(
        corpus={name: float(corpus) for name, (corpus, _) in scored.items()},
        images={name: [float(score) for score in images] for name, (_, images) in scored.items()},
        notes=notes,
        bleu_counts=_bleu_counts(expected, captions) if "BLEU" in metrics else None,
    )


def _bleu_counts(references: Sentences, captions: Sentences) -> list[list[int]]:
    return [
        bleu_counts(caption.split(), [reference.split() for reference in references[image]])
        for image, (caption,) in captions.items()
    ]


def _prepare(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: Callable[[str], Sequence[str]],
) -> tuple[Sentences, Sentences]:
    """The references and the captions, tokenised, in the form of pycocoevalcap."""
    if not candidates:
        raise InputError("score_captions: candidates is empty, expected one caption for each image")
    if not all(isinstance(each, str) for each in candidates) or isinstance(candidates, str):
        raise InputTypeError(
            "score_captions: candidates hold something else than sentences, expected a list of strings"
        )
    if len(candidates) != len(references):
        raise InputError(
            f"score_captions: references are of {len(references)} images, "
            f"expected as many as candidates, {len(candidates)}"
        )
    for image, some in enumerate(references):
        if isinstance(some, str):
            raise InputTypeError(
                f"score_captions: references[{image}] is {some!r}, expected a list of sentences"
            )
    expected = {
        image: [words for sentence in sentences if (words := " ".join(tokenize(sentence)))]
        for image, sentences in enumerate(references)
    }
    for image, sentences in expected.items():
        if not sentences:
            raise InputError(
                f"score_captions: references[{image}] has no sentence with words, expected at least one"
            )
    captions = {image: [" ".join(tokenize(caption))] for image, caption in enumerate(candidates)}
    return expected, captions
