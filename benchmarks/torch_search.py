"""Greedy and beam search for PyTorch, by the rules of :mod:`rnnlab.decoding`, a batch at a time.

    state = model.start(features)                        h and c, (1, n, H) each
    log_probs, state = model.advance(tokens, state)      (n, V)

Sources that are done leave the batch. All of it stays in tensors: no loop over sources.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

Tensor = torch.Tensor
State = tuple[Tensor, Tensor]


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
        return torch.tanh(self.to_h(features))[None], torch.tanh(self.to_c(features))[None]

    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the token after these, and the state then."""
        hidden, state = self.lstm(self.embedding(tokens)[:, None], state)
        return torch.log_softmax(self.output(hidden[:, 0]), 1), state


@torch.inference_mode()
def greedy(model: Captioner, features: Tensor, max_length: int) -> tuple[Tensor, Tensor]:
    """The tokens (n, max_length), <END> after the last of each, and the log-probability of each row, (n,)."""
    n = len(features)
    found = torch.full((n, max_length + 1), model.end_token)
    totals = torch.zeros(n)
    state, last, going = model.start(features), torch.full((n,), model.start_token), torch.arange(n)
    for t in range(max_length + 1):
        log_probs, state = model.advance(last, state)
        best, last = log_probs.max(1)
        alive = last != model.end_token
        totals[going] += best if t < max_length else best.masked_fill(alive, 0)
        found[going, t] = last
        keep = alive.nonzero()[:, 0]
        if not len(keep):
            break
        state, last, going = _select(state, keep), last[keep], going[keep]
    return found[:, :max_length], totals


@torch.inference_mode()
def beam_search(model: Captioner, features: Tensor, max_length: int, K: int) -> tuple[Tensor, Tensor]:
    """As :func:`greedy`, for the best sentence of each source."""
    n, end = len(features), model.end_token
    found = torch.full((n, max_length), end)
    found_totals = torch.full((n,), -torch.inf)
    state, last, going = model.start(features), torch.full((n,), model.start_token), torch.arange(n)
    totals = torch.zeros(n, 1)  # (m, K) of the partial sentences of the sources that go on, (m, 1) at first
    words = torch.full((n, 1, max_length), end)  # (m, K, max_length)
    ended = torch.zeros(n, dtype=torch.long)  # (m,) sentences
    best_ended = torch.full((n,), -torch.inf)
    for t in range(max_length + 1):
        log_probs, state = model.advance(last, state)
        m, width = totals.shape
        V = log_probs.shape[1]
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

        if t == max_length:  # what has not ended is a sentence where nothing has
            rows = (best_ended == -torch.inf).nonzero()[:, 0]
            found_totals[going] = torch.where(best_ended == -torch.inf, totals[:, 0], best_ended)
            found[going[rows]] = words[rows, 0]
            break
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
        state, last = _select(state, rows), last.reshape(-1)
    return found, found_totals


def _select(state: State, rows: Tensor) -> State:
    return state[0].index_select(1, rows), state[1].index_select(1, rows)
