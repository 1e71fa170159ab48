"""A recurrent cell that attends: contexts enter all its gates.

    z_t = attention of h_{t-1} to the source, a memory s             ARNet, eqs 3-4
    c_t = attention of h_{t-1} to the target, h_1 .. h_{t-1}         Xia et al. 2017, eqs 6-7
          or h_{t-target_delay}, and 0 before there is one           Xia et al. 2017, section 3.4
    h_t = cell([x_t, z_t, c_t], h_{t-1})                             ARNet, eq. 3; Xia et al. 2017, eqs 8, 10

The cell is an ordinary one with the input [x_t, z_t, c_t] and the input weight [Wx; Wz; Wt]. There is a
source, a target, or both. A selector may scale z_t by beta_t = sigmoid(h_{t-1} . w + b). (In the last
equation of the GRU, Xia et al. swap z and 1 - z; this GRU is that of Chen, Dong and Li.)

``params``: Wx (D, G), Wh (H, G), b (G,) of the cell; Wz (C, G) and source_Wq, source_Wm, ... of the source;
Wt (H, G) and target_Wq, target_Wm, ... of the target; selector_w (H,) and selector_b (1,).
"""

import numpy as np

from rnnlab.plain import gru, lstm, rnn, simplified_gru
from rnnlab.plain.attention import attend_backward, attend_forward, selector_backward, selector_forward
from rnnlab.plain.padding import real_steps

FORWARD = {
    "rnn": rnn.rnn_step_forward,
    "lstm": lstm.lstm_step_forward,
    "gru": gru.gru_step_forward,
    "simplified_gru": simplified_gru.simplified_gru_step_forward,
}
BACKWARD = {
    "rnn": rnn.rnn_step_backward,
    "lstm": lstm.lstm_step_backward,
    "gru": gru.gru_step_backward,
    "simplified_gru": simplified_gru.simplified_gru_step_backward,
}
CONTEXT_WEIGHTS = {"source": "Wz", "target": "Wt"}


def attentive_step_forward(x, state, memories, params, *, cell, score, selector):
    """x (N, D), state, {"source" or "target": (memory, mask)} -> contexts, weights by name, next state."""
    inputs, weights, cache = {"Wx": x}, {}, {}
    for part, (memory, mask) in memories.items():
        own = {name.removeprefix(f"{part}_"): p for name, p in params.items() if name.startswith(part)}
        if part == "target" and not own:
            score = "dot"  # of a delayed state, which has the weight 1 with any score
        context, weights[part], cache[part] = attend_forward(state[0], memory, own, score=score, mask=mask)
        if part == "source" and selector:
            w, b = params["selector_w"], params["selector_b"]
            context, cache["selector"] = selector_forward(context, state[0], w, b)
        inputs[CONTEXT_WEIGHTS[part]] = context
    W = np.concatenate([params[name] for name in inputs])
    read = np.concatenate(list(inputs.values()), axis=1)
    *state, cache["cell"] = FORWARD[cell](read, *state, W, params["Wh"], params["b"])
    return read[:, x.shape[1] :], weights, state, (cache, cell, {name: len(params[name]) for name in inputs})


def attentive_step_backward(dstate, dcontexts, dweights, cache):
    """dstate, dcontexts, dweights by name -> dx, dstate of the state before, dmemories by name, dparams."""
    cache, cell, sizes = cache
    splits = np.cumsum(list(sizes.values()))[:-1]
    dread, *dstate, dW, dWh, db = BACKWARD[cell](*dstate, cache["cell"])
    dread[:, splits[0] :] += dcontexts
    dparams = dict(zip(sizes, np.split(dW, splits), strict=True)) | {"Wh": dWh, "b": db}
    dinputs, dmemories = dict(zip(sizes, np.split(dread, splits, axis=1), strict=True)), {}
    for part in cache.keys() & CONTEXT_WEIGHTS.keys():
        dcontext = dinputs[CONTEXT_WEIGHTS[part]]
        if part == "source" and "selector" in cache:
            dcontext, dh, dparams["selector_w"], dparams["selector_b"] = selector_backward(
                dcontext, cache["selector"]
            )
            dstate[0] = dstate[0] + dh
        dh, dmemories[part], down = attend_backward(dcontext, cache[part], dweights=dweights.get(part))
        dstate[0] = dstate[0] + dh
        dparams |= {f"{part}_{name}": gradient for name, gradient in down.items()}
    return dinputs["Wx"], dstate, dmemories, dparams


def attentive_forward(
    x, state, memory, params, *,
    cell, score="additive", memory_mask=None, lengths=None, selector=False, target=False, target_delay=None,
):  # fmt: skip
    """x (N, T, D), state (h0,) or (h0, c0), memory (N, L, C) or None -> h, contexts, weights, final state."""
    (N, T, _), H, m = x.shape, state[0].shape[1], real_steps(lengths, len(x), x.shape[1])
    L, C = (0, 0) if memory is None else memory.shape[1:]
    h, contexts, caches = np.zeros((N, T, H)), np.zeros((N, T, C + H * target)), []
    weights = {} if memory is None else {"source": np.zeros((N, T, L))}
    weights |= {"target": np.zeros((N, T, T))} if target else {}
    for t in range(T):
        memories = {}
        if memory is not None:
            memories["source"] = memory, m[t] * (np.ones((N, L)) if memory_mask is None else memory_mask)
        if target:
            read = np.ones(t) if target_delay is None else np.arange(t) == t - target_delay
            memories["target"] = h[:, :t], m[t] * read
        contexts[:, t], alphas, after, cache = attentive_step_forward(
            x[:, t], state, memories, params, cell=cell, score=score, selector=selector
        )
        for part, alpha in alphas.items():
            weights[part][:, t, : alpha.shape[1]] = alpha
        state = tuple(m[t] * new + (1 - m[t]) * old for new, old in zip(after, state, strict=True))
        h[:, t] = state[0]
        caches.append(cache)
    return h, contexts, weights, state, (x, len(state), memory, params, m, caches)


def attentive_backward(dh, dcontexts, cache, *, dweights=None):
    """dh (N, T, H), dcontexts as contexts -> dx, dstate, dmemory (None without a memory), dparams."""
    x, states, memory, params, m, caches = cache
    dx, dh, dmemory = np.zeros(x.shape), dh.copy(), None if memory is None else np.zeros(memory.shape)
    dstate = [np.zeros((len(x), dh.shape[2])) for _ in range(states)]
    dparams = {name: np.zeros(array.shape) for name, array in params.items()}
    for t in reversed(range(len(caches))):
        dstate[0] = dstate[0] + dh[:, t]
        dalphas = {
            part: each[:, t, : None if part == "source" else t] for part, each in (dweights or {}).items()
        }
        dx[:, t], dprev, dmemories, dstep = attentive_step_backward(
            [m[t] * each for each in dstate], dcontexts[:, t], dalphas, caches[t]
        )
        dstate = [new + (1 - m[t]) * old for new, old in zip(dprev, dstate, strict=True)]
        if "source" in dmemories:
            dmemory += dmemories["source"]
        if "target" in dmemories:
            dh[:, :t] += dmemories["target"]  # the loop reaches h_1 .. h_{t-1} later
        for name, gradient in dstep.items():
            dparams[name] += gradient
    return dx, tuple(dstate), dmemory, dparams
