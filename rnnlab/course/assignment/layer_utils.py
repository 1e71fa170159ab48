"""Layers that are used together."""

from .layers import affine_backward, affine_forward, relu_backward, relu_forward

__all__ = ["affine_relu_backward", "affine_relu_forward"]


def affine_relu_forward(x, w, b):
    """An affine map, then relu: x, w and b as for the affine map, to out (N, M) and a cache."""
    a, affine_cache = affine_forward(x, w, b)
    out, relu_cache = relu_forward(a)
    return out, (affine_cache, relu_cache)


def affine_relu_backward(dout, cache):
    """Backward of :func:`affine_relu_forward`: dout (N, M) to dx, dw, db."""
    affine_cache, relu_cache = cache
    return affine_backward(relu_backward(dout, relu_cache), affine_cache)
