"""Reviewer: LSTMs that attend to the encoder's memory before the decoder starts (Jiang, Ma and Lu 2020).

Step i of block b reads the state at the start of its block and the states after the block's earlier steps. It
attends to the encoder's memory A_0 and to the thought vectors A_1 .. A_{b-1} of the earlier blocks, with an
additive attention for each memory. t = (b - 1) L + i counts the steps of all blocks; h_0, c_0 are the
encoder's state.

    z_j = attention of h_{t-1} to A_j                       j = 0 .. b - 1, inter-block connections, eq. 8
    h_t, c_t = LSTM([z_0, .., z_{b-1}], [h_{t-i}, .., h_{t-1}], c_{t-1})    intra-block connections, eqs 6-7

The thought vectors A_b are the L states of block b. Without inter-block connections z_0 is the only context;
without intra-block connections the LSTM reads h_{t-1} alone. Review Net (Yang et al. 2016) is one block
without intra-block connections.

``params`` of step i of block b begin with "block{b}_step{i}_": Wz, Wh and b of the LSTM; Wq, Wm, bm and v of
the attentions, the columns of Wq, the rows of Wm, and bm and v one memory after another.
"""

import numpy as np

from rnnlab.plain.attention import attend_backward, attend_forward
from rnnlab.plain.lstm import lstm_step_backward, lstm_step_forward


def parts_of_step(params, prefix, memories):
    """The LSTM's parameters of one step, and the score's for each memory."""
    Wq, Wm, bm, v = (params[prefix + name] for name in ("Wq", "Wm", "bm", "v"))
    cuts = np.cumsum([memory.shape[2] for memory in memories])[:-1]  # rows of Wm and Wz where a memory begins
    bm, v = bm.reshape(len(memories), -1), v.reshape(len(memories), -1)
    each = zip(np.split(Wq, len(memories), axis=1), np.split(Wm, cuts), bm, v, strict=True)
    scores = [dict(zip(("Wq", "Wm", "b", "v"), own, strict=True)) for own in each]
    return [params[prefix + name] for name in ("Wz", "Wh", "b")], scores, cuts


def review_forward(memory, state, params, *, blocks, steps, inter=True, intra=True, memory_mask=None):
    """memory (N, M, C), state (h0, c0) -> thoughts by block (N, L, H), final state, weights by block."""
    (h, c), memories, weights, caches = state, [memory], [], []
    for b in range(1, blocks + 1):
        history, alphas = [h], [[] for _ in range(b if inter else 1)]
        for i in range(1, steps + 1):
            prefix, read, attended = f"block{b}_step{i}_", memories[: len(alphas)], []
            (Wz, Wh, bias), scores, cuts = parts_of_step(params, prefix, read)
            for j, (A_j, own) in enumerate(zip(read, scores, strict=True)):
                attended.append(attend_forward(h, A_j, own, mask=None if j else memory_mask))
                alphas[j].append(attended[j][1])
            z = np.concatenate([context for context, _, _ in attended], axis=1)
            previous = np.concatenate(history if intra else [h], axis=1)
            h, c, cache = lstm_step_forward(z, previous, c, Wz, Wh, bias)
            caches.append((b, i, prefix, cuts, cache, [cache for _, _, cache in attended]))
            history.append(h)
        memories.append(np.stack(history[1:], axis=1))
        weights.append(tuple(np.stack(alpha, axis=1) for alpha in alphas))
    cache = memories, params, steps, intra, caches
    return tuple(memories[1:]), (h, c), tuple(weights), cache


def review_backward(dthoughts, dfinal, cache):
    """dthoughts by block (N, L, H), dfinal (dh, dc) -> dmemory, dstate, dparams."""
    memories, params, steps, intra, caches = cache
    dmemories = [np.zeros(memories[0].shape), *(each.copy() for each in dthoughts)]
    dparams, (dh, dc) = {}, dfinal
    for b, i, prefix, cuts, lstm_cache, attended in reversed(caches):
        if i == steps:  # dhistory[k] sums the gradients of state k; state 0 is that at the start
            dhistory = [0] * steps + [dh]
        dh = dhistory[i] + dmemories[b][:, i - 1]
        dz, dprevious, dc, dWz, dWh, db = lstm_step_backward(dh, dc, lstm_cache)
        first = 0 if intra else i - 1  # the oldest state that the step has read
        for k, each in enumerate(np.split(dprevious, i - first, axis=1)):
            dhistory[first + k] = dhistory[first + k] + each
        downs = []
        for j, (dcontext, one) in enumerate(zip(np.split(dz, cuts, axis=1), attended, strict=True)):
            dquery, dmemory, down = attend_backward(dcontext, one)
            dhistory[i - 1] = dhistory[i - 1] + dquery
            dmemories[j] += dmemory
            downs.append(down)
        own = {"Wz": dWz, "Wh": dWh, "b": db} | {
            "Wq": np.concatenate([down["Wq"] for down in downs], axis=1),
            "Wm": np.concatenate([down["Wm"] for down in downs]),
            "bm": np.concatenate([down["b"] for down in downs]),
            "v": np.concatenate([down["v"] for down in downs]),
        }
        dparams |= {prefix + name: gradient for name, gradient in own.items()}
        dh = dhistory[0]
    return dmemories[0], (dh, dc), {name: dparams[name] for name in params}
