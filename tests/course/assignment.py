"""The assignment of cs231n, filled in with right functions."""

import re

from rnnlab.course.assignment_files import write_assignment

LAYERS = """
from rnnlab.plain.embedding import word_embedding_backward, word_embedding_forward
from rnnlab.plain.lstm import lstm_backward, lstm_forward, lstm_step_backward, lstm_step_forward
from rnnlab.plain.rnn import rnn_backward, rnn_forward, rnn_step_backward, rnn_step_forward
"""

LOSS = """
        p, lstm = self.params, self.cell_type == "lstm"
        h0, projected = affine_forward(features, p["W_proj"], p["b_proj"])
        words, embedded = word_embedding_forward(captions_in, p["W_embed"])
        forward, backward = (lstm_forward, lstm_backward) if lstm else (rnn_forward, rnn_backward)
        h, recurrent = forward(words, h0, p["Wx"], p["Wh"], p["b"])
        scores, affine = temporal_affine_forward(h, p["W_vocab"], p["b_vocab"])
        loss, dscores = temporal_softmax_loss(scores, captions_out, mask)
        grads = {}
        dh, grads["W_vocab"], grads["b_vocab"] = temporal_affine_backward(dscores, affine)
        dwords, dh0, grads["Wx"], grads["Wh"], grads["b"] = backward(dh, recurrent)
        grads["W_embed"] = word_embedding_backward(dwords, embedded)
        _, grads["W_proj"], grads["b_proj"] = affine_backward(dh0, projected)
        return loss, grads
"""

SAMPLE = """
        p = self.params
        h, _ = affine_forward(features, p["W_proj"], p["b_proj"])
        c, word = np.zeros_like(h), np.full(len(features), self._start)
        for t in range(max_length):
            x, _ = word_embedding_forward(word, p["W_embed"])
            if self.cell_type == "lstm":
                h, c, _ = lstm_step_forward(x, h, c, p["Wx"], p["Wh"], p["b"])
            else:
                h, _ = rnn_step_forward(x, h, p["Wx"], p["Wh"], p["b"])
            word = captions[:, t] = (h @ p["W_vocab"] + p["b_vocab"]).argmax(axis=1)
        return captions
"""


def fill_in(folder):
    """Write the assignment's package to a folder and fill it in; return the folder of the package."""
    written = write_assignment(folder)
    layers, model = written / "rnn_layers.py", written / "classifiers" / "rnn.py"
    layers.write_text(layers.read_text() + LAYERS)
    text = model.read_text()
    for method, body in (("loss", LOSS), ("sample", SAMPLE)):
        text, count = re.subn(rf"\n *raise NotImplementedError\(\"CaptioningRNN.{method}.*\n", body, text)
        assert count == 1
    model.write_text(text)
    return written
