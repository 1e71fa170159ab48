"""CIDEr-D of many sentences at once, against references whose n-grams have been counted beforehand.

    g_n(s)     tf-idf vector of the n-grams of a sentence s: count times log(I / images with the n-gram)
    CIDEr-D    10 / 4 sum_n mean over references r of
               exp(-(l_s - l_r)^2 / (2 6^2)) min(g_n(s), g_n(r)) . g_n(r) / (|g_n(s)| |g_n(r)|)

(Vedantam, Zitnick and Parikh 2015.) The document frequencies are those of all I images. As in the
implementation of the COCO evaluation, l is the number of bigrams, and an n-gram that is in no reference has a
document frequency of one image.

Training with a reward scores hundreds of sentences at every step. All of them are therefore scored by array
operations: the n-grams of the sentences are joined with those of the references of their images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.types import Array

ORDERS = 4  # n-grams of 1 to 4 words
SIGMA = 6.0  # standard deviation of the penalty on the difference in length
SCALE = 10.0


class _Counts(NamedTuple):
    """The distinct n-grams of each of S sentences, sorted by sentence: K entries."""

    ngram: Array  # (K,) number of the n-gram, at least num_known if it is in no reference
    count: Array  # (K,) occurrences in the sentence
    first: Array  # (S + 1,) the first entry of each sentence, and K
    sentence: Array  # (K,)


@dataclass(frozen=True)
class _Order:
    """The n-grams of one n in the references."""

    keys: Array  # (num_known,) sorted; the number of an n-gram is its index here
    idf: Array  # (num_known + 1,); the last is for n-grams that are in no reference
    counts: _Counts
    norms: Array  # (S,)


class CiderD:
    """CIDEr-D against fixed references.

    Parameters
    ----------
    references : sequence of sequences of sequences of int
        For each image its sentences, each a sequence of tokens. At least one per image.
    num_words : int
        Tokens of references and candidates are at least 0 and less than this number.

    Raises
    ------
    ValueError
        If there are no images, or an image has no references.
    TypeError
        If tokens are not integers.
    IndexError
        If a token is out of range.
    """

    def __init__(self, references: Sequence[Sequence[Sequence[int]]], num_words: int) -> None:
        if not references:
            raise InputError("CiderD: references is empty, expected the sentences of at least one image")
        of_image = np.array([len(sentences) for sentences in references])
        if not of_image.all():
            raise InputError(
                f"CiderD: references[{int(np.argmin(of_image))}] is empty, expected at least one sentence "
                "for each image"
            )
        sentences = [sentence for image in references for sentence in image]
        lengths = np.array([len(sentence) for sentence in sentences])
        self.num_words, self.num_images = num_words, len(references)
        found = np.array([token for sentence in sentences for token in sentence])
        tokens = self._checked_tokens("CiderD: references", found)
        self._first = np.concatenate([[0], np.cumsum(of_image)])  # sentence of each image
        self._bigrams = np.maximum(lengths - 1, 0)
        image = np.repeat(np.arange(len(references)), of_image)
        self._orders: list[_Order] = []
        for n, (keys, sentence) in enumerate(self._keys(tokens, lengths), start=1):
            # all words have a number, so that numbering the tokens of a candidate needs no search
            known = np.arange(num_words) if n == 1 else np.unique(keys)
            counts = _counted(np.searchsorted(known, keys), sentence, len(lengths), len(known))
            images_with = _images_with(counts, image, len(known))
            idf = np.log(len(references)) - np.log(np.maximum(np.append(images_with, 1), 1))
            self._orders.append(_Order(known, idf, counts, _norms(counts, idf)))

    def scores(self, images: Array, candidates: Array, lengths: Array) -> np.ndarray:
        """The CIDEr-D of each candidate against the references of its image.

        Parameters
        ----------
        images : (N,) integers
            The image of each candidate.
        candidates : (N, T) integers
            Tokens; those past the end of a sentence are not read.
        lengths : (N,) integers
            The number of tokens of each candidate.

        Returns
        -------
        (N,) float64
            From 0 to 10; 0 for an empty candidate.

        Raises
        ------
        ValueError
            If the shapes do not fit.
        TypeError
            If images, lengths or tokens are not integers.
        IndexError
            If an image, a length or a token is out of range.
        """
        images, candidates, lengths = map(np.asarray, (images, candidates, lengths))
        N = len(candidates)
        if candidates.ndim != 2 or images.shape != (N,) or lengths.shape != (N,):
            raise InputError(
                f"CiderD.scores: images, candidates and lengths have the shapes {images.shape}, "
                f"{candidates.shape} and {lengths.shape}, expected (N,), (N, T) and (N,)"
            )
        for name, numbers in (("images", images), ("lengths", lengths)):
            if N and numbers.dtype.kind not in "iu":
                raise InputTypeError(f"CiderD.scores: {name} have dtype {numbers.dtype}, expected integers")
        images, lengths = images.astype(np.int64), lengths.astype(np.int64)  # so that differences are signed
        if N and not (lengths.min() >= 0 and lengths.max() <= candidates.shape[1]):
            raise OutOfRangeError(
                f"CiderD.scores: lengths are {lengths.min()} to {lengths.max()}, expected 0 to "
                f"{candidates.shape[1]}, the width of candidates"
            )
        if N and not (images.min() >= 0 and images.max() < self.num_images):
            raise OutOfRangeError(f"CiderD.scores: images has a number outside the {self.num_images} images")
        read = candidates[np.arange(candidates.shape[1]) < lengths[:, None]]
        tokens = self._checked_tokens("CiderD.scores: candidates", read)
        bigrams, total = np.maximum(lengths - 1, 0), np.zeros(N)
        for order, (keys, sentence) in zip(self._orders, self._keys(tokens, lengths), strict=True):
            counts = _counted(_numbers(keys, order.keys), sentence, N, None)
            total += self._similarity(order, counts, images, bigrams)
        return total * (SCALE / ORDERS) / (self._first[images + 1] - self._first[images])

    def _similarity(self, order: _Order, counts: _Counts, images: Array, bigrams: Array) -> np.ndarray:
        """The similarity of n-grams (N,), summed over the references of the images (N,)."""
        own, theirs = self._common(order, counts, images)
        row, sentence, idf = counts.sentence[own], order.counts.sentence[theirs], order.idf[counts.ngram[own]]
        weights, references = counts.count[own] * idf, order.counts.count[theirs] * idf
        difference = bigrams[row] - self._bigrams[sentence]
        terms = np.minimum(weights, references) * references * np.exp(difference**2 / (-2 * SIGMA**2))
        norms = _norms(counts, order.idf)[row] * order.norms[sentence]
        return np.bincount(row, terms / np.where(norms > 0, norms, 1), minlength=len(images))

    def _common(self, order: _Order, counts: _Counts, images: Array) -> tuple[Array, Array]:
        """All pairs of an entry of ``counts`` and an entry of its image's references with the same n-gram."""
        distinct, image = np.unique(images, return_inverse=True)
        start, stop = (order.counts.first[self._first[each]] for each in (distinct, distinct + 1))
        entries, span = _ranges(start, stop), len(order.keys) + 1
        keys = np.repeat(np.arange(len(distinct)), stop - start) * span + order.counts.ngram[entries]
        by_key = np.argsort(keys, kind="stable")
        keys, entries = keys[by_key], entries[by_key]
        wanted = image[counts.sentence] * span + np.minimum(counts.ngram, len(order.keys))
        start, stop = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
        return np.repeat(np.arange(len(wanted)), stop - start), entries[_ranges(start, stop)]

    def _keys(self, tokens: Array, lengths: Array) -> Iterator[tuple[Array, Array]]:
        """For n = 1, 2 and so on: the keys of all n-grams of concatenated sentences, and their sentences.

        A key combines the number of the first n - 1 words and the last word. The (n - 1)-grams of the
        references must be numbered before the keys of the next n are requested.
        """
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        left = lengths[sentence] - _ranges(np.zeros_like(lengths), lengths)  # tokens up to the end
        start, numbers = np.arange(len(tokens)), tokens
        yield numbers, sentence
        for n in range(2, ORDERS + 1):
            fits = left[start] >= n
            start, numbers = start[fits], numbers[fits]
            keys = numbers * self.num_words + tokens[start + n - 1]
            yield keys, sentence[start]
            numbers = _numbers(keys, self._orders[n - 1].keys)

    def _checked_tokens(self, name: str, tokens: Array) -> np.ndarray:
        if tokens.size and tokens.dtype.kind not in "iu":
            raise InputTypeError(f"{name} have dtype {tokens.dtype}, expected integers")
        if tokens.size and not (tokens.min() >= 0 and tokens.max() < self.num_words):
            raise OutOfRangeError(f"{name} has a token outside the {self.num_words} words")
        return tokens.astype(np.int64)


def _numbers(keys: Array, known: Array) -> np.ndarray:
    """The index of each key in ``known``, which is sorted. Other keys get numbers from ``len(known)`` on."""
    if not len(known):
        return np.unique(keys, return_inverse=True)[1]
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    new = known[places] != keys
    places[new] = len(known) + np.unique(keys[new], return_inverse=True)[1]
    return places


def _counted(numbers: Array, sentence: Array, sentences: int, span: int | None) -> _Counts:
    """Count the n-grams of each sentence."""
    span = span or int(numbers.max(initial=0)) + 1
    pairs, count = np.unique(sentence * span + numbers, return_counts=True)
    sentence, ngram = np.divmod(pairs, span)
    return _Counts(ngram, count, np.searchsorted(sentence, np.arange(sentences + 1)), sentence)


def _images_with(counts: _Counts, image: Array, num_known: int) -> np.ndarray:
    """The number of images in whose sentences each n-gram occurs."""
    pairs = np.unique(image[counts.sentence] * num_known + counts.ngram)
    return np.bincount(pairs % max(num_known, 1), minlength=num_known)


def _norms(counts: _Counts, idf: Array) -> np.ndarray:
    """The norms (S,) of the tf-idf vectors."""
    weights = counts.count * idf[np.minimum(counts.ngram, len(idf) - 1)]
    return np.sqrt(np.bincount(counts.sentence, weights**2, minlength=len(counts.first) - 1))


def _ranges(start: Array, stop: Array) -> np.ndarray:
    """The integers from each start to its stop, one range after another."""
    sizes = stop - start
    return np.repeat(start - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
