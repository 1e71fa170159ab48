"""The primitives of attention as kernels: one pass over a query's keys, without an array (n, L, A).

The scratch memory of a query, a number for each slot and a row of the keys' size, stays in the cache. The
backward recomputes the tanh, because reading it from memory would take as long.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.kernel import inlined, kernel, primitive, reduction
from rnnlab.ops.numba.math import exp, maximum, tanh
from rnnlab.ops.numba.parallel import share

_PARALLEL_FROM = 1 << 12  # numbers in the queries or in the contexts; each is used once per slot


@primitive
@kernel(
    "T[:,::1], T[:,::1], T[::1], T[:,::1], int64[:,:], T[:,:], T[:,::1]",
    parallel_from=_PARALLEL_FROM,
)
def additive_attention_forward(part, parts, query, keys, v, memory, slots, weights, context):
    """weights = softmax(v . tanh(query + key)); context = sum of weights times memory."""
    for row in share(query.shape[0], part, parts):
        scores = np.empty(slots.shape[1], query.dtype)
        for i in range(scores.size):
            if slots[row, i] >= 0:
                scores[i] = _additive_score(query[row], keys[slots[row, i]], v)
        _attend(scores, memory, slots[row], weights[row], context[row])


@primitive
@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[::1], T[:,::1], int64[:,:], T[:,:], T[:,:], "
    "T[:,::1], T[:,::1], T[:,::1]",
    parallel_from=_PARALLEL_FROM,
)
def additive_attention_backward(
    part, parts, dcontext, query, keys, v, memory, slots, weights, dscores, dquery, dkeys, dv
):
    """d = dscore v (1 - tanh^2) is added to dquery and dkeys, dscore tanh to dv."""
    one = query.dtype.type(1)
    for row in share(query.shape[0], part, parts):
        _scores_gradient(dcontext[row], memory, slots[row], weights[row], dscores[row])
        hidden = np.empty(query.shape[1], query.dtype)
        q, dq, dv_ = query[row], dquery[row], dv[row]
        for i in range(slots.shape[1]):
            slot, dscore = slots[row, i], dscores[row, i]
            if slot < 0:
                continue
            key, dkey = keys[slot], dkeys[slot]
            for j in range(q.size):
                hidden[j] = tanh(q[j] + key[j])
            for j in range(q.size):
                dv_[j] += dscore * hidden[j]
            for j in range(q.size):
                hidden[j] = dscore * v[j] * (one - hidden[j] * hidden[j])
            for j in range(q.size):
                dq[j] += hidden[j]
            for j in range(q.size):
                dkey[j] += hidden[j]


@primitive
@kernel("T[:,::1], T[:,::1], T[:,::1], int64[:,:], T[:,:], T[:,::1]", parallel_from=_PARALLEL_FROM)
def dot_attention_forward(part, parts, query, keys, memory, slots, weights, context):
    """weights = softmax(query . key); context = sum of weights times memory."""
    for row in share(query.shape[0], part, parts):
        scores = np.empty(slots.shape[1], query.dtype)
        for i in range(scores.size):
            if slots[row, i] >= 0:
                scores[i] = _dot(query[row], keys[slots[row, i]])
        _attend(scores, memory, slots[row], weights[row], context[row])


@primitive
@kernel(
    "T[:,::1], T[:,::1], T[:,::1], T[:,::1], int64[:,:], T[:,:], T[:,:], T[:,::1], T[:,::1]",
    parallel_from=_PARALLEL_FROM,
)
def dot_attention_backward(
    part, parts, dcontext, query, keys, memory, slots, weights, dscores, dquery, dkeys
):
    """Add dscore * key to dquery, and dscore * query to dkeys."""
    for row in share(query.shape[0], part, parts):
        _scores_gradient(dcontext[row], memory, slots[row], weights[row], dscores[row])
        for i in range(slots.shape[1]):
            if slots[row, i] >= 0:
                _add(dquery[row], dscores[row, i], keys[slots[row, i]])
                _add(dkeys[slots[row, i]], dscores[row, i], query[row])


@primitive
@kernel("T[:,::1], T[:,:], int64[:,:], T[:,::1]", parallel_from=_PARALLEL_FROM)
def attention_memory_gradient(part, parts, dcontext, weights, slots, dmemory):
    """Weight times dcontext is added to dmemory."""
    for row in share(dcontext.shape[0], part, parts):
        for i in range(slots.shape[1]):
            if slots[row, i] >= 0:
                _add(dmemory[slots[row, i]], weights[row, i], dcontext[row])


# ---------------------------------------------------------------- of one query


@inlined
def _attend(scores, memory, slots, weights, context):
    """The softmax of the given scores over the existing slots, and the weighted sum of the memory."""
    zero = scores.dtype.type(0)
    most, real = scores.dtype.type(-np.inf), 0
    for i in range(scores.size):
        if slots[i] >= 0:
            most = maximum(most, scores[i])
            real += 1
        else:
            scores[i] = -np.inf
    context[:] = zero
    weights[:] = zero
    if real == 0:
        return
    for i in range(scores.size):
        scores[i] = exp(scores[i] - most)
    total = zero
    for i in range(scores.size):
        if slots[i] >= 0:
            total += scores[i]
    for i in range(scores.size):
        if slots[i] >= 0:
            weights[i] = scores[i] / total
            _add(context, weights[i], memory[slots[i]])


@inlined
def _scores_gradient(dcontext, memory, slots, weights, dscores):
    """Turn the gradient of the weights, in ``dscores``, into that of the scores; add that of the context."""
    total = dcontext.dtype.type(0)
    for i in range(slots.size):
        if slots[i] >= 0:
            dscores[i] = weights[i] * (dscores[i] + _dot(dcontext, memory[slots[i]]))
            total += dscores[i]
    for i in range(slots.size):
        if slots[i] >= 0:
            dscores[i] -= weights[i] * total
        else:
            dscores[i] = 0


@inlined
def _add(out, factor, x):
    for j in range(out.size):
        out[j] += factor * x[j]


@reduction
def _additive_score(query, key, v):
    total = query.dtype.type(0)
    for j in range(query.size):
        total += v[j] * tanh(query[j] + key[j])
    return total


@reduction
def _dot(x, y):
    total = x.dtype.type(0)
    for j in range(x.size):
        total += x[j] * y[j]
    return total
