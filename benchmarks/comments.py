"""Scores of code comments as the papers print them: the scores of captions, with one reference each.

``rnnlab evaluate`` gives sacrebleu's BLEU of translations. X. Chen et al. (2018, table 3) print BLEU-1 to
BLEU-4, METEOR and ROUGE-L of the COCO evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnlab.metrics import score_captions


def comment_scores(sentences: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """BLEU-1 to BLEU-4, METEOR, ROUGE-L and CIDEr of comments.

    Parameters
    ----------
    sentences : sequence of mappings
        The field ``sentences`` of the JSON of ``rnnlab evaluate --json``: each has ``translation`` and
        ``references``, with words separated by spaces.

    Returns
    -------
    dict of str to float
        On the scale of :func:`rnnlab.metrics.score_captions`. METEOR is left out without Java.
    """
    written = [sentence["translation"] for sentence in sentences]
    references = [sentence["references"] for sentence in sentences]
    return score_captions(written, references, tokenize=str.split).corpus
