"""A recurrent cell that attends: contexts enter all its gates.

    z_t   = attention of h_{t-1} to the source, a memory s           ARNet, eqs 3-4
    c_t   = attention of h_{t-1} to the target, h_1 .. h_{t-1}       Xia et al. 2017, eqs 6-7
    h_t   = cell([x_t, z_t, c_t], h_{t-1})                           ARNet, eq. 3; Xia et al. 2017, eqs 8 and 10

The cell is an ordinary one. Its input is [x_t, z_t, c_t] and its input weight is [Wx; Wz; Wt]. There is a source,
a target, or both. A selector may scale z_t by beta_t = sigmoid(h_{t-1} . w + b). (Xia et al. exchange z and 1 - z
in the last equation of the GRU; this GRU is that of Chen, Dong and Li.)

``params``: Wx (D, G), Wh (H, G), b (G,) of the cell; Wz (C, G) and source_Wq, source_Wm, ... of the source;
Wt (H, G) and target_Wq, target_Wm, ... of the target; selector_w (H,) and selector_b (1,).
"""

import numpy as np

from rnnlab.plain import gru, lstm, rnn, simplified_gru
from rnnlab.plain.attention import attend_backward, attend_forward, selector_backward, selector_forward
from rnnlab.plain.padding import real_steps

STEPS = {
    "rnn": (rnn.rnn_step_forward, rnn.rnn_step_backward),
    "lstm": (lstm.lstm_step_forward, lstm.lstm_step_backward),
    "gru": (gru.gru_step_forward, gru.gru_step_backward),
    "simplified_gru": (
        simplified_gru.simplified_gru_step_forward,
        simplified_gru.simplified_gru_step_backward,
    ),
}


def attentive_forward(
    x, state, memory, params, *,
    cell, score="additive", memory_mask=None, lengths=None, selector=False, target=False,
):  # fmt: skip
    """x (N, T, D), state (h0,) or (h0, c0), memory (N, L, C) or None -> h, contexts, weights, final state."""
    (N, T, D), forward, m = x.shape, STEPS[cell][0], real_steps(lengths, len(x), x.shape[1])
    inputs = ["Wx"] + ["Wz"] * (memory is not None) + ["Wt"] * target
    W = np.concatenate([params[name] for name in inputs])
    h, contexts, caches = np.zeros((N, T, state[0].shape[1])), np.zeros((N, T, len(W) - D)), []
    weights = {} if memory is None else {"source": np.zeros((N, T, memory.shape[1]))}
    weights |= {"target": np.zeros((N, T, T))} if target else {}
    for t in range(T):
        query, read, cache = state[0], [x[:, t]], {}
        if memory is not None:
            real = m[t] * (np.ones(memory.shape[:2]) if memory_mask is None else memory_mask)
            z, weights["source"][:, t], cache["source"] = attend_forward(
                query, memory, _part(params, "source_"), score=score, mask=real
            )
            if selector:
                z, cache["selector"] = selector_forward(z, query, params["selector_w"], params["selector_b"])
            read.append(z)
        if target:
            c, weights["target"][:, t, :t], cache["target"] = attend_forward(
                query, h[:, :t], _part(params, "target_"), score=score, mask=m[t] * np.ones((N, t))
            )
            read.append(c)
        read = np.concatenate(read, axis=1)
        *after, cache["cell"] = forward(read, *state, W, params["Wh"], params["b"])
        state = tuple(m[t] * new + (1 - m[t]) * old for new, old in zip(after, state, strict=True))
        h[:, t], contexts[:, t] = state[0], read[:, D:]
        caches.append(cache)
    return h, contexts, weights, state, (x, len(state), memory, params, cell, inputs, m, caches)


def attentive_backward(dh, dcontexts, cache, *, dweights=None):
    """dh (N, T, H), dcontexts as contexts -> dx, dstate, dmemory (None without a memory), dparams."""
    x, states, memory, params, cell, inputs, m, caches = cache
    dx, dh, dmemory = np.zeros(x.shape), dh.copy(), None if memory is None else np.zeros(memory.shape)
    dstate = [np.zeros((len(x), dh.shape[2])) for _ in range(states)]
    dparams = {name: np.zeros(array.shape) for name, array in params.items()}
    splits = np.cumsum([len(params[name]) for name in inputs])[:-1]
    for t in reversed(range(len(caches))):
        step, dalpha = caches[t], {name: each[:, t] for name, each in (dweights or {}).items()}
        dstate[0] = dstate[0] + dh[:, t]
        dread, *dprev, dW, dWh, db = STEPS[cell][1](*(m[t] * each for each in dstate), step["cell"])
        dstate = [new + (1 - m[t]) * old for new, old in zip(dprev, dstate, strict=True)]
        dread[:, x.shape[2] :] += dcontexts[:, t]
        gradients = dict(zip(inputs, np.split(dW, splits), strict=True)) | {"Wh": dWh, "b": db}
        parts = dict(zip(inputs, np.split(dread, splits, axis=1), strict=True))
        dx[:, t] = parts["Wx"]
        if memory is not None:
            dz = parts["Wz"]
            if "selector" in step:
                dz, dquery, gradients["selector_w"], gradients["selector_b"] = selector_backward(
                    dz, step["selector"]
                )
                dstate[0] += dquery
            dquery, dslots, dpart = attend_backward(dz, step["source"], dweights=dalpha.get("source"))
            dstate[0] += dquery
            dmemory += dslots
            gradients |= {f"source_{name}": gradient for name, gradient in dpart.items()}
        if "target" in step:
            dweights_t = dalpha["target"][:, :t] if "target" in dalpha else None
            dquery, dslots, dpart = attend_backward(parts["Wt"], step["target"], dweights=dweights_t)
            dstate[0] += dquery
            dh[:, :t] += dslots  # this loop reaches h_1 .. h_{t-1} later
            gradients |= {f"target_{name}": gradient for name, gradient in dpart.items()}
        for name, gradient in gradients.items():
            dparams[name] += gradient
    return dx, tuple(dstate), dmemory, dparams


def _part(params, prefix):
    return {name.removeprefix(prefix): array for name, array in params.items() if name.startswith(prefix)}
