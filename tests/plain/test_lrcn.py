"""The captioning model with the image in the second layer is the plain factored LSTM."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import relative_distance
from rnnlab.models import CaptioningRNN

from .cases import PLAIN

WORD_TO_IDX = {word: k for k, word in enumerate(["<NULL>", "<START>", "<END>", "a", "b", "c"])}


def test_loss_and_gradients_of_a_captioning_model(rng):
    model = CaptioningRNN(
        WORD_TO_IDX, 3, 2, 4, cell_type="lstm", image_input="second_layer", dtype=np.float64
    )
    model.params.flat[...] = rng.standard_normal(model.params.flat.size)
    features, captions = (
        rng.standard_normal((3, 3)),
        np.array([[1, 3, 4, 5, 2], [1, 4, 2, 0, 0], [1, 2, 0, 0, 0]]),
    )
    loss, grads = model.loss(features, captions)

    p, (read, targets) = dict(model.params.items()), (captions[:, :-1], captions[:, 1:])
    v, c_v = PLAIN.affine_forward(features, p["W_proj"], p["b_proj"])
    words, c_words = PLAIN.word_embedding_forward(read, p["W_embed"])
    first, second = ([p[f"layer{k}_{name}"] for name in ("Wx", "Wh", "b")] for k in (1, 2))
    h, c_h = PLAIN.factored_lstm_forward(words, v, first, second)
    scores, c_scores = PLAIN.temporal_affine_forward(h, p["W_vocab"], p["b_vocab"])
    expected, dscores = PLAIN.temporal_softmax_loss(scores, targets, targets != 0)
    dh, dW_vocab, db_vocab = PLAIN.temporal_affine_backward(dscores, c_scores)
    dwords, dv, dfirst, dsecond = PLAIN.factored_lstm_backward(dh, c_h)
    _, dW_proj, db_proj = PLAIN.affine_backward(dv, c_v)
    wanted = {"W_proj": dW_proj, "b_proj": db_proj, "W_vocab": dW_vocab, "b_vocab": db_vocab}
    wanted |= {f"layer1_{name}": each for name, each in zip(("Wx", "Wh", "b"), dfirst, strict=True)}
    wanted |= {f"layer2_{name}": each for name, each in zip(("Wx", "Wh", "b"), dsecond, strict=True)}
    wanted["W_embed"] = PLAIN.word_embedding_backward(dwords, c_words)

    assert loss == pytest.approx(expected, rel=1e-12)
    assert wanted.keys() == dict(grads.items()).keys()
    for name, gradient in wanted.items():
        assert relative_distance(grads[name], gradient) < 1e-10, name
