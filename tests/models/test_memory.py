"""Memory of training steps: used again once an array is gone, never before."""

import tracemalloc

import numpy as np
import pytest

from rnnlab.layers import lstm_backward, lstm_forward
from rnnlab.models import CaptioningRNN
from rnnlab.models.captioning import IMAGE_INPUTS
from rnnlab.ops import ops_for
from rnnlab.training import make_update_rule

fused = pytest.mark.skipif(
    ops_for(np.zeros(1)).__name__ == "rnnlab.ops.numpy",
    reason="memory is used again by the fused primitives",
)


def training_step(cell_type, image_input, N=25, T=16, V=600, H=256, W=128):
    words = ["<NULL>", "<START>", "<END>", *map(str, range(3, V))]
    dropout = {"feature_dropout": 0.3, "word_dropout": 0.5, "output_dropout": 0.5}
    model = CaptioningRNN(
        {word: index for index, word in enumerate(words)},
        128,
        W,
        H,
        cell_type,
        image_input=image_input,
        **dropout,
    )
    rng = np.random.default_rng(0)
    features = rng.standard_normal((N, 128)).astype(np.float32)
    captions = np.zeros((N, T + 1), np.int64)
    for caption, length in zip(captions, rng.integers(T // 2, T + 1, N), strict=True):
        caption[: length + 1] = rng.integers(3, V, length + 1)
    rule, grads = make_update_rule("adam"), model.params.zeros_like()

    def step():
        model.loss(features, captions, rng=rng, grads=grads)
        rule.step(model.params.flat, grads.flat)

    return step


@pytest.mark.slow
@fused
@pytest.mark.parametrize("image_input", IMAGE_INPUTS)
@pytest.mark.parametrize("cell_type", ["rnn", "lstm", "gru", "simplified_gru"])
def test_a_training_step_allocates_no_arrays_of_activations(cell_type, image_input):
    """Less than the smallest activations, 25 x 16 x 128 numbers: indices and leases, a few KB each."""
    step = training_step(cell_type, image_input)
    for _ in range(3):
        step()
    tracemalloc.start()
    try:
        step()  # tracemalloc's own records settle
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 150_000


@pytest.mark.slow
def test_two_live_caches(rng):
    """A second forward, and everything that is freed between, leaves the first one's cache alone."""
    N, T, D, H = 20, 12, 40, 64
    given = [rng.standard_normal(shape) for shape in ((N, T, D), (N, H), (D, 4 * H), (H, 4 * H), (4 * H,))]
    other = [rng.standard_normal(array.shape) for array in given]
    dh = rng.standard_normal((N, T, H))
    expected = [array.copy() for array in lstm_backward(dh, lstm_forward(*given)[1])]
    h, cache = lstm_forward(*given)
    kept_h = h.copy()
    h_other, cache_other = lstm_forward(*other)
    for _ in range(3):
        lstm_backward(h_other, cache_other)
        lstm_forward(*other)
    np.testing.assert_array_equal(h, kept_h)
    gradients = lstm_backward(dh, cache)
    lstm_backward(h_other, cache_other)
    for gradient, right in zip(gradients, expected, strict=True):
        np.testing.assert_array_equal(gradient, right)
