"""Perplexity: the number of equally probable words with the same uncertainty.

perplexity = exp(-1/n sum_t log p(w_t | w_1 ... w_{t-1}, source))
"""

from __future__ import annotations

import math

from rnnlab.errors import InputError


def perplexity(total_nll: float, num_tokens: int) -> float:
    """The perplexity of a corpus.

    Parameters
    ----------
    total_nll : float
        Negative log-likelihood in nats, summed over all tokens.
    num_tokens : int
        The number of tokens of the sum, without padding.

    Returns
    -------
    float
        At least 1. Infinity where the exponential overflows.

    Raises
    ------
    ValueError
        If there are no tokens.
    """
    if num_tokens < 1:
        raise InputError(f"perplexity: num_tokens is {num_tokens}, expected at least 1")
    try:
        return math.exp(total_nll / num_tokens)
    except OverflowError:
        return math.inf
