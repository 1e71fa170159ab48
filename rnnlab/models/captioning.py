"""CaptioningRNN: image features to sentences, composed of parts.

    image, state = encoder(features)
    words        = embedding(tokens)
    hidden       = decoder(words, image, state)
    scores       = output(hidden)               at real tokens only
    loss         = softmax cross-entropy

How the image enters is the choice of encoder and decoder; the cell is the choice of the decoder's arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rnnlab import decoding
from rnnlab.layers.checks import check_probability, check_tokens
from rnnlab.layers.recurrence import as_rows
from rnnlab.layers.softmax import loss_divisor
from rnnlab.models.cells import Array, Cell, cell_for
from rnnlab.models.decoders import FactoredDecoder, FirstInputDecoder, RecurrentDecoder
from rnnlab.models.encoders import ImageVectorEncoder, InitialStateEncoder
from rnnlab.models.initialisation import initialise
from rnnlab.models.scoring import output_loss, output_nll
from rnnlab.models.words import LinearOutput, WordEmbedding
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters

IMAGE_INPUTS = ("initial_state", "first_input", "every_step", "second_layer")


class _Teaching(NamedTuple):
    """A batch of captions as teacher forcing wants it."""

    inputs: Array  # (N, T) tokens that are read
    lengths: Array  # (N,) up to the last real target
    real: Array  # (M,) places of the real targets in an (N T,) array
    targets: Array  # (M,) the tokens there


class CaptioningRNN:
    """A recurrent network that captions images from their feature vectors.

    Parameters
    ----------
    word_to_idx : mapping of str to int
        The vocabulary, V words. Padding is ``<NULL>``; decoding needs ``<START>`` and ``<END>``.
    input_dim : int
        D, numbers in a feature vector.
    wordvec_dim : int
        W, numbers in a word vector (and in the image vector, where the image is an input).
    hidden_dim : int
        H, units of the recurrent layer (of each of the two with ``image_input="second_layer"``).
    cell_type : "rnn", "lstm", "gru" or "simplified_gru"
    dtype : dtype
        float32 for work, float64 for gradient checks.
    image_input : str, keyword only, as are all below
        How the image enters: as the "initial_state"; as the "first_input", before the first word (NIC); at
        "every_step", beside the words (LRCN); or into the "second_layer" of two (LRCN, factored).
    state_activation : "none" or "tanh"
        After the projection of the features, with ``image_input="initial_state"``.
    project_cell : bool
        Whether the LSTM's cell state starts at a projection of its own rather than at zero, likewise.
    feature_dropout, word_dropout, output_dropout : float in [0, 1)
        Probability of dropping a unit of the features, of the word vectors, of the hidden states that are
        scored.
    loss_average : "batch" or "token"
        The loss is the sum over all real tokens over the batch size (as in the course) or over their number.
    initialisation : "course" or "uniform"
        Weights from N(0, 1) / sqrt(fan-in) and word vectors from N(0, 1) / 100, or all from U(-s, s), s =
        ``init_scale``. Biases are zero.
    init_scale : float > 0
        See above; 0.08 is LRCN's.
    rng : numpy Generator or seed
        Where the initial parameters come from.

    Attributes
    ----------
    params : Parameters
        By name: W_proj, b_proj, W_embed, Wx, Wh, b, W_vocab, b_vocab for the course's model.

    Raises
    ------
    ValueError
        If an option does not fit; the error names it.
    """

    def __init__(
        self,
        word_to_idx: Mapping[str, int],
        input_dim: int = 512,
        wordvec_dim: int = 128,
        hidden_dim: int = 128,
        cell_type: str = "rnn",
        dtype: DTypeLike = np.float32,
        *,
        image_input: str = "initial_state",
        state_activation: str = "none",
        project_cell: bool = False,
        feature_dropout: float = 0.0,
        word_dropout: float = 0.0,
        output_dropout: float = 0.0,
        loss_average: str = "batch",
        initialisation: str = "course",
        init_scale: float = 0.08,
        rng: np.random.Generator | int = 0,
    ) -> None:
        self._options = {
            "word_to_idx": dict(word_to_idx),
            "input_dim": input_dim,
            "wordvec_dim": wordvec_dim,
            "hidden_dim": hidden_dim,
            "cell_type": cell_type,
            "dtype": np.dtype(dtype).name,
            "image_input": image_input,
            "state_activation": state_activation,
            "project_cell": project_cell,
            "feature_dropout": feature_dropout,
            "word_dropout": word_dropout,
            "output_dropout": output_dropout,
            "loss_average": loss_average,
            "initialisation": initialisation,
            "init_scale": init_scale,
        }

        _check_options(self._options)
        self.word_to_idx = dict(word_to_idx)
        self.idx_to_word = {index: word for word, index in self.word_to_idx.items()}
        self.null_token = self.word_to_idx["<NULL>"]
        self.start_token: Any = self.word_to_idx.get("<START>")  # None where the vocabulary has none
        self.end_token: Any = self.word_to_idx.get("<END>")
        self.input_dim, self.cell_type, self.loss_average = input_dim, cell_type, loss_average

        V, cell = len(self.word_to_idx), cell_for(cell_type)
        self.decoder = _decoder(cell, image_input, wordvec_dim, hidden_dim)
        self.encoder = _encoder(cell, self.decoder.states, self._options)
        self.embedding = WordEmbedding(V, wordvec_dim, dropout=word_dropout)
        self.output = LinearOutput(hidden_dim, V, dropout=output_dropout)

        shapes: dict[str, tuple[int, ...]] = {}
        for part in (self.encoder, self.embedding, self.decoder, self.output):
            shapes |= part.shapes()
        self.params = Parameters(shapes, dtype)
        initialise(self.params, initialisation, scale=init_scale, rng=np.random.default_rng(rng))

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the parameters, and of all arithmetic."""
        return self.params.dtype

    def config(self) -> dict[str, Any]:
        """The constructor's arguments, fit for JSON: :meth:`from_config` makes a model of the same shape."""
        return {**self._options, "word_to_idx": dict(self.word_to_idx)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, rng: np.random.Generator | int = 0) -> CaptioningRNN:
        """A model with fresh parameters from what :meth:`config` gave."""
        return cls(**config, rng=rng)

    def __repr__(self) -> str:
        names = ("cell_type", "image_input", "input_dim", "wordvec_dim", "hidden_dim")
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        sizes = f"{len(self.word_to_idx):,} words, {self.params.flat.size:,} {self.dtype} parameters"
        return f"CaptioningRNN({options}; {sizes})"

    # ------------------------------------------------------------------ training

    def loss(
        self,
        features: Array,
        captions: Array,
        *,
        rng: np.random.Generator | None = None,
        grads: Parameters | None = None,
    ) -> tuple[float, Parameters]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        Parameters
        ----------
        features : (N, D)
        captions : (N, L) integers in [0, V)
            The decoder reads all but the last token of a row and is to predict all but the first; ``<NULL>``
            is not scored.
        rng : numpy Generator, optional
            Where dropout's noise comes from; no noise without it.
        grads : Parameters, optional
            Overwritten with the gradients; fresh ones are made if left out.

        Returns
        -------
        loss : float
        grads : Parameters

        Raises
        ------
        IndexError
            If a token is out of range.
        ValueError, TypeError
            If a shape or a dtype does not fit.
        """
        features, taught = self._batch("loss", features, captions)
        params = self.params
        if grads is None:
            grads = params.zeros_like()
        else:
            grads.flat[...] = 0

        (image, state), encoded = self.encoder.forward(params, features, rng=rng)
        words, embedded = self.embedding.forward(params, taught.inputs, rng=rng)
        hidden, decoded = self.decoder.forward(params, words, image, state, taught.lengths)
        loss, dhidden = self._score(hidden, taught, grads, rng)
        del hidden  # its memory serves the backward
        dwords, dimage, dstate = self.decoder.backward(dhidden, decoded, grads)
        self.embedding.backward(dwords, embedded, grads)
        self.encoder.backward(dimage, dstate, encoded, grads)
        return loss, grads

    def _score(
        self, hidden: Array, taught: _Teaching, grads: Parameters, rng: np.random.Generator | None
    ) -> tuple[float, Array]:
        """The loss of hidden states and its gradient, both (N, T, H)."""
        divisor = loss_divisor("loss", self.loss_average, hidden.shape[0], taught.real.size)
        loss, dscored = output_loss(
            self.output,
            self.params,
            _real_rows(hidden, taught),
            taught.targets,
            divisor=divisor,
            grads=grads,
            rng=rng,
        )
        dhidden = ops_for(hidden).zeros(hidden.shape, hidden.dtype)
        as_rows(dhidden)[taught.real] = dscored
        return loss, dhidden

    def nll(self, features: Array, captions: Array) -> tuple[float, int]:
        """The negative log-likelihood of a batch, without noise and without gradients.

        Parameters
        ----------
        features : (N, D)
        captions : (N, L) integers in [0, V)

        Returns
        -------
        total : float
            Summed over all real tokens, in nats.
        tokens : int
            Their number. exp(total / tokens) is the perplexity.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        features, taught = self._batch("nll", features, captions)
        params = self.params
        (image, state), _ = self.encoder.forward(params, features)
        words, _ = self.embedding.forward(params, taught.inputs)
        hidden, _ = self.decoder.forward(params, words, image, state, taught.lengths)
        return output_nll(self.output, params, _real_rows(hidden, taught), taught.targets), taught.real.size

    def _batch(self, function: str, features: Array, captions: Array) -> tuple[Array, _Teaching]:
        features = self._features(function, features)
        captions = np.asarray(captions)
        if captions.ndim != 2 or captions.shape[0] != features.shape[0] or captions.shape[1] < 2:
            raise ValueError(
                f"CaptioningRNN.{function}: captions has shape {captions.shape}, "
                f"expected (N, L) with N = {features.shape[0]} as features and L of at least 2"
            )
        check_tokens(f"CaptioningRNN.{function}", "captions", captions, len(self.word_to_idx))
        targets = captions[:, 1:]
        real = targets != self.null_token
        steps = np.arange(1, real.shape[1] + 1)
        lengths = (real * steps).max(axis=1)
        T = int(lengths.max(initial=0))
        places = np.flatnonzero(real[:, :T])
        return features, _Teaching(captions[:, :T], lengths, places, targets[:, :T].reshape(-1)[places])

    def _features(self, function: str, features: Array) -> Array:
        features = np.asarray(features, dtype=self.dtype)
        if features.ndim != 2 or features.shape[1] != self.input_dim:
            raise ValueError(
                f"CaptioningRNN.{function}: features has shape {features.shape}, "
                f"expected (N, D) with D = {self.input_dim}"
            )
        return features

    # ------------------------------------------------------------------ decoding

    def start(self, features: Array) -> Any:
        """The decoding state of each row of features (N, D), before <START> is read."""
        features = self._features("start", features)
        (image, state), _ = self.encoder.forward(self.params, features)
        return self.decoder.start(self.params, image, state)

    def advance(self, state: Any, tokens: Array) -> tuple[Array, Any]:
        """Read a token a row, (N,); return log-probabilities (N, V) of the next, and the state then."""
        words, _ = self.embedding.forward(self.params, tokens)
        hidden, state = self.decoder.advance(self.params, words, state)
        scores, _ = self.output.forward(self.params, hidden)
        return ops_for(scores).log_softmax(scores), state

    def sample(self, features: Array, max_length: int = 30) -> Array:
        """Caption images greedily.

        Parameters
        ----------
        features : (N, D)
        max_length : int
            The most tokens of a caption, <END> included.

        Returns
        -------
        captions : (N, max_length) int32
            Each row a caption, then ``<END>``, then ``<NULL>``. Searches of other kinds are in
            :mod:`rnnlab.decoding`.

        Raises
        ------
        ValueError
            If the features do not fit, or the vocabulary has no ``<START>`` or ``<END>``.
        """
        found = decoding.greedy(self, features, max_length=max_length)
        captions = np.full((len(found), max_length), self.null_token, np.int32)
        for row, (hypothesis,) in zip(captions, found, strict=True):
            row[: len(hypothesis.tokens)] = hypothesis.tokens
            if hypothesis.finished and len(hypothesis.tokens) < max_length:
                row[len(hypothesis.tokens)] = self.end_token
        return captions


def _check_options(options: Mapping[str, Any]) -> None:
    """Check what the parts do not."""
    for name in ("input_dim", "wordvec_dim", "hidden_dim"):
        if options[name] < 1:
            raise ValueError(f"CaptioningRNN: {name} is {options[name]}, expected at least 1")
    for name in ("feature_dropout", "word_dropout", "output_dropout"):
        check_probability("CaptioningRNN", name, options[name])
    if options["dtype"] not in ("float32", "float64"):
        raise ValueError(f"CaptioningRNN: dtype is {options['dtype']}, expected float32 or float64")
    loss_divisor("CaptioningRNN", options["loss_average"], 1, 1)
    if "<NULL>" not in options["word_to_idx"]:
        raise ValueError("CaptioningRNN: word_to_idx has no <NULL>, the token of padding")


def _encoder(
    cell: Cell, decoder_states: int, options: Mapping[str, Any]
) -> InitialStateEncoder | ImageVectorEncoder:
    image_input, activation = options["image_input"], options["state_activation"]
    dropout = options["feature_dropout"]
    if image_input == "initial_state":
        return InitialStateEncoder(
            options["input_dim"],
            options["hidden_dim"],
            cell,
            activation=activation,
            project_cell=options["project_cell"],
            dropout=dropout,
        )
    if activation != "none" or options["project_cell"]:
        raise ValueError(
            f"CaptioningRNN: state_activation is {activation!r} and project_cell {options['project_cell']}, "
            f"expected 'none' and False: with image_input={image_input!r} the state starts at zero"
        )
    return ImageVectorEncoder(
        options["input_dim"], options["wordvec_dim"], options["hidden_dim"], decoder_states, dropout=dropout
    )


def _decoder(
    cell: Cell, image_input: str, word_dim: int, hidden_dim: int
) -> RecurrentDecoder | FirstInputDecoder | FactoredDecoder:
    if image_input == "initial_state":
        return RecurrentDecoder(cell, word_dim, hidden_dim)
    if image_input == "first_input":
        return FirstInputDecoder(cell, word_dim, hidden_dim)
    if image_input == "every_step":
        return RecurrentDecoder(cell, word_dim, hidden_dim, image_dim=word_dim)
    if image_input == "second_layer":
        return FactoredDecoder(cell, word_dim, hidden_dim, image_dim=word_dim)
    raise ValueError(
        f"CaptioningRNN: image_input is {image_input!r}, expected one of {', '.join(IMAGE_INPUTS)}"
    )


def _real_rows(hidden: Array, taught: _Teaching) -> Array:
    """The hidden states that are scored, (N, T, H) -> (M, H)."""
    ops = ops_for(hidden)
    out = ops.empty((taught.real.size, hidden.shape[2]), hidden.dtype)
    ops.take(as_rows(hidden), taught.real, out)
    return out
