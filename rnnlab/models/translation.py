"""Seq2Seq: sentences to sentences, of another language or from code to comments.

    memory, state = token encoder(source)           bidirectional, stacked
    and on as in :mod:`rnnlab.models.encoder_decoder`, with a decoder that attends to the memory

(Bahdanau et al. 2015; with attention to the target's past, Xia et al. 2017.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.layers.checks import as_tokens, check_probability, check_size
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.models.base import Batch, arguments_of
from rnnlab.models.encoder_decoder import EncoderDecoder
from rnnlab.models.parts.cells import cell_for
from rnnlab.models.parts.decoders import AttentiveDecoder, RecurrentDecoder, check_attention
from rnnlab.models.parts.embedding import DeepOutput, LinearOutput, WordEmbedding
from rnnlab.models.parts.padding import rounded_up
from rnnlab.models.parts.reconstruction import decoder_reconstructor, encoder_reconstructor
from rnnlab.models.parts.token_encoder import TokenEncoder, Tokens
from rnnlab.parameters import Parameters
from rnnlab.types import Array


class Seq2Seq(EncoderDecoder):
    """A recurrent network from sentences to sentences.

    Parameters
    ----------
    source_word_to_idx, word_to_idx : mapping of str to int
        The vocabularies of source and target. Padding is ``<NULL>`` in both; decoding needs ``<START>`` and
        ``<END>`` in the target's.
    wordvec_dim : int
        W, numbers in a word vector, of the source and of the target.
    hidden_dim : int
        H, units of the decoder.
    cell_type : "rnn", "lstm", "gru" or "simplified_gru"
        Of encoder and decoder.
    dtype : dtype
        float32 for work, float64 for gradient checks.
    encoder_dim : int, optional, keyword only, as are all below
        Units of each direction of each layer of the encoder, ``hidden_dim`` if left out.
    num_layers : int
        Of the encoder.
    bidirectional : bool
        Whether the encoder reads in both directions.
    attention : "additive", "dot", "bilinear" or None
        The score of the attention to the source; None is no attention, only the initial state.
    attention_dim : int, optional
        Units of additive scores, ``hidden_dim`` if left out.
    target_attention : bool
        Whether to attend to the decoder's own past states as well.
    output : "deep" or "linear"
        Scores through a layer that also sees the contexts and the word that was read, or from the hidden
        state alone.
    word_dropout, layer_dropout, output_dropout : float in [0, 1)
        Of word vectors on both sides, between the encoder's layers, and of what is scored.
    reconstruction, reconstructor_dim, detach_target
        ARNet on the decoder's hidden states, as of :class:`~rnnlab.models.CaptioningRNN`.
    encoder_reconstruction, encoder_reconstructor_dim
        The same of the encoder's top layer: each direction has an ARNet of its own, which reads in that
        direction, and has ``encoder_dim`` units if left out. ``detach_target`` is for all of them.
    label_smoothing : float in [0, 1)
        The share of a token's probability that the loss spreads over all words (Szegedy et al. 2016).
    loss_average : "token" or "batch"
        The loss is the sum over all real tokens over their number, or over the batch size.
    initialisation, init_scale, rng, device
        As of :class:`~rnnlab.models.CaptioningRNN`.
    regularisation : mapping, optional
        Noise in the recurrence of encoder and decoder, likewise.

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
        wordvec_dim: int = 256,
        hidden_dim: int = 512,
        cell_type: str = "gru",
        dtype: DTypeLike = np.float32,
        *,
        encoder_dim: int | None = None,
        num_layers: int = 1,
        bidirectional: bool = True,
        attention: str | None = "additive",
        attention_dim: int | None = None,
        target_attention: bool = False,
        output: str = "deep",
        word_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        output_dropout: float = 0.0,
        reconstruction: float = 0.0,
        reconstructor_dim: int | None = None,
        encoder_reconstruction: float = 0.0,
        encoder_reconstructor_dim: int | None = None,
        detach_target: bool = False,
        label_smoothing: float = 0.0,
        loss_average: str = "token",
        initialisation: str = "course",
        init_scale: float = 0.08,
        regularisation: Mapping[str, Any] | Regularisation | None = None,
        rng: np.random.Generator | int = 0,
        device: str = "cpu",
    ) -> None:
        self._options = arguments_of(locals())
        _check_options(self._options)
        self.source_word_to_idx = dict(source_word_to_idx)
        cell, V = cell_for(cell_type, Regularisation(**self._options["regularisation"])), len(word_to_idx)
        encoder = TokenEncoder(
            cell,
            len(source_word_to_idx),
            wordvec_dim,
            encoder_dim or hidden_dim,
            decoder_states=cell.states,
            decoder_dim=hidden_dim,
            num_layers=num_layers,
            bidirectional=bidirectional,
            word_dropout=word_dropout,
            layer_dropout=layer_dropout,
        )
        decoder: AttentiveDecoder | RecurrentDecoder = RecurrentDecoder(cell, wordvec_dim, hidden_dim)
        if attention or target_attention:
            decoder = AttentiveDecoder(
                cell,
                wordvec_dim,
                hidden_dim,
                memory_dim=encoder.memory_dim if attention else 0,
                attention_dim=attention_dim or hidden_dim,
                score=attention or "additive",
                target=target_attention,
            )
        super().__init__(
            word_to_idx,
            encoder,
            WordEmbedding(V, wordvec_dim, dropout=word_dropout),
            decoder,
            DeepOutput(hidden_dim, decoder.context_dim, wordvec_dim, V, dropout=output_dropout)
            if output == "deep"
            else LinearOutput(hidden_dim, V, dropout=output_dropout),
            loss_average=loss_average,
            label_smoothing=label_smoothing,
            doubly_stochastic=0.0,
            reconstruction=reconstruction,
            reconstructor=decoder_reconstructor("Seq2Seq", self._options),
            initialisation=initialisation,
            init_scale=init_scale,
            dtype=dtype,
            rng=rng,
            device=device,
            encoder_reconstruction=encoder_reconstruction,
            encoder_reconstructor=encoder_reconstructor("Seq2Seq", encoder, self._options),
        )

    def __repr__(self) -> str:
        names = ("cell_type", "wordvec_dim", "hidden_dim", "attention", "target_attention")
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        words = f"{len(self.source_word_to_idx):,} to {len(self.word_to_idx):,} words"
        return f"Seq2Seq({options}; {words}, {self.params.flat.size:,} {self.dtype} parameters)"

    def loss(
        self,
        source: Array,
        target: Array,
        *,
        rng: np.random.Generator | None = None,
        grads: Parameters | None = None,
        sampling: float = 0.0,
        part_of: Batch | None = None,
    ) -> tuple[float, Parameters]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        Parameters
        ----------
        source : (N, L) integers
            Sentences of the source, then ``<NULL>``.
        target : (N, M) integers
            ``<START>``, the words, ``<END>``, then ``<NULL>``.
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
        batch, rows = self._inputs("loss", source)
        taught = self._taught("loss", "target", target, rows)
        return self._loss(batch, taught, rng, grads, sampling, part_of)

    def nll(self, source: Array, target: Array) -> tuple[float, int]:
        """The negative log-likelihood of a batch, without noise and without gradients.

        Parameters
        ----------
        source : (N, L) integers
        target : (N, M) integers

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
        batch, rows = self._inputs("nll", source)
        return self._nll(batch, self._taught("nll", "target", target, rows))

    def align(self, source: Array, target: Array) -> Array:
        """The attention to the source when each token of the target is to be written, under teacher forcing.

        Parameters
        ----------
        source : (N, L) integers
        target : (N, M) integers

        Returns
        -------
        weights : (N, T, L)
            Row t is of the token ``target[:, t + 1]``. T is that of the longest target, its <START> not
            counted; past its own end a sentence's weights are zero.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`; ValueError also if the model does not attend to its source.
        """
        batch, rows = self._inputs("align", source)
        return self._align(batch, self._taught("align", "target", target, rows))

    def start(self, source: Array) -> Any:
        """The decoding state of each sentence (N, L), before <START> is read."""
        return self._start(self._inputs("start", source)[0])

    def _inputs(self, function: str, source: Array) -> tuple[Tokens, int]:
        """Tokens that were checked, and their rows."""
        source = np.asarray(source)
        if source.ndim != 2 or not source.shape[1]:
            raise ValueError(
                f"Seq2Seq.{function}: source has shape {source.shape}, expected (N, L) with L of at least 1"
            )
        source = as_tokens(f"Seq2Seq.{function}", "source", source, len(self.source_word_to_idx))
        return Tokens.of(source, self.source_word_to_idx["<NULL>"]), len(source)

    def _padded_inputs(self, batch: Tokens) -> dict[str, Array]:
        null_token, length = self.source_word_to_idx["<NULL>"], rounded_up(batch.tokens.shape[1])
        return Tokens.of(batch.tokens, null_token, length).padded(self.dtype)

    def _inputs_of_padded(self, arrays: Mapping[str, Array]) -> Tokens:
        return Tokens.of_padded(arrays)


def _check_options(options: Mapping[str, Any]) -> None:
    """Check what the parts do not."""
    for name in ("wordvec_dim", "hidden_dim", "encoder_dim", "attention_dim", "num_layers"):
        if options[name] is not None:
            check_size("Seq2Seq", name, options[name])
    for name in ("word_dropout", "layer_dropout", "output_dropout"):
        check_probability("Seq2Seq", name, options[name])
    check_attention("Seq2Seq", options["attention"])
    if options["output"] not in ("deep", "linear"):
        raise ValueError(f"Seq2Seq: output is {options['output']!r}, expected 'deep' or 'linear'")
    if "<NULL>" not in options["source_word_to_idx"]:
        raise ValueError("Seq2Seq: source_word_to_idx has no <NULL>, the token of padding")
