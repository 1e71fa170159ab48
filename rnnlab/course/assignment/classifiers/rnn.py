"""The captioning model: fill in its loss and its sample."""

import numpy as np

from ..layers import affine_backward, affine_forward
from ..rnn_layers import (
    lstm_backward,
    lstm_forward,
    lstm_step_forward,
    rnn_backward,
    rnn_forward,
    rnn_step_forward,
    temporal_affine_backward,
    temporal_affine_forward,
    temporal_softmax_loss,
    word_embedding_backward,
    word_embedding_forward,
)

__all__ = ["CaptioningRNN"]


class CaptioningRNN:
    """A recurrent network that captions images from their features.

    The features give the initial hidden state. At each step the network reads a word and scores all words as
    the next one.

    Parameters
    ----------
    word_to_idx : dict of str to int
        The vocabulary, V words, among them <NULL> (padding), <START> and <END>.
    input_dim : int
        D, size of the features of an image.
    wordvec_dim : int
        W, size of a word vector.
    hidden_dim : int
        H, units of the hidden state.
    cell_type : "rnn" or "lstm"
    dtype : dtype
        The dtype of all parameters: float32 for training, float64 for gradient checks.
    rng : numpy Generator or seed
        Draws the initial parameters.

    Attributes
    ----------
    params : dict of str to array
        W_proj (D, H) and b_proj (H,), from features to h0; W_embed (V, W), word vectors; Wx (W, G), Wh (H, G)
        and b (G,), of the recurrent layer, G = H, or 4H for an LSTM; W_vocab (H, V) and b_vocab (V,), from
        hidden states to scores.
    """

    def __init__(
        self,
        word_to_idx,
        input_dim=512,
        wordvec_dim=128,
        hidden_dim=128,
        cell_type="rnn",
        dtype=np.float32,
        *,
        rng=0,
    ):
        if cell_type not in ("rnn", "lstm"):
            raise ValueError(f"CaptioningRNN: cell_type is {cell_type!r}, expected 'rnn' or 'lstm'")
        self.cell_type, self.dtype = cell_type, np.dtype(dtype)
        self.word_to_idx = word_to_idx
        self.idx_to_word = {index: word for word, index in word_to_idx.items()}
        self._null = word_to_idx["<NULL>"]
        self._start, self._end = word_to_idx.get("<START>"), word_to_idx.get("<END>")

        V, G, rng = (
            len(word_to_idx),
            {"rnn": 1, "lstm": 4}[cell_type] * hidden_dim,
            np.random.default_rng(rng),
        )
        params = {
            "W_proj": rng.standard_normal((input_dim, hidden_dim)) / np.sqrt(input_dim),
            "b_proj": np.zeros(hidden_dim),
            "W_embed": rng.standard_normal((V, wordvec_dim)) / 100,
            "Wx": rng.standard_normal((wordvec_dim, G)) / np.sqrt(wordvec_dim),
            "Wh": rng.standard_normal((hidden_dim, G)) / np.sqrt(hidden_dim),
            "b": np.zeros(G),
            "W_vocab": rng.standard_normal((hidden_dim, V)) / np.sqrt(hidden_dim),
            "b_vocab": np.zeros(V),
        }
        self.params = {name: array.astype(self.dtype) for name, array in params.items()}

    def loss(self, features, captions):
        """The loss of a batch, and the gradient of every parameter.

        Forward:

        1. The affine map takes the features to h0.
        2. The word embedding takes ``captions_in`` to vectors.
        3. The recurrent layer takes the vectors and h0 to hidden states.
        4. The temporal affine map takes the hidden states to scores.
        5. The temporal softmax loss compares the scores with ``captions_out`` where ``mask`` is true.

        Backward: the same layers from 5 to 1.

        Parameters
        ----------
        features : (N, D)
        captions : (N, T + 1) integers in [0, V)

        Returns
        -------
        loss : float
        grads : dict of str to array
            With the names of ``params``.
        """
        captions_in, captions_out = captions[:, :-1], captions[:, 1:]  # read a word, predict the next one
        mask = captions_out != self._null  # padding is not predicted
        raise NotImplementedError("CaptioningRNN.loss: five layers forward, and back")

    def sample(self, features, max_length=30):
        """Caption images: at each step, the word with the highest score.

        The first input word is <START>; each later one is the word that was just chosen. Compute one step at
        a time: call the step functions, not the sequence functions. An LSTM's cell state starts at zero.

        Parameters
        ----------
        features : (N, D)
        max_length : int

        Returns
        -------
        captions : (N, max_length) integers
            The chosen words, without <START>.
        """
        captions = np.full((len(features), max_length), self._null, np.int32)
        raise NotImplementedError("CaptioningRNN.sample: h0 from the features, then max_length steps")
