"""The losses of the three models in PyTorch, written from the papers' equations, for autograd.

Every function takes ``o``, a model's ``config()``, and ``p``, its parameters by name as tensors. A loss comes
with the tensors that ``model.loss(..., input_gradients=True)`` returns gradients of. Sequences are not packed
and no state is carried past an end: padding is computed like any step, and no loss reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .noise import Masks, Noise

Named = Mapping[str, Any]
SPECIAL = ("<NULL>", "<START>", "<END>", "<UNK>")


class Source(NamedTuple):
    """What a decoder starts from."""

    state: tuple[Tensor, ...]  # (N, H) each
    image: Tensor | None = None  # (N, W)
    memory: Tensor | None = None  # (N, L, C)
    mask: Tensor | None = None  # (N, L), true for real slots
    first: Tensor | None = None  # (N, H), the state before the first word, if it is not zero
    above: tuple[tuple[Tensor, ...], ...] = ()  # the states of further layers; zeros if left out


class Decoded(NamedTuple):
    """What a recurrent layer computes: a tensor for each step."""

    hidden: Sequence[Tensor]  # (N, H) each
    contexts: Sequence[Tensor] = ()  # (N, C) each
    weights: Sequence[Tensor] = ()  # (N, L) each, over the memory


class Sentences(NamedTuple):
    """Inputs and targets of sentences, up to the last real target."""

    inputs: Tensor  # (N, T)
    targets: Tensor  # (N, T)
    scored: Tensor  # (N, T), true for real targets
    lengths: np.ndarray  # (N,)

    @property
    def steps(self) -> Tensor:
        """(N, T), true up to the last real target."""
        return real_steps(self.lengths, self.inputs.shape[1])


def scope(p: Named, prefix: str) -> dict[str, Any]:
    """The parameters with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): each for name, each in p.items() if name.startswith(prefix)}


def real_steps(lengths: np.ndarray, T: int) -> Tensor:
    """(N, T), true for the first steps of each sequence."""
    return torch.arange(T) < torch.tensor(lengths)[:, None]


def stacked(steps: Sequence[Tensor], like: Tensor, size: int) -> Tensor:
    """Tensors (N, D) of T steps as one, (N, T, D); T may be 0."""
    return torch.stack([*steps], 1) if steps else like.new_zeros(len(like), 0, size)


# ---------------------------------------------------------------- layers


def cell_step(
    cell: str, a: Tensor, state: Sequence[Tensor], Wh: Tensor, masks: Masks, t: int
) -> tuple[Tensor, ...]:
    """From pre-activations a = x Wx + b + contexts and a state to the next state."""
    h, read, kept = state[0], masks.read * state[0], masks.candidate[:, t]
    if cell == "rnn":
        made: tuple[Tensor, ...] = ((a + read @ Wh).tanh(),)
    elif cell == "lstm":
        i, f, o, g = (a + read @ Wh).chunk(4, 1)
        c = f.sigmoid() * state[1] + i.sigmoid() * (kept * g.tanh())
        made = (o.sigmoid() * c.tanh(), c)
    elif cell == "gru":
        (a_z, a_r, a_g), (Wh_z, Wh_r, Wh_g) = a.chunk(3, 1), Wh.chunk(3, 1)
        z, r = (a_z + read @ Wh_z).sigmoid(), (a_r + read @ Wh_r).sigmoid()
        made = (z * h + (1 - z) * kept * (a_g + (r * read) @ Wh_g).tanh(),)
    else:
        a_z, a_g = (a + read @ Wh).chunk(2, 1)
        z = a_z.sigmoid()
        made = (z * h + (1 - z) * kept * a_g.tanh(),)
    zoneout = [share[:, t] for share in masks.kept]
    return tuple(d * old + (1 - d) * new for d, old, new in zip(zoneout, state, made, strict=False))


def attend(query: Tensor, memory: Tensor, mask: Tensor, p: Named, score: str) -> tuple[Tensor, Tensor]:
    """The context of a query (N, H) from a memory (N, L, C), and its weights; zero without a real slot."""
    if score == "additive":
        e = ((query @ p["Wq"])[:, None] + memory @ p["Wm"] + p["b"]).tanh() @ p["v"]
    else:
        e = ((query if score == "dot" else query @ p["W"])[:, None] * memory).sum(2)
    weights = e.masked_fill(~mask, -1e30).softmax(1) * mask
    return (weights[:, :, None] * memory).sum(1), weights


def recurrent(o: Named, p: Named, x: Tensor, source: Source, lengths: np.ndarray, noise: Noise) -> Decoded:
    """A recurrent layer over x (N, T, D); it attends where it has parameters for that."""
    N, T, _ = x.shape
    masks, a = noise.recurrence(o["regularisation"], lengths, T, p["Wh"]), x @ p["Wx"] + p["b"]
    Wh, state, decoded = masks.weight * p["Wh"], source.state, Decoded([], [], [])
    for t in range(T):
        gates, contexts = a[:, t], []
        if "Wz" in p:
            score = o["attention"]
            z, weights = attend(state[0], source.memory, source.mask, scope(p, "source_"), score)
            if o.get("selector"):
                z = (state[0] @ p["selector_w"] + p["selector_b"]).sigmoid()[:, None] * z
            gates = gates + z @ p["Wz"]
            contexts.append(z)
            decoded.weights.append(weights)
        if "Wt" in p:
            if delay := o.get("target_delay"):
                c = decoded.hidden[t - delay] if t >= delay else torch.zeros_like(state[0])
            else:
                past, score = stacked(decoded.hidden, *state[:1], len(Wh)), o["attention"] or "additive"
                c, _ = attend(state[0], past, torch.ones(N, t, dtype=torch.bool), scope(p, "target_"), score)
            gates = gates + c @ p["Wt"]
            contexts.append(c)
        state = cell_step(o["cell_type"], gates, state, Wh, masks, t)
        decoded.hidden.append(state[0])
        decoded.contexts.append(torch.cat(contexts, 1) if contexts else state[0][:, :0])
    return decoded


def zero_state(o: Named, like: Tensor, H: int) -> tuple[Tensor, ...]:
    """A state of zeros."""
    return (like.new_zeros(len(like), H),) * (2 if o["cell_type"] == "lstm" else 1)


def plain_lstm(p: Named, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM without dropout and zoneout."""
    i, f, o, g = (x @ p["Wx"] + h @ p["Wh"] + p["b"]).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def review(o: Named, p: Named, source: Source, noise: Noise) -> tuple[list[Tensor], Source]:
    """The thought vectors of each block (Jiang, Ma and Lu 2020, eqs 6-8), and the decoder's source."""
    r, (h, c), memories = o["reviewer"], source.state, [source.memory]
    for block in range(1, r["blocks"] + 1):
        states = [h]
        for step in range(1, r["steps"] + 1):
            own = scope(p, f"block{block}_step{step}_")
            read = memories if r["inter"] else memories[:1]
            sizes = [memory.shape[2] for memory in read]
            Wq, Wm = own["Wq"].chunk(len(read), 1), own["Wm"].split(sizes)
            bm, v = own["bm"].chunk(len(read)), own["v"].chunk(len(read))
            z = []
            for j, memory in enumerate(read):
                mask = torch.ones(memory.shape[:2], dtype=torch.bool) if j else source.mask
                score = {"Wq": Wq[j], "Wm": Wm[j], "b": bm[j], "v": v[j]}
                z.append(attend(h, memory, mask, score, "additive")[0])
            previous = torch.cat(states if r["intra"] else [h], 1)
            weights = {"Wx": own["Wz"], "Wh": own["Wh"], "b": own["b"]}
            h, c = plain_lstm(weights, torch.cat(z, 1), previous, c)
            states.append(h)
        memories.append(noise.dropout(torch.stack(states[1:], 1), r["dropout"]))
    state = (h, c) if o["cell_type"] == "lstm" else (h,)
    mask = torch.ones(memories[-1].shape[:2], dtype=torch.bool)
    return memories[1:], Source(state, memory=memories[-1], mask=mask, first=h)


# ---------------------------------------------------------------- losses


def reconstruction(
    o: Named, p: Named, hidden: Sequence[Tensor], first: Tensor | None, steps: Tensor
) -> Tensor:
    """ARNet's loss (X. Chen et al. 2018, eqs 5-7): each state is reconstructed from the next one."""
    N, R = len(steps), len(p["Wh"])
    h = c = p["Wh"].new_zeros(N, R)
    total = p["Wh"].new_zeros(())
    for t, (read, target) in enumerate(zip(hidden, [first, *hidden[:-1]], strict=False)):
        h, c = plain_lstm(p, read, h, c)
        if target is not None:
            target = target.detach() if o["detach_target"] else target
            total = total + ((h @ p["W"] + p["b_out"] - target).square().sum(1) * steps[:, t]).sum()
    return total / max(N, 1)


def doubly_stochastic(decoded: Decoded, source: Source, forced: Sentences) -> Tensor:
    """Every region should be attended to once (Xu et al. 2015, eq. 14)."""
    N, L = source.mask.shape
    weights = stacked(decoded.weights, source.memory, L) * forced.steps[:, :, None]
    missing = (1 - weights.sum(1)) * (torch.tensor(forced.lengths) > 0)[:, None]
    return missing.square().sum() / max(N, 1)


def discriminative(p: Named, thoughts: Sequence[Tensor], forced: Sentences, first: int) -> Tensor:
    """Thought vectors predict the frequent words of a sentence (Jiang, Ma and Lu 2020, eqs 9-10)."""
    k = p["discriminative_W"].shape[1]
    columns = (forced.targets - first)[:, :, None] == torch.arange(k)
    present = (columns & forced.scored[:, :, None]).any(1)
    total = p["discriminative_W"].new_zeros(())
    for each in thoughts:
        s = (each @ p["discriminative_W"]).amax(1)
        margins = (1 - (s[:, :, None] - s[:, None, :])).relu()
        total = total + (margins * present[:, :, None] * ~present[:, None, :]).sum()
    return total / len(thoughts) / max(len(present), 1)


def sentences_of(tokens: np.ndarray, null: int, lengths: np.ndarray | None) -> Sentences:
    """Teacher forcing: all tokens but the last are read, and all but the first are predicted."""
    tokens = tokens.reshape(-1, tokens.shape[-1]).astype(np.int64)
    targets = tokens[:, 1:]
    steps = np.arange(targets.shape[1])
    scored = targets != null if lengths is None else steps < lengths.reshape(-1, 1)
    lengths = (scored * (steps + 1)).max(1, initial=0)
    T = lengths.max(initial=0)
    return Sentences(*map(torch.tensor, (tokens[:, :T], targets[:, :T], scored[:, :T])), lengths)


# ---------------------------------------------------------------- models that write sentences


def decode(
    o: Named, p: Named, words: Tensor, source: Source, lengths: np.ndarray, noise: Noise
) -> tuple[Decoded, Tensor | None]:
    """The decoder's steps, and the state before the first word if it depends on the source."""
    image_input = o.get("image_input", "initial_state")
    layers = o["decoder_layers"] or (2 if image_input == "second_layer" else 1)
    reads_image = {"every_step": 1, "second_layer": 2}.get(image_input)
    if image_input == "first_input":
        words, lengths = torch.cat([source.image[:, None], words], 1), lengths + 1
    decoded = Decoded(())
    for layer in range(1, layers + 1):
        x, start = words, source
        if layer > 1:
            x = noise.dropout(stacked(decoded.hidden, words, o["hidden_dim"]), o["layer_dropout"])
            start = Source(source.above[layer - 2] if source.above else zero_state(o, x, o["hidden_dim"]))
        if layer == reads_image:
            x = torch.cat([x, source.image[:, None].expand(-1, x.shape[1], -1)], 2)
        own = recurrent(o, scope(p, f"layer{layer}_") if layers > 1 else p, x, start, lengths, noise)
        decoded = own if layer == 1 else decoded._replace(hidden=own.hidden)
    if image_input == "first_input":
        return Decoded(decoded.hidden[1:], decoded.contexts[1:]), decoded.hidden[0]
    if source.above:
        return decoded, source.above[-1][0]
    return decoded, source.first if layers == 1 and image_input == "initial_state" else None


def sentence_loss(
    o: Named,
    p: Named,
    word_to_idx: Mapping[str, int],
    source: Source,
    tokens: np.ndarray,
    noise: Noise,
    *,
    of_encoder: Tensor | float = 0.0,
    sentence_lengths: np.ndarray | None = None,
    sentence_weights: np.ndarray | None = None,
    part_of: tuple[int, int] | None = None,
) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """The loss of sentences of sources, the vectors of the words that are read, and the hidden states."""
    forced = sentences_of(tokens, word_to_idx["<NULL>"], sentence_lengths)
    thoughts: Sequence[Tensor] = []
    if o["reviewer"]["blocks"]:
        thoughts, source = review(o, scope(p, "reviewer_"), source, noise)
    if tokens.ndim == 3:  # several sentences of each source
        several = tokens.shape[1]
        state, *others, _ = source
        copies = [None if each is None else each.repeat_interleave(several, 0) for each in others]
        source = Source(tuple(each.repeat_interleave(several, 0) for each in state), *copies)
        thoughts = [each.repeat_interleave(several, 0) for each in thoughts]
    vectors = p["W_embed"][forced.inputs]
    words = noise.dropout(vectors, o["word_dropout"])
    decoded, first = decode(o, p, words, source, forced.lengths, noise)

    scored = forced.scored
    read = stacked(decoded.hidden, words, o["hidden_dim"])[scored]
    if o["output"] == "deep":
        a = read @ p["W_deep_h"] + words[scored] + p["b_deep"]
        if "W_deep_z" in p:
            a = a + stacked(decoded.contexts, words, len(p["W_deep_z"]))[scored] @ p["W_deep_z"]
        read = a.tanh()
    if o["output"] == "concat":
        size = len(p["W_vocab"]) - o["hidden_dim"] - o["wordvec_dim"]
        contexts = stacked(decoded.contexts, words, size)[scored]
        read = torch.cat([read, words[scored], contexts], 1)
    W_vocab = p["W_embed"].T if o["tied_embeddings"] else p["W_vocab"]
    scores = noise.dropout(read, o["output_dropout"]) @ W_vocab + p["b_vocab"]
    losses = cross_entropy(
        scores, forced.targets[scored], reduction="none", label_smoothing=o["label_smoothing"]
    )
    if sentence_weights is not None:
        losses = losses * torch.tensor(sentence_weights).reshape(-1, 1).expand(scored.shape)[scored]
    rows = len(scored)
    N, M = part_of or (rows, int(scored.sum()))
    loss = losses.sum() / max(1, N if o["loss_average"] == "batch" else M)

    penalties = o.get("encoder_reconstruction", 0) * of_encoder
    if o.get("doubly_stochastic"):
        penalties += o["doubly_stochastic"] * doubly_stochastic(decoded, source, forced)
    if o["reconstruction"]:
        term = reconstruction(o, scope(p, "arnet_"), decoded.hidden, first, forced.steps)
        penalties += o["reconstruction"] * term
    if o["discriminative"]:
        special = sum(word in word_to_idx for word in SPECIAL)
        penalties += o["discriminative"] * discriminative(p, thoughts, forced, special)
    return loss + penalties * (rows / max(1, N)), vectors, decoded.hidden


def captioning_loss(
    o: Named, p: Named, word_to_idx: Named, features: Any, captions: np.ndarray, noise: Noise, **given: Any
) -> tuple[Tensor, dict[str, Any]]:
    """The loss of a CaptioningRNN; ``features`` are a tensor, or a tuple of two."""
    rate, memory, mask = o["feature_dropout"], None, None
    if o["attention"]:
        regions = features[0] if o["global_dim"] else features
        memory = noise.dropout(regions, rate)
        mask = torch.ones(memory.shape[:2], dtype=torch.bool)
        vector = noise.dropout(features[1], rate) if o["global_dim"] else memory.mean(1)
    else:
        vector = noise.dropout(features, rate)
    projected = vector @ p["W_proj"] + p["b_proj"]
    if o["image_input"] == "initial_state":
        activate = torch.tanh if o["state_activation"] == "tanh" else torch.clone
        h = activate(projected)
        c = activate(vector @ p["W_proj_c"] + p["b_proj_c"]) if o["project_cell"] else torch.zeros_like(h)
        has_cell_state = o["cell_type"] == "lstm" or o["reviewer"]["blocks"]
        source = Source((h, c) if has_cell_state else (h,), memory=memory, mask=mask, first=h)
    else:
        source = Source(zero_state(o, projected, o["hidden_dim"]), image=projected)
    loss, words, hidden = sentence_loss(o, p, word_to_idx, source, captions, noise, **given)
    return loss, {"features": features, "words": words, "hidden": hidden}


def language_loss(
    o: Named,
    p: Named,
    word_to_idx: Named,
    sentences: np.ndarray,
    noise: Noise,
    *,
    state: Sequence[np.ndarray] | None = None,
    **given: Any,
) -> tuple[Tensor, dict[str, Any]]:
    """The loss of a LanguageModel."""
    o = {**o, "attention": None, "reviewer": {"blocks": None}, "discriminative": 0.0}
    start = Source(zero_state(o, p["b_vocab"].new_zeros(len(sentences)), o["hidden_dim"]))
    if state is not None:
        size = len(state) // o["decoder_layers"]
        layers = [tuple(map(torch.tensor, state[k : k + size])) for k in range(0, len(state), size)]
        start = Source(layers[0], first=layers[0][0], above=tuple(layers[1:]))
    loss, words, hidden = sentence_loss(o, p, word_to_idx, start, sentences, noise, **given)
    return loss, {"words": words, "hidden": hidden}


def translation_loss(
    o: Named,
    p: Named,
    source_word_to_idx: Named,
    word_to_idx: Named,
    source: np.ndarray,
    target: np.ndarray,
    noise: Noise,
    **given: Any,
) -> tuple[Tensor, dict[str, Any]]:
    """The loss of a Seq2Seq."""
    real, H = source != source_word_to_idx["<NULL>"], o["encoder_dim"] or o["hidden_dim"]
    lengths = (real * np.arange(1, source.shape[1] + 1)).max(1, initial=0)
    L = lengths.max(initial=1)
    mask, last = real_steps(lengths, L), torch.arange(L) == torch.tensor(lengths)[:, None] - 1
    vectors = p["W_source"][torch.tensor(source[:, :L].astype(np.int64))]
    x, states = stacked_layers(
        o, p, noise.dropout(vectors, o["word_dropout"]), H, lengths, noise, "encoder_{direction}{layer}_"
    )
    final = torch.cat([(stacked(h, x, H) * last[:, :, None]).sum(1) for h in states.values()], 1)
    state = (final @ p["W_init"] + p["b_init"]).tanh().split(o["hidden_dim"], 1)
    term: Tensor | float = 0.0
    if o["encoder_reconstruction"]:
        for direction, h in states.items():
            term += reconstruction(o, scope(p, f"encoder_arnet_{direction}_"), h, None, mask)
    encoded = Source(state, memory=x, mask=mask, first=state[0])
    loss, words, hidden = sentence_loss(o, p, word_to_idx, encoded, target, noise, of_encoder=term, **given)
    return loss, {"source": vectors, "target": words, "hidden": hidden}


def stacked_layers(
    o: Named, p: Named, x: Tensor, H: int, lengths: np.ndarray, noise: Noise, name: str
) -> tuple[Tensor, dict[str, Sequence[Tensor]]]:
    """Recurrent layers in one direction or both: the states of the last one, and those of its directions.

    The latter are in the order in which a direction reads. ``name`` is the prefix of a layer's parameters.
    """
    for layer in range(1, o["num_layers"] + 1):
        x, states, parts = x if layer == 1 else noise.dropout(x, o["layer_dropout"]), {}, []
        for direction in ("forward", "backward")[: 1 + o["bidirectional"]]:
            own = scope(p, name.format(direction=direction, layer=layer))
            read = x if direction == "forward" else backwards(x, lengths)
            states[direction] = recurrent(o, own, read, Source(zero_state(o, x, H)), lengths, noise).hidden
            h = stacked(states[direction], x, H)
            parts.append(h if direction == "forward" else backwards(h, lengths))
        x = torch.cat(parts, 2)
    return x, states


def backwards(x: Tensor, lengths: np.ndarray) -> Tensor:
    """The real steps of each sequence of x (N, T, D) in the opposite order, padding in its place."""
    rows = [torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(x, lengths, strict=True)]
    return torch.stack(rows) if rows else x


# ---------------------------------------------------------------- classification


def classification_loss(
    o: Named,
    p: Named,
    x: Tensor,
    labels: np.ndarray,
    lengths: np.ndarray | None,
    noise: Noise,
    *,
    part_of: tuple[int, int] | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """The loss of a SequenceClassifier."""
    rows, T, _ = x.shape
    lengths, H = np.full(rows, T) if lengths is None else lengths, o["hidden_dim"]
    name = "layer{layer}_" * (o["num_layers"] > 1) + "{direction}_" * o["bidirectional"]
    _, states = stacked_layers(o, p, x, H, lengths, noise, name)
    steps, counts = real_steps(lengths, T), torch.tensor(lengths)[:, None]
    last, mean = torch.arange(T) == counts - 1, steps.double() / counts.clamp(min=1)
    weights = (last if o["readout"] == "last" else mean)[:, :, None]
    read = torch.cat([(stacked(h, x, H) * weights).sum(1) for h in states.values()], 1)
    read = noise.dropout(read, o["output_dropout"])
    losses = cross_entropy(
        read @ p["W_class"] + p["b_class"],
        torch.tensor(labels),
        reduction="sum",
        label_smoothing=o["label_smoothing"],
    )
    N = max(1, part_of[0] if part_of else rows)
    loss = losses / N
    if o["reconstruction"]:
        for direction, h in states.items():
            own = scope(p, f"arnet_{direction}_" if o["bidirectional"] else "arnet_")
            loss = loss + o["reconstruction"] * reconstruction(o, own, h, None, steps) * (rows / N)
    return loss, {"x": x, "hidden": states["forward"], "backward": (states.get("backward"), lengths)}
