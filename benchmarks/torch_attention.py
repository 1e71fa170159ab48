"""The attentive models in PyTorch, with the weights of rnnlab by their names.

Sequences are packed, as by nn.utils.rnn.pack_padded_sequence: the longest come first, and those that have
ended are not computed. Quantities that depend on the memory alone are computed once for all steps, and those
that depend on the words alone in one product.

A cell has ``read(words)``, which processes the words of many steps. It is called with one step of this
result, the context, and the state.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from benchmarks.pytorch import DEVICES, load, load_lstm
from benchmarks.torch_search import State

Tensor = torch.Tensor
Tensors = tuple[Tensor, ...]
Weights = dict[str, np.ndarray]


class Attention(nn.Module):
    """Additive scores, their softmax, and the weighted sum of the memory."""

    def __init__(self, w: Weights) -> None:
        super().__init__()
        self.to_query, self.to_keys = _linear(w["source_Wq"]), _linear(w["source_Wm"], w["source_b"])
        self.to_score = _linear(w["source_v"][:, None])

    def forward(
        self, h: Tensor, keys: Tensor, memory: Tensor, masked: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The contexts (n, k, C) of k queries h (n, k, H) to each memory, and the weights (n, k, L).

        keys (n, L, A), memory (n, L, C), masked (n, L): true where there is no real slot.
        """
        hidden = (self.to_query(h)[:, :, None] + keys[:, None]).tanh_()
        scores = self.to_score(hidden)[..., 0]
        if masked is not None:
            scores = scores.masked_fill(masked[:, None], -torch.inf)
        weights = torch.softmax(scores, 2)
        return torch.bmm(weights, memory), weights


class LSTM(nn.Module):
    """An LSTM cell written in elementary operations."""

    def __init__(self, w: Weights) -> None:
        super().__init__()
        self.read = _linear(w["Wx"], w["b"])
        self.from_context, self.from_h = _linear(w["Wz"]), _linear(w["Wh"])

    def forward(self, product: Tensor, context: Tensor, state: Tensors) -> Tensors:
        """The state after a step."""
        h, c = state
        a = _add(_add(product, context, self.from_context), h, self.from_h)
        gates, candidate = a.split([3 * h.shape[1], h.shape[1]], 1)
        i, f, o = torch.sigmoid(gates).chunk(3, 1)
        c = f * c + i * torch.tanh(candidate)
        return o * torch.tanh(c), c


class GRU(nn.Module):
    """A GRU cell in elementary operations; its reset gate acts before the product. Without Wz, no context."""

    def __init__(self, w: Weights, prefix: str = "") -> None:
        super().__init__()
        Wx, Wh, b = (w[f"{prefix}{name}"] for name in ("Wx", "Wh", "b"))
        gates = 2 * Wh.shape[0]
        self.read = _linear(Wx, b)
        self.gates_from_h, self.candidate_from_h = _linear(Wh[:, :gates]), _linear(Wh[:, gates:])
        self.from_context = None if prefix else _linear(w["Wz"])

    def forward(self, product: Tensor, context: Tensor | None, state: Tensors) -> Tensors:
        """The state after a step."""
        (h,) = state
        a = product if self.from_context is None else _add(product, context, self.from_context)
        gates, candidate = a.split([2 * h.shape[1], h.shape[1]], 1)
        z, r = torch.sigmoid(_add(gates, h, self.gates_from_h)).chunk(2, 1)
        g = torch.tanh(_add(candidate, r * h, self.candidate_from_h))
        return (torch.lerp(g, h, z),)  # (1 - z) g + z h


class NNCell(nn.Module):
    """nn.LSTMCell or nn.GRUCell on a word concatenated with the context; nn.GRUCell differs from our GRU."""

    def __init__(self, w: Weights) -> None:
        super().__init__()
        W, (H, G) = np.concatenate([w["Wx"], w["Wz"]]), w["Wh"].shape
        self.is_lstm = G == 4 * H
        self.cell = (
            load_lstm(nn.LSTMCell(len(W), H), W, w["Wh"], w["b"]) if self.is_lstm else nn.GRUCell(len(W), H)
        )
        self.read = nn.Identity()

    def forward(self, word: Tensor, context: Tensor, state: Tensors) -> Tensors:
        """The state after a step."""
        inputs = torch.cat([word, context], 1)
        return self.cell(inputs, state) if self.is_lstm else (self.cell(inputs, *state),)


class Decoder(nn.Module):
    """A cell with attention and deep output.

    The state of a search has the cell's state of each sentence, and the memory of each source.
    """

    start_token, end_token = 1, 2

    def __init__(self, w: Weights, cell: nn.Module, *, word_dropout: float, output_dropout: float) -> None:
        super().__init__()
        self.cell, self.attention = cell, Attention(w)
        self.embedding = load(nn.Embedding(*w["W_embed"].shape), w["W_embed"].T)
        self.deep_h, self.deep_z = _linear(w["W_deep_h"], w["b_deep"]), _linear(w["W_deep_z"])
        self.output = _linear(w["W_vocab"], w["b_vocab"])
        self.drop_words, self.drop_output = nn.Dropout(word_dropout), nn.Dropout(output_dropout)

    def advance(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the token after these, and the state then."""
        words, h = self.embedding(tokens), state.rows[0]
        contexts, _ = self.attention(h.view(len(state.sources[0]), -1, h.shape[1]), *state.sources)
        context = contexts.flatten(0, 1)
        rows = self.cell(self.cell.read(words), context, state.rows)
        return torch.log_softmax(self._scores(rows[0], context, words), 1), State(rows, state.sources)

    def nll(self, state: State, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The summed loss of sentences (n, T + 1), longest first, and the sums (n, L) of their weights.

        The tokens are on the CPU, which packs them.
        """
        lengths, device = (tokens[:, 1:] != 0).sum(1), state.rows[0].device
        inputs, targets = (
            _pack(part, lengths, is_sorted=True).to(device) for part in (tokens[:, :-1], tokens[:, 1:])
        )
        words, sizes = self.drop_words(self.embedding(inputs.data)), inputs.batch_sizes.tolist()
        (rows, sources), steps = state, []
        for read in self.cell.read(words).split(sizes):
            n = len(read)
            if n < len(rows[0]):
                rows, sources = (tuple(part[:n] for part in parts) for parts in (rows, sources))
            context, weights = self.attention(rows[0][:, None], *sources)
            rows = self.cell(read, context[:, 0], rows)
            steps.append((rows[0], context[:, 0], weights[:, 0]))
        hidden, contexts, weights = map(torch.cat, zip(*steps, strict=True))
        nll = cross_entropy(self._scores(hidden, contexts, words), targets.data, reduction="sum")
        places = torch.cat([torch.arange(n) for n in sizes]).to(device)
        return nll, weights.new_zeros(len(tokens), weights.shape[1]).index_add(0, places, weights)

    def _scores(self, h: Tensor, context: Tensor, words: Tensor) -> Tensor:
        deep = torch.tanh(_add(self.deep_h(h) + words, context, self.deep_z))
        return self.output(self.drop_output(deep))


class Captioner(Decoder):
    """The captioning model: the regions are data, and the initial state is computed from their mean."""

    def __init__(
        self,
        w: Weights,
        cell: nn.Module,
        *,
        doubly_stochastic: float,
        feature_dropout: float,
        **dropouts: float,
    ) -> None:
        super().__init__(w, cell, **dropouts)
        self.drop_features = nn.Dropout(feature_dropout)
        keys = [key for key in ("_proj", "_proj_c") if f"W{key}" in w]
        self.initial = nn.ModuleList(_linear(w[f"W{key}"], w[f"b{key}"]) for key in keys)
        self.doubly_stochastic = doubly_stochastic

    def start(self, features: Tensor) -> State:
        """The state before the first word."""
        features = self.drop_features(features)
        mean = features.mean(1)
        rows = tuple(torch.tanh(layer(mean)) for layer in self.initial)
        return State(rows, (self.attention.to_keys(features), features))

    def loss(self, features: Tensor, captions: Tensor) -> Tensor:
        """The loss of a batch divided by its size."""
        nll, attended = self.nll(self.start(features), captions)
        return (nll + self.doubly_stochastic * (1 - attended).square().sum()) / len(captions)


class Translator(Decoder):
    """The translation model; its encoder is of the same kind as its cell."""

    def __init__(self, w: Weights, cell: nn.Module, **dropouts: float) -> None:
        super().__init__(w, cell, **dropouts)
        self.source_embedding = load(nn.Embedding(*w["W_source"].shape), w["W_source"].T)
        sizes = w["encoder_forward1_Wx"].shape[0], w["encoder_forward1_Wh"].shape[0]
        self.encoder = nn.GRU(*sizes, bidirectional=True) if isinstance(cell, NNCell) else BidirectionalGRU(w)
        self.initial = _linear(w["W_init"], w["b_init"])

    def start(self, source: Tensor) -> State:
        """The state before the first word."""
        lengths = (source != 0).sum(1)
        tokens = _pack(source, lengths)
        words = self.drop_words(self.source_embedding(tokens.data))
        packed, ends = self.encoder(tokens._replace(data=words))
        memory, _ = pad_packed_sequence(packed, batch_first=True)
        masked = torch.arange(memory.shape[1]) >= lengths[:, None]
        h = torch.tanh(self.initial(torch.cat([*ends], 1)))
        return State((h,), (self.attention.to_keys(memory), memory, masked))

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The loss of a batch divided by the number of its tokens."""
        nll, _ = self.nll(self.start(source), target)
        return nll / (target[:, 1:] != 0).sum()


class BidirectionalGRU(nn.Module):
    """A bidirectional GRU over packed sequences, like nn.GRU, but with our cell."""

    def __init__(self, w: Weights) -> None:
        super().__init__()
        self.forwards, self.backwards = GRU(w, "encoder_forward1_"), GRU(w, "encoder_backward1_")

    def forward(self, words: PackedSequence) -> tuple[PackedSequence, tuple[Tensor, Tensor]]:
        """The states (M, 2 E) packed, and the last ones of both directions, (n, E) each."""
        x, sizes = words.data, words.batch_sizes
        starts, rows = sizes.cumsum(0) - sizes, torch.cat([torch.arange(n) for n in sizes.tolist()])
        steps = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        lengths = torch.bincount(rows)
        # the position of each word in the reversed sentence
        turned = starts[lengths[rows] - 1 - steps] + rows
        ends = starts[lengths - 1] + torch.arange(len(lengths))
        forwards = self._run(self.forwards, x, sizes.tolist())
        backwards = self._run(self.backwards, x[turned], sizes.tolist())
        last = tuple(states[ends][words.unsorted_indices] for states in (forwards, backwards))
        return words._replace(data=torch.cat([forwards, backwards[turned]], 1)), last

    @staticmethod
    def _run(cell: GRU, x: Tensor, sizes: list[int]) -> Tensor:
        h, states = x.new_zeros(sizes[0], cell.candidate_from_h.in_features), []
        for read in cell.read(x).split(sizes):
            (h,) = cell(read, None, (h[: len(read)],))
            states.append(h)
        return torch.cat(states)


def training_step(
    model: Captioner | Translator, source: np.ndarray, sentences: np.ndarray, *, device: str = "cpu"
) -> Callable[[], float]:
    """A training step with fused Adam, which returns the loss. The batch has the longest sentences first."""
    model.to(DEVICES[device])
    adam = torch.optim.Adam(model.parameters(), fused=True)
    order = (sentences != 0).sum(1).argsort()[::-1]
    inputs, tokens = (torch.from_numpy(array[order]) for array in (source, sentences))
    inputs = inputs.to(DEVICES[device])

    def step() -> float:
        adam.zero_grad()
        loss = model.loss(inputs, tokens)
        loss.backward()
        adam.step()
        return loss.item()

    return step


def _linear(W: np.ndarray, b: np.ndarray | None = None) -> nn.Linear:
    arrays = [W] if b is None else [W, b]
    return load(nn.Linear(*W.shape, bias=b is not None), *arrays)


def _add(a: Tensor, x: Tensor, layer: nn.Linear) -> Tensor:
    return torch.addmm(a, x, layer.weight.T)


def _pack(tokens: Tensor, lengths: Tensor, *, is_sorted: bool = False) -> PackedSequence:
    return pack_padded_sequence(tokens, lengths, batch_first=True, enforce_sorted=is_sorted)
