"""Sentences found as a recipe says, whatever their source is."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.config import DecodingConfig
from rnnlab.decoding import Hypothesis, beam_search, greedy, sample

Array = Any

_ROWS = 250  # sources that are decoded together


def decode(
    model: Any,
    source: Array,
    options: DecodingConfig,
    *,
    rng: np.random.Generator | int = 0,
    alignments: bool = False,
) -> list[list[Hypothesis]]:
    """Search for sentences as the recipe's table ``[decoding]`` says.

    Parameters
    ----------
    model : CaptioningRNN or Seq2Seq
    source : (N, ...)
        What the model takes: features on the scale that it was trained on, or tokens.
    options : DecodingConfig
    rng : numpy Generator or seed
        For ``method = "sample"``.
    alignments : bool
        Whether the hypotheses say what the model attended to, which it then has to do.

    Returns
    -------
    list of N lists of Hypothesis
        Best first.
    """
    rng = np.random.default_rng(rng)
    unknown = model.word_to_idx.get("<UNK>") if options.forbid_unknown else None
    forbidden = (model.null_token, model.start_token, unknown)
    common: dict[str, Any] = {
        "max_length": options.max_length,
        "min_length": options.min_length,
        "no_repeat_ngram": options.no_repeat_ngram,
        "forbid": [token for token in forbidden if token is not None],
        "return_alignments": alignments,
    }

    def search(rows: Array) -> list[list[Hypothesis]]:
        if options.method == "greedy":
            return greedy(model, rows, **common)
        if options.method == "sample":
            return sample(
                model,
                rows,
                temperature=options.temperature,
                top_k=options.top_k,
                top_p=options.top_p,
                rng=rng,
                **common,
            )
        return beam_search(
            model,
            rows,
            beam_size=options.beam_size,
            n_best=options.n_best,
            length_penalty=options.length_penalty,
            normalisation=options.normalisation,
            num_groups=options.num_groups,
            diversity=options.diversity,
            **common,
        )

    return [
        found for start in range(0, len(source), _ROWS) for found in search(source[start : start + _ROWS])
    ]
