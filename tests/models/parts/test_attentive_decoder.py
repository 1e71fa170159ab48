"""The attentive decoder: gradients, and decoding steps against whole sequences."""

import numpy as np
import pytest

from rnnlab.models.parts.attentive_decoder import AttentiveDecoder
from rnnlab.models.parts.values import Decoded, Source

from .checks import LENGTHS, H, N, P, T, W, assert_decodes, assert_part, random_parameters, recurrence


@pytest.mark.parametrize(("memory_dim", "target"), [(P, False), (0, True), (P, True)])
def test_gradients(memory_dim, target, rng):
    part = AttentiveDecoder(
        recurrence("gru"),
        W,
        H,
        memory_dim=memory_dim,
        attention_dim=3,
        selector=memory_dim > 0,
        target=target,
    )
    inputs = {"words": rng.standard_normal((N, T, W)), "h0": rng.standard_normal((N, H))}
    if memory_dim:
        inputs["memory"] = rng.standard_normal((N, 2, P))
    kinds = ["source"] * (memory_dim > 0) + ["target"] * target

    def forward(params, words, h0, memory=None):
        decoded, cache = part.forward(params, words, Source((h0,), memory=memory), LENGTHS)
        assert list(decoded.weights) == kinds
        return decoded.hidden, decoded.contexts, decoded.first, *decoded.weights.values(), cache

    def backward(dhidden, dcontexts, dfirst, *rest):
        *dweights, cache, grads = rest
        ddecoded = Decoded(dhidden, dcontexts, dict(zip(kinds, dweights, strict=True)), dfirst)
        dwords, dsource = part.backward(ddecoded, cache, grads)
        return dwords, *dsource.state, *((dsource.memory,) if memory_dim else ())

    assert_part(part, forward, backward, inputs, rng)
    assert part.context_dim == memory_dim + H * target


def test_the_gradient_of_the_memory_may_be_left_out(rng):
    part = AttentiveDecoder(recurrence("gru"), W, H, memory_dim=P, attention_dim=3)
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    source = Source((rng.standard_normal((N, H)),), memory=rng.standard_normal((N, 2, P)))
    results = []
    for needed in (True, False):
        decoded, cache = part.forward(params, words, source._replace(memory_gradient=needed), LENGTHS)
        grads = params.zeros_like()
        dwords, dsource = part.backward(Decoded(np.cos(decoded.hidden)), cache, grads)
        assert (dsource.memory is not None) == needed
        results.append((dwords, dsource.state[0], grads.flat))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_decodes_as_it_trains(rng):
    part = AttentiveDecoder(recurrence("lstm"), W, H, memory_dim=P, attention_dim=3, target=True)
    mask = np.array([[1, 1], [1, 0], [0, 1]], bool)
    source = Source(
        tuple(rng.standard_normal((N, H)) for _ in range(2)), memory=rng.standard_normal((N, 2, P)), mask=mask
    )
    assert_decodes(part, source, rng)
