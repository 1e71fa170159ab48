"""CaptioningRNN: image features to sentences, composed of parts.

How the image enters is the choice of encoder and decoder; the cell is the choice of the decoder's arithmetic;
:mod:`rnnlab.models.encoder_decoder` is how the parts work together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnnlab import decoding
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.models.base import Batch, arguments_of
from rnnlab.models.encoder_decoder import EncoderDecoder
from rnnlab.models.parts.captioning import IMAGE_INPUTS, check_options, decoder_of, encoder_of, output_of
from rnnlab.models.parts.cells import cell_for
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.reconstruction import decoder_reconstructor
from rnnlab.parameters import Parameters
from rnnlab.types import Array

__all__ = ["IMAGE_INPUTS", "CaptioningRNN"]

Features = Array | tuple[Array, Array]


class CaptioningRNN(EncoderDecoder):
    """A recurrent network that captions images from their features.

    Parameters
    ----------
    word_to_idx : mapping of str to int
        The vocabulary, V words. Padding is ``<NULL>``; decoding needs ``<START>`` and ``<END>``.
    input_dim : int
        D, numbers in a feature vector (of an image, or with ``attention`` of each of its regions).
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
    attention : None, "additive", "dot" or "bilinear"
        Attend to the L regions of the image, whose features are (N, L, D), with scores of this kind; the mean
        of the regions takes the image vector's place in the initial state (Xu et al. 2015).
    global_dim : int, optional
        With ``attention``: G, numbers in a global vector of the image, which then gives the initial state
        instead of the mean of the regions. Features are a tuple of regions (N, L, D) and vectors (N, G).
    attention_dim : int, optional
        Units of additive scores, ``hidden_dim`` if left out.
    selector : bool
        Whether a gate scales the context of the regions (Xu et al. 2015, section 4.2.1).
    target_attention : bool
        Whether to attend to the decoder's own past states (Xia et al. 2017), with or without ``attention``,
        with scores of its kind, or additive ones.
    output : "linear" or "deep"
        Scores from the hidden state alone, or through a layer that also sees the contexts and the word that
        was read.
    doubly_stochastic : float >= 0
        The weight of the loss that asks for every region to be attended to (Xu et al. 2015, eq. 14).
    reconstruction : float >= 0
        The weight of ARNet's loss, that each hidden state of the decoder tells the one before it (X. Chen et
        al. 2018, eq. 9); the mean over the batch whatever ``loss_average`` is. Not part of :meth:`nll`.
    reconstructor_dim : int, optional
        Units of ARNet, ``hidden_dim`` if left out. If it is given, there is an ARNet even where its weight
        begins at 0; the weight is also an attribute, which may be changed between two calls of :meth:`loss`.
    detach_target : bool
        Whether the states that ARNet reconstructs get no gradient from it (in the paper they do).
    label_smoothing : float in [0, 1)
        The share of a token's probability that the loss spreads over all words (Szegedy et al. 2016).
    loss_average : "batch" or "token"
        The loss is the sum over all real tokens over the batch size (as in the course) or over their number.
    initialisation : "course" or "uniform"
        Weights from N(0, 1) / sqrt(fan-in) and word vectors from N(0, 1) / 100, or all from U(-s, s), s =
        ``init_scale``. Biases are zero.
    init_scale : float > 0
        See above; 0.08 is LRCN's.
    regularisation : mapping, optional
        Noise in the recurrence: ``zoneout_h``, ``zoneout_c``, ``recurrent_dropout``,
        ``recurrent_dropout_on``, ``weight_dropout``, see :class:`rnnlab.layers.Regularisation`.
    rng : numpy Generator or seed
        Where the initial parameters come from.
    device : str
        Where the parameters are, and all arithmetic is done: "cpu", "gpu" or "gpu:N"; see :meth:`to`.

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
        attention: str | None = None,
        global_dim: int | None = None,
        attention_dim: int | None = None,
        selector: bool = False,
        target_attention: bool = False,
        output: str = "linear",
        doubly_stochastic: float = 0.0,
        reconstruction: float = 0.0,
        reconstructor_dim: int | None = None,
        detach_target: bool = False,
        label_smoothing: float = 0.0,
        loss_average: str = "batch",
        initialisation: str = "course",
        init_scale: float = 0.08,
        regularisation: Mapping[str, Any] | Regularisation | None = None,
        rng: np.random.Generator | int = 0,
        device: str = "cpu",
    ) -> None:
        self._options = arguments_of(locals())
        check_options(self._options)
        self.input_dim, self.cell_type, self.attention_score = input_dim, cell_type, attention
        self.global_dim = global_dim
        V, cell = len(word_to_idx), cell_for(cell_type, Regularisation(**self._options["regularisation"]))
        decoder = decoder_of(cell, self._options)
        super().__init__(
            word_to_idx,
            encoder_of(cell, decoder.states, self._options),
            WordEmbedding(V, wordvec_dim, dropout=word_dropout),
            decoder,
            output_of(decoder.context_dim, V, self._options),
            loss_average=loss_average,
            label_smoothing=label_smoothing,
            doubly_stochastic=doubly_stochastic,
            reconstruction=reconstruction,
            reconstructor=decoder_reconstructor("CaptioningRNN", self._options),
            initialisation=initialisation,
            init_scale=init_scale,
            dtype=dtype,
            rng=rng,
            device=device,
        )

    def __repr__(self) -> str:
        names = ["cell_type", "image_input", "input_dim", "wordvec_dim", "hidden_dim"]
        names += [name for name in ("attention", "target_attention") if self._options[name]]
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        sizes = f"{len(self.word_to_idx):,} words, {self.params.flat.size:,} {self.dtype} parameters"
        return f"CaptioningRNN({options}; {sizes})"

    # ------------------------------------------------------------------ training

    def loss(
        self,
        features: Features,
        captions: Array,
        *,
        rng: np.random.Generator | None = None,
        grads: Parameters | None = None,
        sampling: float = 0.0,
        part_of: Batch | None = None,
    ) -> tuple[float, Parameters]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        Parameters
        ----------
        features : (N, D); (N, L, D) with ``attention``; a tuple of that and (N, G) with ``global_dim``
        captions : (N, L) integers in [0, V)
            The decoder reads all but the last token of a row and is to predict all but the first; ``<NULL>``
            is not scored.
        rng : numpy Generator, optional
            Where the noise of dropout and of the recurrence comes from; none without it.
        grads : Parameters, optional
            Overwritten with the gradients; fresh ones are made if left out.
        sampling : float in [0, 1]
            Scheduled sampling: the probability that a word which the decoder reads, any but the first, is
            drawn from the model's own distribution (:mod:`rnnlab.models.parts.scheduled_sampling`). Needs ``rng``.
        part_of : (int, int), optional
            The examples and the tokens of the batch that this one is a part of. All averages are then that
            batch's, and gradients are added into ``grads``: the parts' losses and gradients add up to its.

        Returns
        -------
        loss : float, or an array () on the model's device, which nobody has waited for
        grads : Parameters

        Raises
        ------
        IndexError
            If a token is out of range.
        ValueError, TypeError
            If a shape or a dtype does not fit.
        """
        features, rows = self._inputs("loss", features)
        taught = self._taught("loss", "captions", captions, rows)
        return self._loss(features, taught, rng, grads, sampling, part_of)

    def nll(self, features: Features, captions: Array) -> tuple[float, int]:
        """The negative log-likelihood of a batch, without noise and without gradients.

        Parameters
        ----------
        features, captions
            As of :meth:`loss`.

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
        features, rows = self._inputs("nll", features)
        return self._nll(features, self._taught("nll", "captions", captions, rows))

    def align(self, features: Features, captions: Array) -> Array:
        """The attention to the regions when each token of a caption is to be written, under teacher forcing.

        Parameters
        ----------
        features : (N, L, D), or a tuple of that and (N, G) with ``global_dim``
        captions : (N, M) integers in [0, V)

        Returns
        -------
        weights : (N, T, L)
            Row t is of the token ``captions[:, t + 1]``. T is that of the longest caption, its <START> not
            counted; past its own end a caption's weights are zero.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`; ValueError also if the model does not attend to regions.
        """
        features, rows = self._inputs("align", features)
        return self._align(features, self._taught("align", "captions", captions, rows))

    def _inputs(self, function: str, features: Features) -> tuple[Features, int]:
        """Features that were checked, and their rows."""
        function, axes = (
            f"CaptioningRNN.{function}: features",
            "(N, L, D)" if self.attention_score else "(N, D)",
        )
        if self.global_dim is None:
            features = self._array(function, features, axes, self.input_dim)
            return features, len(features)
        if not isinstance(features, tuple) or len(features) != 2:
            raise TypeError(
                f"{function} is a {type(features).__name__}, expected a tuple of arrays {axes} and (N, G)"
            )
        regions = self._array(f"{function}[0]", features[0], axes, self.input_dim)
        vectors = self._array(f"{function}[1]", features[1], "(N, G)", self.global_dim)
        if len(regions) != len(vectors):
            raise ValueError(
                f"{function}[1] has shape {vectors.shape}, expected N = {len(regions)} as features[0]"
            )
        return (regions, vectors), len(regions)

    def _padded_inputs(self, features: Features) -> dict[str, Array]:
        arrays = features if isinstance(features, tuple) else (features,)
        return {f"features{k}": array for k, array in enumerate(arrays)}

    def _inputs_of_padded(self, arrays: Mapping[str, Array]) -> Features:
        if self.global_dim is None:
            return arrays["features0"]
        return arrays["features0"], arrays["features1"]

    def _array(self, name: str, features: Any, axes: str, numbers: int) -> Array:
        if isinstance(features, tuple):
            raise TypeError(f"{name} is a tuple, expected an array {axes}: the model has no global_dim")
        array = self._floats(name, features)
        if array.ndim != axes.count(",") + 1 or array.shape[-1] != numbers or not all(array.shape[1:]):
            raise ValueError(f"{name} has shape {array.shape}, expected {axes} with {axes[-2]} = {numbers}")
        return array

    # ------------------------------------------------------------------ decoding

    def start(self, features: Features) -> Any:
        """The decoding state of each image before <START> is read; features as of :meth:`loss`."""
        return self._start(self._inputs("start", features)[0])

    def sample(self, features: Features, max_length: int = 30) -> Array:
        """Caption images greedily.

        Parameters
        ----------
        features
            As of :meth:`loss`.
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
