"""The masks of dropout and zoneout that a model draws, drawn again from a generator with the same seed.

A reference that computes the parts of a model in the model's order draws the same masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from rnnlab.layers import dropout_forward
from rnnlab.ops import ops_for


class Masks(NamedTuple):
    """Of a recurrent layer with N sequences of T steps. Without noise nothing is dropped."""

    read: torch.Tensor  # (N, H), multiplies the states that the recurrent weights read
    candidate: torch.Tensor  # (N, T, H), multiplies the candidate
    weight: torch.Tensor  # (H, G), multiplies Wh
    kept: tuple[torch.Tensor, torch.Tensor]  # (N, T, H) of h and c: the share of the previous value, zoneout


class Noise:
    """The source of all masks of one call of ``loss``.

    Parameters
    ----------
    seed : int or None
        Of the generator that the model draws from; None for inference.
    """

    def __init__(self, seed: int | None) -> None:
        self._rng = None if seed is None else np.random.default_rng(seed)

    def dropout(self, x: torch.Tensor, p: float) -> torch.Tensor:
        """Dropout of a tensor."""
        return x * torch.tensor(dropout_forward(np.ones(x.shape), p, rng=self._rng)[0])

    def recurrence(self, options: Mapping[str, Any], lengths: np.ndarray, T: int, Wh: torch.Tensor) -> Masks:
        """The masks of a layer with these options of :class:`rnnlab.layers.Regularisation`."""
        N, (H, G) = len(lengths), Wh.shape
        rates = [options[name] for name in ("zoneout_h", "zoneout_c")]
        dropped, on = options["recurrent_dropout"], options["recurrent_dropout_on"]
        read, candidate, weight = np.ones((N, H)), np.ones((N, T, H)), np.ones((H, G))
        kept = [np.full((N, T, H), rate) for rate in rates]  # the expectation
        if self._rng is not None and any((*rates, dropped, options["weight_dropout"])):
            ops = ops_for(read)
            *of_zoneout, of_dropout, of_weight = ops.mask_seeds(self._rng, 4)
            order = np.argsort(-lengths, kind="stable")  # masks are drawn for the longest sequence first
            steps, ranks = np.nonzero(np.arange(T)[:, None] < lengths[order])  # step by step, without padding
            real, shape = (order[ranks], steps), (len(steps), H)
            for mask, rate, seed in zip(kept, rates, of_zoneout, strict=True):
                if rate:
                    drawn = np.empty(shape)
                    ops.dropout_mask(rate, seed, 0, drawn)
                    mask[real] = drawn == 0  # a unit that dropout would drop keeps its value
            if dropped:
                drawn = np.empty(shape if on == "candidate" else read.shape)
                ops.dropout_mask(dropped, of_dropout, 0, drawn)
                if on == "candidate":
                    candidate[real] = drawn
                else:
                    read[order] = drawn
            ops.dropout(np.ones((H, G)), options["weight_dropout"], of_weight, weight)
        read, candidate, weight, *kept = map(torch.tensor, (read, candidate, weight, *kept))
        return Masks(read, candidate, weight, tuple(kept))
