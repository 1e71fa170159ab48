"""Rewards of sampled sentences, for self-critical training."""

from __future__ import annotations

from rnnlab.data import CaptionedImages
from rnnlab.data.vocabulary import END
from rnnlab.metrics import CiderD
from rnnlab.training.self_critical import Reward


def cider_d_reward(images: CaptionedImages) -> Reward:
    """CIDEr-D of captions of training images against all references of their image.

    The document frequencies are those of the training references. <END> is the last word of each reference
    and of each caption that was not cut. Without it, "a dog runs on the" would score as well as any other
    sentence with these n-grams, and models that are trained for CIDEr-D learn such endings. With it, a
    caption that ends as references do has more n-grams in common with them.

    Parameters
    ----------
    images : CaptionedImages

    Raises
    ------
    ValueError
        If a training image has no references.
    """
    numbers = dict(images.vocabulary.word_to_idx)
    references = [
        [[*(numbers.setdefault(word, len(numbers)) for word in words), END] for words in sentences]
        for sentences in images.references()
    ]
    return CiderD(references, len(numbers)).scores
