"""CaptioningRNN: captions from image features.

The options choose the encoder, the decoder, its cell and the output layer (:mod:`rnnlab.models.parts`).
:mod:`rnnlab.models.encoder_decoder` computes the loss and its gradients from these parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab import decoding
from rnnlab.decoding.token_rows import token_rows
from rnnlab.layers.attention.contexts import Delay
from rnnlab.models.base import (
    BatchSize,
    RegularisationOptions,
    ReviewerChoice,
    announces_gradients,
    checked_options,
)
from rnnlab.models.encoder_decoder import EncoderDecoder
from rnnlab.models.input_gradients import CaptioningGradients
from rnnlab.models.parts.features import Features, checked_features, features_of, named_arrays
from rnnlab.models.parts.image_encoders import (
    IMAGE_INPUTS,
    ImageInput,
    StateActivation,
    build_image_encoder,
)
from rnnlab.models.parts.initialisation import INIT_SCALE
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.options import (
    AttentionScore,
    CellType,
    Count,
    FloatType,
    Initialisation,
    LossAverage,
    NotNegative,
    Number,
    Output,
    Positive,
    Probability,
)
from rnnlab.parameters import Parameters
from rnnlab.types import Array

__all__ = ["IMAGE_INPUTS", "CaptioningRNN"]


class CaptioningRNN(EncoderDecoder):
    """A recurrent network that captions images from their features.

    Parameters
    ----------
    word_to_idx : mapping of str to int
        The vocabulary, V words. Padding is ``<NULL>``; decoding needs ``<START>`` and ``<END>``.
    input_dim : int
        D, size of a feature vector (of an image, or with ``attention`` of each of its regions).
    wordvec_dim : int
        W, size of a word vector (and of the image vector, where the image is an input).
    hidden_dim : int
        H, units of each recurrent layer.
    cell_type : "rnn", "lstm", "gru", "simplified_gru" or another name
        The recurrent cell: a built-in one, a registered one, or "package.module:Object".
    dtype : dtype
        The dtype of all parameters and arithmetic: float32 for training, float64 for gradient checks.
    image_input : str
        How the image enters: as the "initial_state"; as the "first_input", before the first word (NIC); at
        "every_step", concatenated with the word (LRCN); or at every step into the "second_layer" instead of
        the first (LRCN, factored).
    decoder_layers : int, optional
        Number of stacked recurrent layers, 1 if left out, or 2 with ``image_input="second_layer"``. Each
        further layer starts at zero and reads the hidden states of the layer below; the output reads those
        of the last one. Attention belongs to the first layer.
    state_activation : "none" or "tanh"
        Activation of the features' projection to the initial state, with ``image_input="initial_state"``.
    project_cell : bool
        Whether an LSTM's cell state starts at a projection of the features rather than at zero, with
        ``image_input="initial_state"``.
    feature_dropout : float in [0, 1)
        Probability of dropping an element of the features.
    word_dropout : float in [0, 1)
        Probability of dropping an element of a word vector.
    layer_dropout : float in [0, 1)
        Probability of dropping an element of the hidden states that layers 2 and higher read. Must be 0 with
        a single layer.
    output_dropout : float in [0, 1)
        Probability of dropping an element of the vectors that are scored: the hidden states; with
        ``output="concat"`` the words and contexts as well; with ``output="deep"`` the units of the deep
        layer.
    attention : None, "additive", "dot" or "bilinear"
        Score of the attention to the L regions of the image, or None for no attention. With attention,
        features are (N, L, D), and the mean of the regions gives the initial state (Xu et al. 2015).
    global_dim : int, optional
        With ``attention``: G, size of a global vector of the image, which then gives the initial state
        instead of the mean of the regions. Features are a tuple of regions (N, L, D) and vectors (N, G).
    attention_dim : int, optional
        Units of additive scores, those of a reviewer included; ``hidden_dim`` if left out. An error with
        other scores, which have no units.
    selector : bool
        Whether a gate scales the context of the regions (Xu et al. 2015, section 4.2.1).
    target_attention : bool
        Whether to attend to the decoder's own past states (Xia et al. 2017), with the score of ``attention``,
        or the additive one without ``attention``.
    target_delay : int, optional
        At least 2, with ``target_attention``: the decoder does not attend to its past, but reads the state
        this many steps back (Xia et al. 2017, section 3.4).
    reviewer : mapping, optional
        With ``attention``: a Review Net or Recurrent Nested Model between regions and decoder, with
        ``blocks``, ``steps``, ``inter``, ``intra`` and ``dropout``; see
        :class:`~rnnlab.models.parts.reviewer.ReviewerOptions`. The decoder then attends to thought vectors.
    output : "linear", "concat" or "deep"
        What the scores are computed from: the hidden state alone; the hidden state, the input word and the
        contexts, by one affine map (Xia et al. 2017, eq. 11); or the same through a hidden layer (Xu et al.
        2015, eq. 7).
    tied_embeddings : bool
        Whether the word vectors are also the weight of the scores, W_vocab = W_embed^T (Press and Wolf
        2017). With the "linear" output this needs ``hidden_dim`` equal to ``wordvec_dim``; an error with
        "concat".
    doubly_stochastic : float >= 0
        Weight of the loss that encourages attention to every region (Xu et al. 2015, eq. 14). With a
        ``reviewer``, the loss applies to the thought vectors, which the decoder then attends to.
    reconstruction : float >= 0
        Weight of ARNet's loss, which reconstructs each hidden state of the decoder from the next one (X. Chen
        et al. 2018, eq. 9), a mean over the batch whatever ``loss_average`` is. In eq. 9 the weight is
        relative to the likelihood of a sentence: divide it by the mean number of tokens of a caption where
        ``loss_average`` is "token". Not part of :meth:`nll`. It is also an attribute, which may change
        between two calls of :meth:`loss`.
    reconstructor_dim : int, optional
        Units of ARNet, ``hidden_dim`` if left out. If it is given, the model has an ARNet even where the
        weight of its loss is 0.
    detach_target : bool
        Whether the states that ARNet reconstructs are treated as constants; in the paper they are not. Needs
        an ARNet.
    discriminative : float >= 0
        Weight of discriminative supervision (Jiang, Ma and Lu 2020, eqs 9-10), which needs a ``reviewer``:
        thought vectors predict the most frequent words of a sentence, by a multi-label margin loss that is a
        mean over the batch. Not part of :meth:`nll`. It is also an attribute, which may change between two
        calls of :meth:`loss`.
    discriminative_words : int, optional
        k, the number of words that it predicts; by default 1,000, or the whole vocabulary if that is smaller.
        They are the first words after the special ones of ``word_to_idx``, which should be sorted by
        frequency. If it is given, the model has the word scores even if the weight is 0.
    label_smoothing : float in [0, 1)
        Share of a token's probability that the loss spreads over all words (Szegedy et al. 2016).
    loss_average : "batch" or "token"
        Divide the loss, a sum over all real tokens, by the batch size (as cs231n does) or by their number.
    forget_bias : float
        Initial value of the biases of an LSTM's forget gates. A positive value keeps the gates open at first,
        so that a state is remembered for longer (Gers et al. 2000; Jozefowicz et al. 2015 recommend 1). Must
        be 0 for a cell without a forget gate.
    initialisation : "course" or "uniform"
        "course": weights from N(0, 1) / sqrt(fan-in), word vectors from N(0, 1) / 100, or with
        ``tied_embeddings`` from N(0, 1) / sqrt(wordvec_dim). "uniform": all from U(-init_scale, init_scale).
        Biases start at zero.
    init_scale : float > 0
        Bound of the "uniform" initialisation; 0.08 is LRCN's. Other values need "uniform".
    regularisation : mapping, optional
        Dropout and zoneout inside the recurrence: ``zoneout_h``, ``zoneout_c``, ``recurrent_dropout``,
        ``recurrent_dropout_on``, ``weight_dropout``; see :class:`rnnlab.layers.Regularisation`.
    rng : numpy Generator or seed
        Draws the initial parameters.
    device : str
        Where the parameters are and all arithmetic is done: "cpu", "gpu" or "gpu:N"; see :meth:`to`.

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
        input_dim: Count = 512,
        wordvec_dim: Count = 128,
        hidden_dim: Count = 128,
        cell_type: CellType = "rnn",
        dtype: FloatType = np.float32,
        *,
        image_input: ImageInput = "initial_state",
        decoder_layers: Count | None = None,
        state_activation: StateActivation = "none",
        project_cell: bool = False,
        feature_dropout: Probability = 0.0,
        word_dropout: Probability = 0.0,
        layer_dropout: Probability = 0.0,
        output_dropout: Probability = 0.0,
        attention: AttentionScore | None = None,
        global_dim: Count | None = None,
        attention_dim: Count | None = None,
        selector: bool = False,
        target_attention: bool = False,
        target_delay: Delay | None = None,
        reviewer: ReviewerChoice = None,
        output: Output = "linear",
        tied_embeddings: bool = False,
        doubly_stochastic: NotNegative = 0.0,
        reconstruction: NotNegative = 0.0,
        reconstructor_dim: Count | None = None,
        detach_target: bool = False,
        discriminative: NotNegative = 0.0,
        discriminative_words: Count | None = None,
        label_smoothing: Probability = 0.0,
        loss_average: LossAverage = "batch",
        forget_bias: Number = 0.0,
        initialisation: Initialisation = "course",
        init_scale: Positive = INIT_SCALE,
        regularisation: RegularisationOptions = None,
        rng: np.random.Generator | int = 0,
        device: str = "cpu",
    ) -> None:
        options = checked_options(CaptioningRNN, locals())
        self.input_dim, self.cell_type, self.attention_score = input_dim, cell_type, attention
        self.global_dim = global_dim
        super().__init__(options, word_to_idx, memory_dim=input_dim, rng=rng, device=device)

    def __repr__(self) -> str:
        names = ["cell_type", "image_input", "input_dim", "wordvec_dim", "hidden_dim"]
        more = ("decoder_layers", "attention", "target_attention", "target_delay", "tied_embeddings")
        names += [name for name in more if self._options[name]]
        names += ["reviewer"] if self.reviewer.blocks else []
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        sizes = f"{len(self.word_to_idx):,} words, {self.params.flat.size:,} {self.dtype} parameters"
        return f"CaptioningRNN({options}; {sizes})"

    # ------------------------------------------------------------------ training

    @announces_gradients
    def loss(
        self,
        features: Features,
        captions: Array,
        *,
        rng: np.random.Generator | None = None,
        grads: Parameters | None = None,
        sampling: float = 0.0,
        part_of: BatchSize | None = None,
        sentence_weights: Array | None = None,
        sentence_lengths: Array | None = None,
        input_gradients: bool = False,
    ) -> tuple[Any, ...]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        Parameters
        ----------
        features : (N, D); (N, L, D) with ``attention``; a tuple of that and (N, G) with ``global_dim``
        captions : (N, L) integers in [0, V), or (N, S, L)
            The decoder reads all tokens of a row except the last and predicts all except the first.
            ``<NULL>`` is not scored. S captions of each image are N S examples; each image is encoded once.
        rng : numpy Generator, optional
            Draws the masks of dropout and zoneout. Without it nothing is dropped, and zoneout takes its
            expectation, as in inference.
        grads : Parameters, optional
            Overwritten with the gradients. By default they are new arrays.
        sampling : float in [0, 1]
            Scheduled sampling: the probability that the decoder reads a word drawn from its own distribution
            instead of the true one (:mod:`rnnlab.models.parts.scheduled_sampling`). Needs ``rng``.
        part_of : (int, int), optional
            The numbers of examples and tokens of the batch that this one is a part of. Losses are then
            averaged over that batch, and gradients are added into ``grads``, so that the losses and gradients
            of the parts add up to those of the batch.
        sentence_weights : (N,) or (N, S) floats, optional
            Factors of the sentences' losses, which may be negative. The sum over the tokens is divided by the
            same number as without them. They weight the cross-entropy only, not the other losses.
        sentence_lengths : (N,) or (N, S) integers, optional
            The number of tokens after the first that are scored in each row, including any ``<NULL>``. The
            rest of the row is padding for all losses. By default the padding begins after the last token
            that is not ``<NULL>``, and no ``<NULL>`` is scored.
        input_gradients : bool
            Whether to return the gradients of the inputs as well.

        Returns
        -------
        loss : float, or on a GPU an array () whose computation may still be running
        grads : Parameters
        inputs : CaptioningGradients
            Only with ``input_gradients``. See :mod:`rnnlab.models.input_gradients`.

        Raises
        ------
        IndexError
            If a token is out of range.
        ValueError, TypeError
            If a shape or a dtype is wrong.
        """
        features, forced = self._batch(
            "loss",
            features,
            captions,
            name="captions",
            sentence_weights=sentence_weights,
            sentence_lengths=sentence_lengths,
        )
        return self._loss(features, forced, rng, grads, sampling, part_of, input_gradients)

    def nll(self, features: Features, captions: Array) -> tuple[float, int]:
        """The negative log-likelihood of a batch, as in inference, without gradients.

        Parameters
        ----------
        features, captions
            As in :meth:`loss`.

        Returns
        -------
        total : float
            Summed over all real tokens, in nats.
        tokens : int
            Number of real tokens. exp(total / tokens) is the perplexity.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        return self._nll(*self._batch("nll", features, captions, name="captions"))

    def align(self, features: Features, captions: Array) -> Array:
        """The attention weights over the regions at each token of a caption, under teacher forcing.

        Parameters
        ----------
        features : (N, L, D), or a tuple of that and (N, G) with ``global_dim``
        captions : (N, M) integers in [0, V)

        Returns
        -------
        weights : (N, T, L)
            Row t holds the weights for predicting ``captions[:, t + 1]``. T is the length of the longest
            caption without its <START>. Past the end of a caption its weights are zero.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`; ValueError also if the model does not attend to regions.
        """
        return self._align(*self._batch("align", features, captions, name="captions", several=False))

    def _build_encoder(self, recurrence: Recurrence, num_states: int) -> Any:
        return build_image_encoder(num_states, self._options)

    def _inputs(self, function: str, features: Features) -> tuple[Features, int]:
        """The checked features, and their number of rows."""
        return checked_features(
            f"CaptioningRNN.{function}: features",
            features,
            self._floats,
            regions=self.attention_score is not None,
            input_dim=self.input_dim,
            global_dim=self.global_dim,
        )

    def _padded_inputs(self, inputs: Features) -> dict[str, Array]:
        return named_arrays(inputs)

    def _inputs_of_padded(self, arrays: Mapping[str, Array]) -> Features:
        return features_of(arrays)

    def _input_gradients(self, dinputs: Any, dwords: Array, dhidden: Array) -> CaptioningGradients:
        return CaptioningGradients(dinputs, dwords, dhidden)

    # ------------------------------------------------------------------ decoding

    def start(self, features: Features) -> Any:
        """The decoding state of each image before <START> is read; features as in :meth:`loss`."""
        return self._start(self._inputs("start", features)[0])

    def sample(self, features: Features, max_length: int = 30) -> Array:
        """Caption images greedily.

        Parameters
        ----------
        features
            As in :meth:`loss`.
        max_length : int
            Maximum number of words of a caption.

        Returns
        -------
        captions : (N, max_length) int32
            Each row is a caption, then ``<END>``, then ``<NULL>``; a caption of ``max_length`` words has no
            ``<END>``. :mod:`rnnlab.decoding` has other searches.

        Raises
        ------
        ValueError
            If the features do not fit, or the vocabulary has no ``<START>`` or ``<END>``.
        """
        found = [best for (best,) in decoding.greedy(self, features, max_length=max_length)]
        tokens, _ = token_rows(self, found, max_length=max_length)
        captions = np.full((len(found), max_length), self.null_token, np.int32)
        captions[:, : tokens.shape[1]] = tokens
        return captions
