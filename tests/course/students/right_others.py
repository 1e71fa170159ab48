"""Right implementations of the other layers in unusual styles."""

from __future__ import annotations

from .mistake import Right

RIGHT = [
    Right(
        "affine_with_a_row_of_ones",
        "affine",
        """
import numpy as np

def affine_forward(x, w, b):
    X = np.column_stack([x.reshape(len(x), -1), np.ones(len(x))])
    W = np.concatenate([w, b[None]])
    return X @ W, (X, W, x.shape)

def affine_backward(dout, cache):
    X, W, shape = cache
    dW = X.T @ dout
    return (dout @ W.T)[:, :-1].reshape(shape), dW[:-1], dW[-1]
""",
    ),
    Right(
        "temporal_affine_by_steps",
        "temporal_affine",
        """
import numpy as np

def temporal_affine_forward(x, w, b):
    out = np.empty((*x.shape[:2], len(b)))
    for t in range(x.shape[1]):
        out[:, t] = (w.T @ x[:, t].T).T + b
    return out, {"x": x, "w": w}

def temporal_affine_backward(dout, cache):
    x, w = cache["x"], cache["w"]
    dx, dw, db = np.zeros(x.shape), np.zeros(w.shape), np.zeros(w.shape[1])
    for t in reversed(range(x.shape[1])):
        for n in range(x.shape[0]):
            dx[n, t] = w @ dout[n, t]
            dw += x[n, t][:, None] * dout[n, t][None, :]
            db += dout[n, t]
    return dx, dw, db
""",
    ),
    Right(
        "word_embedding_by_one_hot",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    one_hot = (x[..., None] == np.arange(len(W))).astype(float)
    return one_hot @ W, one_hot

def word_embedding_backward(dout, cache):
    return np.einsum("ntv,ntd->vd", cache, dout)
""",
    ),
    Right(
        "word_embedding_by_counting",
        "word_embedding",
        """
import numpy as np

def word_embedding_forward(x, W):
    return W.T[:, x].transpose(1, 2, 0), (x, W)

def word_embedding_backward(dout, cache):
    x, W = cache
    columns = dout.reshape(-1, dout.shape[-1]).T
    return np.stack([np.bincount(x.ravel(), weights=column, minlength=len(W)) for column in columns], axis=1)
""",
    ),
    Right(
        "softmax_loss_by_rows_without_shift",
        "softmax_loss",
        """
import numpy as np

def softmax_loss(x, y):
    losses, grads = [], []
    for scores, label in zip(x, y):
        e = np.exp(scores)
        grad = e / sum(e)
        losses.append(np.log(sum(e)) - scores[label])
        grad[label] = grad[label] - 1
        grads.append(grad)
    return np.mean(losses), np.array(grads) / len(grads)
""",
    ),
    Right(
        "temporal_softmax_loss_with_weights",
        "temporal_softmax_loss",
        """
import numpy as np

def temporal_softmax_loss(x, y, mask):
    weight = np.where(mask, 1 / len(x), 0)
    z = np.logaddexp.reduce(x, axis=2)
    loss = np.vdot(weight, z - np.take_along_axis(x, y[..., None], axis=2)[..., 0])
    dx = weight[..., None] * np.exp(x - z[..., None])
    n, t = np.ogrid[: x.shape[0], : x.shape[1]]
    dx[n, t, y] -= weight
    return float(loss), dx
""",
    ),
    Right(
        "attention_keys_by_slots",
        "attention_keys",
        """
import numpy as np

def attention_keys_forward(memory, params):
    keys = [memory[:, l] @ params["Wm"] for l in range(memory.shape[1])]
    return np.stack(keys, axis=1) + params["b"], dict(params, memory=memory)

def attention_keys_backward(dkeys, cache):
    N, L, C = cache["memory"].shape
    flat = dkeys.reshape(N * L, -1)
    grads = {"b": flat.sum(0), "Wm": cache["memory"].reshape(N * L, C).T @ flat}
    return (flat @ cache["Wm"].T).reshape(N, L, C), grads
""",
    ),
    Right(
        "attention_step_with_softmax_matrix",
        "attention_step",
        """
import numpy as np

def attention_step_forward(query, keys, memory, params):
    contexts, weights, cache = [], [], []
    for n in range(len(query)):
        u = np.tanh(query[n] @ params["Wq"] + keys[n])
        e = np.exp(u @ params["v"])
        a = e / e.sum()
        contexts.append(a @ memory[n])
        weights.append(a)
        cache.append((query[n], memory[n], u, a))
    return np.array(contexts), np.array(weights), (cache, params)

def attention_step_backward(dcontext, cache):
    samples, params = cache
    dq, dk, dm, dWq, dv = [], [], [], 0, 0
    for (query, memory, u, a), dc in zip(samples, dcontext):
        jacobian = np.diag(a) - np.outer(a, a)
        de = jacobian @ (memory @ dc)
        dpre = np.outer(de, params["v"]) * (1 - u ** 2)
        dm.append(np.outer(a, dc))
        dk.append(dpre)
        dq.append(params["Wq"] @ dpre.sum(axis=0))
        dWq = dWq + np.outer(query, dpre.sum(axis=0))
        dv = dv + u.T @ de
    return np.array(dq), np.array(dk), np.array(dm), {"v": dv, "Wq": dWq}
""",
    ),
    Right(
        "selector_by_samples",
        "selector",
        """
import numpy as np

def selector_forward(context, h, w, b):
    beta = [0.5 * (1 + np.tanh(0.5 * (h_n @ w + b[0]))) for h_n in h]
    return np.diag(beta) @ context, (np.array(beta), context, h, w)

def selector_backward(dscaled, cache):
    beta, context, h, w = cache
    da = np.einsum("nc,nc->n", dscaled, context) * (beta - beta ** 2)
    dcontext, dh = dscaled * beta.reshape(-1, 1), da[:, None] @ w[None]
    return dcontext, dh, (da[:, None] * h).sum(axis=0), np.sum(da, keepdims=True)
""",
    ),
    Right(
        "doubly_stochastic_loss_by_slots",
        "doubly_stochastic_loss",
        """
import numpy as np

def doubly_stochastic_loss(weights, lengths=None):
    N, T, L = weights.shape
    lengths = np.full(N, T) if lengths is None else np.asarray(lengths)
    steps = np.tril(np.ones((T + 1, T), bool), -1)[lengths]
    loss, grad = 0, np.zeros_like(weights)
    for n, l in np.ndindex(N, L):
        excess = weights[n, steps[n], l].sum() - 1
        loss = loss + excess * excess / N
        grad[n, steps[n], l] = 2 * excess / N
    return loss, grad
""",
    ),
    Right(
        "target_attention_all_steps_at_once",
        "target_attention",
        """
import numpy as np

def target_attention_forward(h, h0, params):
    N, T, H = h.shape
    queries = np.concatenate([h0[:, None], h[:, :-1]], axis=1)
    past = np.tril(np.ones((T, T)), -1)
    u = np.tanh((queries @ params["Wq"])[:, :, None] + (h @ params["Wm"] + params["b"])[:, None])
    e = np.exp(u @ params["v"]) * past
    total = e.sum(axis=2, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return weights @ h, weights, (h, queries, u, weights, params)

def target_attention_backward(dcontexts, cache):
    h, queries, u, weights, params = cache
    dweights = dcontexts @ h.transpose(0, 2, 1)
    de = weights * (dweights - (weights * dweights).sum(axis=2, keepdims=True))
    dpre = de[..., None] * params["v"] * (1 - u ** 2)
    dquery, dkeys = dpre.sum(axis=2), dpre.sum(axis=1)
    dqueries = dquery @ params["Wq"].T
    dh = weights.transpose(0, 2, 1) @ dcontexts + dkeys @ params["Wm"].T
    dh[:, :-1] += dqueries[:, 1:]
    grads = {
        "Wq": np.einsum("nth,nta->ha", queries, dquery),
        "Wm": np.einsum("nth,nta->ha", h, dkeys),
        "b": dkeys.sum(axis=(0, 1)),
        "v": np.einsum("ntl,ntla->a", de, u),
    }
    return dh, dqueries[:, 0], grads
""",
    ),
    Right(
        "discriminative_by_all_pairs",
        "discriminative",
        """
import numpy as np

def discriminative_forward(thoughts, words, params):
    W = params["W"]
    N, V = len(thoughts), W.shape[1]
    present = np.zeros((N, V + 1), bool)
    np.put_along_axis(present, np.where(words < 0, V, words), True, axis=1)
    present = present[:, :V]
    products = np.einsum("nlh,hv->nlv", thoughts, W)
    s = products.max(axis=1)
    gap = 1 - s[:, :, None] + s[:, None, :]
    counted = present[:, :, None] & ~present[:, None, :] & (gap > 0)
    first = np.zeros(products.shape)
    np.put_along_axis(first, products.argmax(axis=1)[:, None], 1.0, axis=1)
    ds = counted.sum(axis=1) - 1.0 * counted.sum(axis=2)
    return (gap * counted).sum() / N, (thoughts, W, first * ds[:, None] / N)

def discriminative_backward(dloss, cache):
    thoughts, W, dproducts = cache
    return dloss * (dproducts @ W.T), {"W": dloss * np.tensordot(thoughts, dproducts, ((0, 1), (0, 1)))}
""",
    ),
    Right(
        "arnet_as_sum_of_steps",
        "arnet",
        """
import numpy as np

def arnet_forward(h, h0, params):
    N, T, H = h.shape
    Wx, Wh, b, W, b_out = (params[k] for k in ("Wx", "Wh", "b", "W", "b_out"))
    R = len(Wh)
    s, c, loss, tape = np.zeros((N, R)), np.zeros((N, R)), 0.0, []
    for t in range(T):
        i, f, o, g = np.hsplit(h[:, t] @ Wx + s @ Wh + b, 4)
        i, f, o, g = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o)), np.tanh(g)
        old_s, old_c = s, c
        c = f * c + i * g
        s = o * np.tanh(c)
        target = h[:, t - 1] if t else h0
        e = 0 * h[:, 0] if target is None else s @ W + b_out - target
        loss += (e * e).sum() / N
        tape.append((old_s, old_c, i, f, o, g, c, s, e))
    return loss, (h, h0, params, tape)

def arnet_backward(dloss, cache):
    h, h0, params, tape = cache
    grads = {name: np.zeros(a.shape) for name, a in params.items()}
    dh, ds, dc = np.zeros(h.shape), 0, 0
    dh0 = None if h0 is None else -2 * dloss / len(h) * tape[0][-1]
    for t in reversed(range(len(tape))):
        old_s, old_c, i, f, o, g, c, s, e = tape[t]
        de = 2 * dloss / len(h) * e
        grads["W"] += s.T @ de
        grads["b_out"] += de.sum(axis=0)
        if t:
            dh[:, t - 1] -= de
        ds = ds + de @ params["W"].T
        dc = dc + ds * o * (1 - np.tanh(c) ** 2)
        da = np.hstack([dc * g * i * (1 - i), dc * old_c * f * (1 - f),
                        ds * np.tanh(c) * o * (1 - o), dc * i * (1 - g * g)])
        grads["Wx"] += h[:, t].T @ da
        grads["Wh"] += old_s.T @ da
        grads["b"] += da.sum(axis=0)
        dh[:, t] += da @ params["Wx"].T
        ds, dc = da @ params["Wh"].T, dc * f
    return dh, dh0, grads
""",
    ),
]
