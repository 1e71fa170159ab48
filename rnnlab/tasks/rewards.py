"""Rewards of sampled sentences, for self-critical training."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rnnlab.data import CaptionedImages, tokenize
from rnnlab.data.vocabulary import END, UNK
from rnnlab.metrics import CiderD
from rnnlab.training.self_critical import Reward
from rnnlab.types import Array


def cider_d_reward(images: CaptionedImages) -> Reward:
    """CIDEr-D of captions of training images against all references of their image.

    The document frequencies are those of the training references. <END> is the last word of each reference
    and of each caption that was not cut. Without it, "a dog runs on the" would score as well as any other
    sentence with these n-grams, and models that are trained for CIDEr-D learn such endings. With it, a
    caption that ends as references do has more n-grams in common with them.

    References are split by :func:`rnnlab.data.tokenize`. A word of the vocabulary that this function splits
    further or removes, such as "t-shirt" or ".", is replaced by the result, as in the scores of captions.

    Parameters
    ----------
    images : CaptionedImages

    Raises
    ------
    ValueError
        If a training image has no references.
    """
    numbers, vocabulary = dict(images.vocabulary.word_to_idx), images.vocabulary.idx_to_word

    def numbered(words: Iterable[str]) -> list[int]:
        return [numbers.setdefault(word, len(numbers)) for word in words]

    references = [[[*numbered(words), END] for words in sentences] for sentences in images.references()]
    split = {
        token: numbered(words)
        for token, word in enumerate(vocabulary)
        if token > UNK and (words := tokenize(word)) != [word]
    }
    scores = CiderD(references, len(numbers)).scores
    if not split:
        return scores

    def reward(sources: Array, tokens: Array, lengths: Array) -> np.ndarray:
        """The scores of the sentences, whose words are split like those of the references."""
        sentences = [
            [number for token in row[:length] for number in split.get(token, [token])]
            for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
        ]
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        rows = np.zeros((len(sentences), lengths.max(initial=0)), np.int64)
        real = np.arange(rows.shape[1]) < lengths[:, None]
        rows[real] = [number for sentence in sentences for number in sentence]
        return scores(sources, rows, lengths)

    return reward
