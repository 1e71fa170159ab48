"""The captioning model with a reviewer in PyTorch, with the weights of rnnlab by their names.

Each step computes the keys of a memory once, and the queries of all its attentions in one product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.pytorch import load, load_lstm
from benchmarks.torch_attention import LSTM, Captioner, Tensor, Tensors, Weights
from benchmarks.torch_search import State


class Attentions(nn.Module):
    """The attentions of one step to all its memories, computed one after another."""

    def __init__(self, Wm: list[np.ndarray], bm: np.ndarray, v: np.ndarray) -> None:
        super().__init__()
        self.to_keys = nn.ModuleList(load(nn.Linear(*W.shape), W, b) for W, b in zip(Wm, bm, strict=True))
        self.to_score = nn.ModuleList(load(nn.Linear(len(each), 1, bias=False), each[:, None]) for each in v)

    def forward(self, queries: Tensor, memories: list[Tensor]) -> list[Tensor]:
        """The context (N, C) of each memory (N, slots, C), for queries (N, J, A)."""
        contexts = []
        for j, memory in enumerate(memories):
            hidden = torch.tanh(self.to_keys[j](memory) + queries[:, j, None])
            weights = torch.softmax(self.to_score[j](hidden)[..., 0], 1)
            contexts.append(torch.bmm(weights[:, None], memory)[:, 0])
        return contexts


class BatchedAttentions(nn.Module):
    """The attentions of one step, with products over the thought vectors of all earlier blocks."""

    def __init__(self, Wm: list[np.ndarray], bm: np.ndarray, v: np.ndarray) -> None:
        super().__init__()
        self.first = Attentions(Wm[:1], bm[:1], v[:1])
        self.W, self.b, self.v = (
            None if len(Wm) == 1 else nn.Parameter(torch.tensor(array))
            for array in (np.stack(Wm[1:] or Wm), bm[1:, None], v[1:, :, None])
        )

    def forward(self, queries: Tensor, memories: list[Tensor]) -> list[Tensor]:
        """As :meth:`Attentions.forward`; the second memory has all thought vectors, (J - 1, N, L, H)."""
        contexts = self.first(queries, memories[:1])
        if self.W is not None:
            _, thoughts = memories
            J, N, L, H = thoughts.shape
            keys = torch.baddbmm(self.b, thoughts.view(J, N * L, H), self.W).view(J, N, L, -1)
            hidden = torch.tanh(keys + queries[:, 1:].transpose(0, 1)[:, :, None])
            scores = torch.bmm(hidden.view(J, N * L, -1), self.v)
            weights = torch.softmax(scores.view(J * N, 1, L), 2)
            found = torch.bmm(weights, thoughts.view(J * N, L, H)).view(J, N, H)
            contexts.append(found.transpose(0, 1).flatten(1))
        return contexts


class Step(nn.Module):
    """An LSTM step and the attentions whose contexts it reads."""

    def __init__(self, w: Weights, memory_dim: int, *, batched: bool) -> None:
        super().__init__()
        (H, JA), A = w["Wq"].shape, w["Wm"].shape[1]
        J = JA // A
        rows = np.split(w["Wm"], [memory_dim + j * H for j in range(J - 1)])
        self.shape = J, A
        self.to_queries = load(nn.Linear(H, JA, bias=False), w["Wq"])
        self.attentions = (BatchedAttentions if batched else Attentions)(
            rows, w["bm"].reshape(J, A), w["v"].reshape(J, A)
        )
        W = np.concatenate([w["Wz"], w["Wh"][:-H]])  # contexts, and all earlier states but the last
        self.cell = load_lstm(nn.LSTMCell(len(W), H), W, w["Wh"][-H:], w["b"])

    def forward(self, memories: list[Tensor], states: list[Tensor], c: Tensor) -> Tensors:
        """The state after the step; ``states`` (N, H) are those that it reads, the oldest first."""
        h = states[-1]
        contexts = self.attentions(self.to_queries(h).view(len(h), *self.shape), memories)
        return self.cell(torch.cat([*contexts, *states[:-1]], 1), (h, c))


class Reviewer(nn.Module):
    """Blocks of steps, with inter-block connections, with intra-block connections or without."""

    def __init__(
        self,
        w: Weights,
        memory_dim: int,
        *,
        blocks: int,
        steps: int,
        intra: bool,
        batched: bool,
        dropout: float,
    ) -> None:
        super().__init__()

        def step(block: int, place: int) -> Step:
            prefix = f"reviewer_block{block}_step{place}_"
            own = {name.removeprefix(prefix): array for name, array in w.items() if name.startswith(prefix)}
            return Step(own, memory_dim, batched=batched)

        self.blocks = nn.ModuleList(
            nn.ModuleList(step(block + 1, place + 1) for place in range(steps)) for block in range(blocks)
        )
        self.intra, self.batched, self.drop = intra, batched, nn.Dropout(dropout)

    def forward(self, memory: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensors]:
        """The last block's thought vectors (N, L, H) and the last state."""
        thoughts: list[Tensor] = []
        for block in self.blocks:
            memories, states = [memory, *thoughts], [h]
            if self.batched and thoughts:
                memories = [memory, torch.stack(thoughts)]
            for step in block:  # type: ignore[attr-defined]
                h, c = step(memories, states if self.intra else states[-1:], c)
                states.append(h)
            thoughts.append(self.drop(torch.stack(states[1:], 1)))
        return thoughts[-1], (h, c)


class ReviewedCaptioner(Captioner):
    """The captioning model with attention, whose decoder attends to thought vectors."""

    def __init__(
        self,
        w: Weights,
        *,
        blocks: int,
        steps: int,
        intra: bool,
        batched: bool,
        reviewer_dropout: float,
        **dropouts: Any,
    ) -> None:
        super().__init__(w, LSTM(w), doubly_stochastic=0.0, **dropouts)
        self.reviewer = Reviewer(
            w,
            len(w["W_proj"]),
            blocks=blocks,
            steps=steps,
            intra=intra,
            batched=batched,
            dropout=reviewer_dropout,
        )

    def start(self, features: Tensor) -> State:
        """The state before the first word."""
        features = self.drop_features(features)
        mean = features.mean(1)
        thoughts, state = self.reviewer(features, *(torch.tanh(layer(mean)) for layer in self.initial))
        return State(state, (self.attention.to_keys(thoughts), thoughts))
