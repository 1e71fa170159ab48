"""Greedy and beam search for PyTorch, by the rules of :mod:`rnnlab.decoding`, a batch at a time.

    state = model.start(source)
    log_probs, state = model.advance(tokens, state)      (n, V)

Sources that are done leave the batch. All state is in tensors; there is no loop over sources.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import nn

Tensor = torch.Tensor


class State(NamedTuple):
    """The tensors of a search, whose rows it selects as sentences continue or end."""

    rows: tuple[Tensor, ...]  # a row for each partial sentence, grouped by source
    sources: tuple[Tensor, ...] = ()  # a row for each source, shared by its sentences


class Model(Protocol):
    """The model that a search needs."""

    start_token: int
    end_token: int

    def start(self, source: Tensor) -> State:
        """The state before the first token."""

    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the token after these, and the state then."""


class Captioner(NamedTuple):
    """The captioning model, one step at a time."""

    to_h: nn.Linear
    to_c: nn.Linear
    embedding: nn.Embedding
    lstm: nn.LSTM  # batch first; for hundreds of rows a step of it is faster than nn.LSTMCell
    output: nn.Linear
    start_token: int
    end_token: int

    def start(self, features: Tensor) -> State:
        """The state before the first token."""
        return State((torch.tanh(self.to_h(features)), torch.tanh(self.to_c(features))))

    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the token after these, and the state then."""
        h, c = state.rows
        _, (h, c) = self.lstm(self.embedding(tokens)[:, None], (h[None], c[None]))
        return torch.log_softmax(self.output(h[0]), 1), State((h[0], c[0]))


@torch.inference_mode()
def greedy(model: Model, source: Tensor, max_length: int) -> tuple[Tensor, Tensor]:
    """The tokens (n, max_length), <END> after the last of each, and the log-probability of each row, (n,)."""
    n = len(source)
    make = {"device": source.device}
    found = torch.full((n, max_length + 1), model.end_token, **make)
    totals = torch.zeros(n, **make)
    last, going = torch.full((n,), model.start_token, **make), torch.arange(n, **make)
    state = model.start(source)
    for t in range(max_length + 1):
        log_probs, state = model.advance(last, state)
        best, last = log_probs.max(1)
        alive = last != model.end_token
        totals[going] += best if t < max_length else best.masked_fill(alive, 0)
        found[going, t] = last
        keep = alive.nonzero()[:, 0]
        if not len(keep):
            break
        state, last, going = _select(state, keep, keep), last[keep], going[keep]
    return found[:, :max_length], totals


@torch.inference_mode()
def beam_search(
    model: Model, source: Tensor, max_length: int, K: int, min_length: int = 0
) -> tuple[Tensor, Tensor]:
    """As :func:`greedy`, for the best sentence of each source."""
    n, end, make = len(source), model.end_token, {"device": source.device}
    found = torch.full((n, max_length), end, **make)
    found_totals = torch.full((n,), -torch.inf, **make)
    last, going = torch.full((n,), model.start_token, **make), torch.arange(n, **make)
    state = model.start(source)
    totals = torch.zeros(
        n, 1, **make
    )  # (m, K) of the partial sentences of the sources that continue, (m, 1) at first
    words = torch.full((n, 1, max_length), end, **make)  # (m, K, max_length)
    ended = torch.zeros(n, dtype=torch.long, **make)  # (m,) sentences
    best_ended = torch.full((n,), -torch.inf, **make)
    for t in range(max_length + 1):
        log_probs, state = model.advance(last, state)
        if t < min_length:
            log_probs[:, end] = -torch.inf
        m, width = totals.shape
        V = log_probs.shape[1]
        if t == max_length:  # only <END> can follow
            best, rank = (totals + log_probs.view(m, width, V)[:, :, end]).max(1)
            rows = (best > best_ended).nonzero()[:, 0]
            found[going[rows]] = words[rows, rank[rows]]
            found_totals[going] = torch.maximum(best, best_ended)
            break
        scores, chosen = (totals[:, :, None] + log_probs.view(m, width, V)).view(m, -1).topk(2 * K)
        parents, tokens = chosen // V, chosen % V
        ends = tokens == end

        ending = scores[:, :K].masked_fill(~ends[:, :K], -torch.inf)
        best, rank = ending.max(1)
        better = best > best_ended
        best_ended = torch.where(better, best, best_ended)
        rows = better.nonzero()[:, 0]
        found[going[rows]] = words[rows, parents[rows, rank[rows]]]
        ended += ends[:, :K].sum(1)

        totals, order = scores.masked_fill(ends, -torch.inf).topk(K)
        parents, tokens = parents.gather(1, order), tokens.gather(1, order)
        done = (ended >= K) | (totals[:, 0] <= best_ended)
        found_totals[going[done]] = best_ended[done]
        keep = (~done).nonzero()[:, 0]
        if not len(keep):
            break

        parents, last = parents[keep], tokens[keep]
        words = words[keep[:, None], parents]
        words[:, :, t] = last
        totals, ended, best_ended, going = totals[keep], ended[keep], best_ended[keep], going[keep]
        rows = (keep[:, None] * width + parents).view(-1)
        state, last = _select(state, rows, keep), last.reshape(-1)
    return found, found_totals


def _select(state: State, rows: Tensor, sources: Tensor) -> State:
    """The sentences and the sources that continue."""
    if state.sources and len(sources) < len(state.sources[0]):
        state = state._replace(sources=tuple(part.index_select(0, sources) for part in state.sources))
    return state._replace(rows=tuple(part.index_select(0, rows) for part in state.rows))
