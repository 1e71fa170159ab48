"""Affine maps (cs231n, assignments 2 and 3).

Forward and backward:

    out = x w + b            dx = dout w^T            dw = x^T dout            db = sum over rows of dout
"""


def affine_forward(x, w, b):
    """x (N, ...) with D numbers in each row, w (D, M), b (M,) -> out (N, M)."""
    return x.reshape(len(x), w.shape[0]) @ w + b, (x, w)


def affine_backward(dout, cache):
    """dout (N, M) -> dx, dw, db."""
    x, w = cache
    return (dout @ w.T).reshape(x.shape), x.reshape(len(x), w.shape[0]).T @ dout, dout.sum(axis=0)


def temporal_affine_forward(x, w, b):
    """The same map at each step: x (N, T, D) -> out (N, T, M)."""
    N, T, D = x.shape
    out, cache = affine_forward(x.reshape(N * T, D), w, b)
    return out.reshape(N, T, -1), (x.shape, cache)


def temporal_affine_backward(dout, cache):
    """dout (N, T, M) -> dx, dw, db."""
    (N, T, D), rows = cache
    dx, dw, db = affine_backward(dout.reshape(N * T, -1), rows)
    return dx.reshape(N, T, D), dw, db
