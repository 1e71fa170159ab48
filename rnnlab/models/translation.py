"""Seq2Seq: target sentences from source sentences, such as translations, or comments from code.

    memory, state = token encoder(source)           bidirectional, stacked

The decoder attends to the memory; :mod:`rnnlab.models.encoder_decoder` has the rest of the model (Bahdanau et
al. 2015; with attention to the decoder's own past states, Xia et al. 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab.errors import InputError
from rnnlab.layers.attention.contexts import Delay
from rnnlab.layers.checks import as_padded, as_tokens
from rnnlab.models.base import (
    BatchSize,
    RegularisationOptions,
    ReviewerChoice,
    announces_gradients,
    checked_options,
)
from rnnlab.models.encoder_decoder import EncoderDecoder
from rnnlab.models.input_gradients import TranslationGradients
from rnnlab.models.parts.initialisation import INIT_SCALE
from rnnlab.models.parts.padding import rounded_up
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.token_encoder import SourceBatch, build_token_encoder, memory_dim
from rnnlab.models.parts.vocabulary import check_vocabulary
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


class Seq2Seq(EncoderDecoder):
    """A recurrent encoder and decoder for pairs of sentences.

    Parameters
    ----------
    source_word_to_idx, word_to_idx : mapping of str to int
        The vocabularies of source and target. Padding is ``<NULL>`` in both; decoding needs ``<START>`` and
        ``<END>`` in the target's.
    wordvec_dim : int
        W, size of a word vector, of the source and of the target.
    hidden_dim : int
        H, units of the decoder.
    cell_type : "rnn", "lstm", "gru", "simplified_gru" or another name
        The recurrent cell of encoder and decoder: a built-in one, a registered one, or
        "package.module:Object".
    dtype : dtype
        The dtype of all parameters and arithmetic: float32 for training, float64 for gradient checks.
    encoder_dim : int, optional
        Units of each direction of an encoder layer, ``hidden_dim`` if left out.
    num_layers : int
        Number of encoder layers.
    bidirectional : bool
        Whether the encoder reads in both directions.
    decoder_layers : int
        Number of stacked recurrent layers of the decoder. The first one starts from the encoder's final
        states, or a reviewer's. Each further layer starts at zero and reads the hidden states of the layer
        below; the output reads those of the last one. Attention belongs to the first layer.
    attention : "additive", "dot", "bilinear" or None
        Score of the attention to the source. With None there is no attention: the source reaches the decoder
        through its initial state only.
    attention_dim : int, optional
        Units of additive scores, those of a reviewer included; ``hidden_dim`` if left out. An error with
        other scores, which have no units.
    target_attention : bool
        Whether to attend to the decoder's own past states as well (Xia et al. 2017).
    target_delay : int, optional
        At least 2, with ``target_attention``: the decoder does not attend to its past, but reads the state
        this many steps back (Xia et al. 2017, section 3.4).
    reviewer : mapping, optional
        With ``attention``: a Review Net or Recurrent Nested Model between encoder and decoder, with
        ``blocks``, ``steps``, ``inter``, ``intra`` and ``dropout``; see
        :class:`~rnnlab.models.parts.reviewer.ReviewerOptions`. The decoder then attends to thought vectors.
    output : "linear", "concat" or "deep"
        What the scores are computed from: the hidden state alone; the hidden state, the input word and the
        contexts, by one affine map (Xia et al. 2017, eq. 11); or the same through a hidden layer (Xu et al.
        2015, eq. 7).
    tied_embeddings : bool
        Whether the word vectors of the target are also the weight of the scores, W_vocab = W_embed^T (Press
        and Wolf 2017). With the "linear" output this needs ``hidden_dim`` equal to ``wordvec_dim``; an error
        with "concat".
    word_dropout : float in [0, 1)
        Probability of dropping an element of a word vector, of the source and of the target.
    layer_dropout : float in [0, 1)
        Probability of dropping an element of the hidden states that layers 2 and higher read, of encoder
        and decoder. Must be 0 if both have a single layer.
    output_dropout : float in [0, 1)
        Probability of dropping an element of the vectors that are scored.
    reconstruction : float >= 0
        Weight of ARNet's loss, which reconstructs each hidden state of the decoder from the next one (X. Chen
        et al. 2018, eq. 9), a mean over the batch whatever ``loss_average`` is. In eq. 9 the weight is
        relative to the likelihood of a sentence: divide it by the mean number of tokens of a target where
        ``loss_average`` is "token". Not part of :meth:`nll`. It is also an attribute, which may change
        between two calls of :meth:`loss`.
    reconstructor_dim : int, optional
        Units of ARNet, ``hidden_dim`` if left out. If it is given, the model has an ARNet even where the
        weight of its loss is 0.
    detach_target : bool
        Whether the states that ARNet reconstructs are treated as constants; in the paper they are not. Needs
        an ARNet.
    encoder_reconstruction : float >= 0
        Weight of the same loss for the encoder's top layer. Each direction has its own ARNet, which reads in
        that direction.
    encoder_reconstructor_dim : int, optional
        Units of the encoder's ARNets, ``encoder_dim`` if left out.
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
    loss_average : "token" or "batch"
        Divide the loss, a sum over all real tokens, by their number or by the batch size.
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

    Raises
    ------
    ValueError
        If an option does not fit; the error names it.
    """

    def __init__(
        self,
        source_word_to_idx: Mapping[str, int],
        word_to_idx: Mapping[str, int],
        wordvec_dim: Count = 256,
        hidden_dim: Count = 512,
        cell_type: CellType = "gru",
        dtype: FloatType = np.float32,
        *,
        encoder_dim: Count | None = None,
        num_layers: Count = 1,
        bidirectional: bool = True,
        decoder_layers: Count = 1,
        attention: AttentionScore | None = "additive",
        attention_dim: Count | None = None,
        target_attention: bool = False,
        target_delay: Delay | None = None,
        reviewer: ReviewerChoice = None,
        output: Output = "deep",
        tied_embeddings: bool = False,
        word_dropout: Probability = 0.0,
        layer_dropout: Probability = 0.0,
        output_dropout: Probability = 0.0,
        reconstruction: NotNegative = 0.0,
        reconstructor_dim: Count | None = None,
        encoder_reconstruction: NotNegative = 0.0,
        encoder_reconstructor_dim: Count | None = None,
        detach_target: bool = False,
        discriminative: NotNegative = 0.0,
        discriminative_words: Count | None = None,
        label_smoothing: Probability = 0.0,
        loss_average: LossAverage = "token",
        forget_bias: Number = 0.0,
        initialisation: Initialisation = "course",
        init_scale: Positive = INIT_SCALE,
        regularisation: RegularisationOptions = None,
        rng: np.random.Generator | int = 0,
        device: str = "cpu",
    ) -> None:
        options = checked_options(Seq2Seq, locals())
        check_vocabulary("Seq2Seq", "source_word_to_idx", source_word_to_idx)
        self.source_word_to_idx = dict(source_word_to_idx)
        super().__init__(options, word_to_idx, memory_dim=memory_dim(options), rng=rng, device=device)

    def __repr__(self) -> str:
        names = ["cell_type", "wordvec_dim", "hidden_dim", "attention", "target_attention"]
        names += ["target_delay"] if self._options["target_delay"] else []
        names += ["decoder_layers"] if self._options["decoder_layers"] > 1 else []
        names += ["tied_embeddings"] if self._options["tied_embeddings"] else []
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        words = f"{len(self.source_word_to_idx):,} to {len(self.word_to_idx):,} words"
        return f"Seq2Seq({options}; {words}, {self.params.flat.size:,} {self.dtype} parameters)"

    @announces_gradients
    def loss(
        self,
        source: Array,
        target: Array,
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
        source : (N, L) integers
            The words of each source and ``<END>``, without ``<START>``, then ``<NULL>``.
        target : (N, M) integers, or (N, S, M)
            ``<START>``, the words, ``<END>``, then ``<NULL>``. S sentences of each source are N S
            examples; each source is encoded once.
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
        inputs : TranslationGradients
            Only with ``input_gradients``. See :mod:`rnnlab.models.input_gradients`.

        Raises
        ------
        IndexError
            If a token is out of range.
        ValueError, TypeError
            If a shape or a dtype is wrong.
        """
        batch, forced = self._batch(
            "loss",
            source,
            target,
            name="target",
            sentence_weights=sentence_weights,
            sentence_lengths=sentence_lengths,
        )
        return self._loss(batch, forced, rng, grads, sampling, part_of, input_gradients)

    def nll(self, source: Array, target: Array) -> tuple[float, int]:
        """The negative log-likelihood of a batch, as in inference, without gradients.

        Parameters
        ----------
        source, target
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
        return self._nll(*self._batch("nll", source, target, name="target"))

    def align(self, source: Array, target: Array) -> Array:
        """The attention weights over the source at each token of the target, under teacher forcing.

        Parameters
        ----------
        source : (N, L) integers
        target : (N, M) integers

        Returns
        -------
        weights : (N, T, S)
            Row t holds the weights for predicting ``target[:, t + 1]``. T is the length of the longest target
            without its <START>, S <= L that of the longest source. Past the end of a sentence its weights are
            zero.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`; ValueError also if the model does not attend to its source.
        """
        return self._align(*self._batch("align", source, target, name="target", several=False))

    def start(self, source: Array) -> Any:
        """The decoding state of each sentence (N, L), before <START> is read."""
        return self._start(self._inputs("start", source)[0])

    def _build_encoder(self, recurrence: Recurrence, num_states: int) -> Any:
        return build_token_encoder(recurrence, len(self.source_word_to_idx), num_states, self._options)

    def _inputs(self, function: str, source: Array) -> tuple[SourceBatch, int]:
        """The checked sentences as a batch, and their number."""
        source = as_padded(f"Seq2Seq.{function}", "source", source)
        if source.ndim != 2 or not source.shape[1]:
            raise InputError(
                f"Seq2Seq.{function}: source has shape {source.shape}, expected (N, L) with L of at least 1"
            )
        source = as_tokens(f"Seq2Seq.{function}", "source", source, len(self.source_word_to_idx))
        return SourceBatch.of(source, self.source_word_to_idx["<NULL>"]), len(source)

    def _padded_inputs(self, inputs: SourceBatch) -> dict[str, Array]:
        null_token, length = self.source_word_to_idx["<NULL>"], rounded_up(inputs.tokens.shape[1])
        return SourceBatch.of(inputs.tokens, null_token, length).padded(self.dtype)

    def _inputs_of_padded(self, arrays: Mapping[str, Array]) -> SourceBatch:
        return SourceBatch.of_padded(arrays)

    def _input_gradients(self, dinputs: Any, dwords: Array, dhidden: Array) -> TranslationGradients:
        return TranslationGradients(dinputs, dwords, dhidden)
