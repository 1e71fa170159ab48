"""Perplexity: the number of equally likely words that a model hesitates between.

perplexity = exp(-1/n sum_t log p(w_t | w_1 ... w_{t-1}, source))
"""

from __future__ import annotations

import math


def perplexity(total_nll: float, num_tokens: int) -> float:
    """Perplexity of a whole corpus.

    Parameters
    ----------
    total_nll : float
        Negative log-likelihood in nats, summed over all tokens.
    num_tokens : int
        How many tokens the sum is over, padding not counted.

    Returns
    -------
    float
        At least 1 for a probability model; infinity where the exponential does not fit a float.

    Raises
    ------
    ValueError
        If there are no tokens.
    """
    if num_tokens < 1:
        raise ValueError(f"perplexity: num_tokens is {num_tokens}, expected at least 1")
    try:
        return math.exp(total_nll / num_tokens)
    except OverflowError:
        return math.inf
