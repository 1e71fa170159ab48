"""The base class of models that generate sentences: training with teacher forcing, and decoding steps.

    source   = encoder(inputs)
    words    = embedding(tokens)
    decoded  = decoder(words, source)
    scores   = output(hidden, contexts, words)          at real targets only
    loss     = softmax cross-entropy (label smoothing) + doubly stochastic attention + ARNet

A subclass chooses the parts and checks the inputs of its encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.layers.attention.losses import doubly_stochastic_loss
from rnnlab.layers.checks import check_rng
from rnnlab.layers.softmax import loss_divisor
from rnnlab.models.base import BatchSize, Model, averaging_size
from rnnlab.models.parts.decoders import Decoded
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.encoders import Random, Source
from rnnlab.models.parts.initialisation import initialise
from rnnlab.models.parts.output import OutputInputs
from rnnlab.models.parts.output_loss import output_loss, output_nll
from rnnlab.models.parts.padding import Padded
from rnnlab.models.parts.reconstruction import EncoderReconstructor, Reconstructor, check_reconstructor
from rnnlab.models.parts.scheduled_sampling import check_sampling, choose_places, sampled_inputs
from rnnlab.models.parts.teacher_forcing import TeacherForced, check_sentences
from rnnlab.models.parts.vocabulary import check_vocabulary
from rnnlab.ops import ops_for
from rnnlab.options import Initialisation, LossAverage
from rnnlab.parameters import Parameters
from rnnlab.types import Array


class LossScales(NamedTuple):
    """The factors that turn the losses of a batch, or of a part of a batch, into averages over the batch."""

    divisor: int  # divides the sum of the losses of tokens
    share: float  # the part's share of the batch's examples: scales losses that are means over examples


class EncoderDecoder(Model):
    """Encoder, word vectors, decoder and output as one model.

    Parameters
    ----------
    word_to_idx : mapping of str to int
        The vocabulary of the sentences. Padding is ``<NULL>``; decoding needs ``<START>`` and ``<END>``.
    encoder, embedding, decoder, output : parts
        :mod:`rnnlab.models.parts.encoders` describes the interface of a part.
    loss_average : "batch" or "token"
    label_smoothing : float in [0, 1)
    doubly_stochastic : float
        Weight of the doubly stochastic loss of the attention to the source; 0 for no such loss.
    reconstruction : float
        Weight of the loss of ``reconstructor``; 0 for no such loss.
    reconstructor : Reconstructor or None
        The ARNet of the decoder's hidden states.
    encoder_reconstruction, encoder_reconstructor
        The same for the memory of a token encoder.
    initialisation, init_scale, rng, dtype, device
        Initialisation, dtype and device of the parameters.
    """

    _inputs: Callable[..., tuple[Any, int]]  # (function, source) -> the encoder's checked inputs, N
    _padded_inputs: Callable[[Any], dict[str, Array]]  # the encoder's inputs -> their arrays, padded
    _inputs_of_padded: Callable[[Mapping[str, Array]], Any]  # those arrays on the device -> inputs

    def __init__(
        self,
        word_to_idx: Mapping[str, int],
        encoder: Any,
        embedding: WordEmbedding,
        decoder: Any,
        output: Any,
        *,
        loss_average: LossAverage,
        label_smoothing: float,
        doubly_stochastic: float,
        reconstruction: float,
        reconstructor: Reconstructor | None,
        initialisation: Initialisation,
        init_scale: float,
        dtype: DTypeLike,
        rng: np.random.Generator | int,
        device: str,
        encoder_reconstruction: float = 0.0,
        encoder_reconstructor: EncoderReconstructor | None = None,
    ) -> None:
        name = type(self).__name__
        check_vocabulary(name, "word_to_idx", word_to_idx)
        self.word_to_idx = dict(word_to_idx)
        self.idx_to_word = {index: word for word, index in self.word_to_idx.items()}
        self.null_token = self.word_to_idx["<NULL>"]
        self.start_token: Any = self.word_to_idx.get("<START>")  # None if the vocabulary has no <START>
        self.end_token: Any = self.word_to_idx.get("<END>")
        self.encoder, self.embedding, self.decoder, self.output = encoder, embedding, decoder, output
        self.loss_average = loss_average
        self.label_smoothing, self.doubly_stochastic = label_smoothing, doubly_stochastic
        self.reconstruction, self.reconstructor = reconstruction, reconstructor
        self.encoder_reconstruction, self.encoder_reconstructor = (
            encoder_reconstruction,
            encoder_reconstructor,
        )
        shapes: dict[str, tuple[int, ...]] = {}
        for part in (encoder, embedding, decoder, output, reconstructor, encoder_reconstructor):
            if part is not None:
                shapes |= part.shapes()
        self.params = Parameters(shapes, dtype)
        initialise(self.params, initialisation, scale=init_scale, rng=np.random.default_rng(rng))
        self.to(device)

    # ------------------------------------------------------------------ training

    def _loss(
        self,
        inputs: Any,
        forced: TeacherForced,
        rng: Random,
        grads: Parameters | None,
        sampling: float = 0.0,
        part_of: BatchSize | None = None,
    ) -> tuple[float, Parameters]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        With probability ``sampling`` an input word is drawn from the model's own distribution.
        """
        self._check_losses("loss")
        check_rng(f"{type(self).__name__}.loss", rng)
        check_sampling(f"{type(self).__name__}.loss", sampling, rng)
        if rng is not None and sampling:
            forced = self._with_samples(inputs, forced, sampling, rng)
        scales = self._loss_scales(forced, part_of)
        grads, forced = self._gradients_workspace(grads, part_of), forced.on(self._ops)
        return self._ops.scalar(self._teacher_forced_loss(inputs, forced, scales, grads, rng)), grads

    def _teacher_forced_loss(
        self, inputs: Any, forced: TeacherForced, scales: LossScales, grads: Parameters, rng: Random
    ) -> float:
        """The loss. The gradient of every parameter is added into ``grads``."""
        params = self.params
        source, encoded = self.encoder.forward(params, inputs, rng=rng)
        words, embedded = self.embedding.forward(params, forced.inputs, rng=rng, checked=forced.is_padded)
        decoded, cache = self.decoder.forward(params, words, source, forced.lengths, rng)
        loss, ddecoded, dscored = self._score(decoded, words, source, forced, scales, grads, rng)
        del decoded  # so that the backward can reuse its memory
        dwords, dsource = self.decoder.backward(ddecoded, cache, grads)
        if dscored is not None:
            dwords += dscored
        self.embedding.backward(dwords, embedded, grads)
        if self.encoder_reconstruction:
            weight = self.encoder_reconstruction * scales.share
            term, dmemory = check_reconstructor(
                self, "encoder_reconstruction", self.encoder_reconstructor
            ).loss(params, source.memory, inputs, weight=weight, grads=grads)
            loss += term
            if dsource.memory is not None:
                dmemory += dsource.memory
            dsource = dsource._replace(memory=dmemory)
        self.encoder.backward(dsource, encoded, grads)
        return loss

    def padded(self, inputs: Any, tokens: Array, *, part_of: BatchSize | None = None) -> Padded:
        """Pad a batch for :meth:`padded_loss`, which needs its arrays on the model's device.

        Parameters
        ----------
        inputs, tokens, part_of
            As the arguments of :meth:`loss`.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        inputs, rows = self._inputs("loss", inputs)
        forced = self._teacher_forced("loss", "tokens", tokens, rows)
        scales = self._loss_scales(forced, part_of)
        arrays = forced.padded(scales.divisor, self.null_token, self.dtype)
        return Padded(self._padded_inputs(inputs) | arrays, scales.share, self._loss_weights)

    def padded_loss(self, batch: Padded, *, rng: Random = None, grads: Parameters) -> Any:
        """The loss of a batch from :meth:`padded`. Its gradients are added into ``grads``.

        It does not synchronise with the device, and the work done depends on the shapes of the arrays alone.
        """
        inputs, forced = self._inputs_of_padded(batch.arrays), TeacherForced.of_padded(batch.arrays)
        return self._teacher_forced_loss(inputs, forced, LossScales(1, batch.share), grads, rng)

    def _with_samples(
        self, inputs: Any, forced: TeacherForced, sampling: float, rng: np.random.Generator
    ) -> TeacherForced:
        """Scheduled sampling: replace some input words by words drawn from the model."""
        tokens = forced.inputs
        real = (tokens != self.null_token) & (np.arange(tokens.shape[1]) < forced.lengths[:, None])
        places, points = choose_places(real, sampling, rng)
        if not places.any():
            return forced
        return forced._replace(inputs=sampled_inputs(self, self._start(inputs), tokens, places, points))

    def _loss_scales(self, forced: TeacherForced, part_of: BatchSize | None) -> LossScales:
        """The scales of a batch, or of a part of a batch."""
        rows = len(forced.lengths)
        N, tokens = averaging_size(f"{type(self).__name__}.loss", rows, forced.num_targets, part_of)
        return LossScales(loss_divisor("loss", self.loss_average, N, tokens), rows / max(1, N))

    def _score(
        self,
        decoded: Decoded,
        words: Array,
        source: Source,
        forced: TeacherForced,
        scales: LossScales,
        grads: Parameters,
        rng: Random,
    ) -> tuple[float, Decoded, Array | None]:
        """The loss, and its gradients with respect to ``decoded`` and to the words that the output reads."""
        output_inputs = self._output_inputs(decoded, words, forced)
        loss, doutput_inputs = output_loss(
            self.output,
            self.params,
            output_inputs,
            forced.targets,
            weights=1 / scales.divisor if forced.weights is None else forced.weights,
            grads=grads,
            label_smoothing=self.label_smoothing,
            rng=rng,
        )
        dweights = {}
        if self.doubly_stochastic:
            weight = self.doubly_stochastic * scales.share
            term, dterm = doubly_stochastic_loss(
                decoded.weights["source"], forced.lengths, mask=forced.mask, memory_mask=source.mask
            )
            loss += weight * term
            dweights["source"] = weight * dterm
        dhidden, dcontexts, dwords = (
            None if rows is None else forced.spread(rows) for rows in doutput_inputs
        )
        dfirst = None
        if self.reconstruction:
            term, dstates, dfirst = check_reconstructor(self, "reconstruction", self.reconstructor).loss(
                self.params,
                decoded.hidden,
                decoded.first,
                forced.lengths,
                weight=self.reconstruction * scales.share,
                grads=grads,
                mask=forced.mask,
            )
            loss += term
            dhidden += dstates
        return loss, Decoded(dhidden, dcontexts, dweights, dfirst), dwords

    def _nll(self, inputs: Any, forced: TeacherForced) -> tuple[float, int]:
        """The negative log-likelihood of a batch in nats, and its number of real targets."""
        params, forced = self.params, forced.on(self._ops)
        source, _ = self.encoder.forward(params, inputs)
        words, _ = self.embedding.forward(params, forced.inputs)
        decoded, _ = self.decoder.forward(params, words, source, forced.lengths)
        output_inputs = self._output_inputs(decoded, words, forced)
        return output_nll(self.output, params, output_inputs, forced.targets), forced.num_targets

    def _align(self, inputs: Any, forced: TeacherForced) -> Array:
        """The attention weights (N, T, L) over the source under teacher forcing."""
        if not self.attends_to_source:
            raise ValueError(f"{type(self).__name__}: this model does not attend to its source")
        return self._ops.asnumpy(self._decoded(inputs, forced).weights["source"])

    def _decoded(self, inputs: Any, forced: TeacherForced) -> Decoded:
        """The decoder's outputs under teacher forcing, without dropout and zoneout."""
        source, _ = self.encoder.forward(self.params, inputs)
        words, _ = self.embedding.forward(self.params, forced.inputs)
        return self.decoder.forward(self.params, words, source, forced.lengths)[0]

    def last_states(self, source: Any, sentences: Array) -> Array:
        """The hidden state that predicts the last token of each sentence, under teacher forcing.

        There is no dropout and no zoneout. For a sentence that the model generated, it is the hidden state
        from which it generated the last token.

        Parameters
        ----------
        source : as :meth:`start` takes it, N rows
        sentences : (N, L) integers
            ``<START>``, the words, ``<END>``, then ``<NULL>``; ``<END>`` may be missing.

        Returns
        -------
        (N, H)

        Raises
        ------
        IndexError, ValueError, TypeError
            If a shape, a dtype or a token does not fit, or a sentence has no token after its first.
        """
        inputs, N = self._inputs("last_states", source)
        forced = self._teacher_forced("last_states", "sentences", sentences, N)
        if not forced.lengths.all():
            row = int(np.flatnonzero(forced.lengths == 0)[0])
            raise ValueError(
                f"{type(self).__name__}.last_states: sentence {row} has no token after its first"
            )
        hidden, T = self._decoded(inputs, forced).hidden, forced.inputs.shape[1]
        last = self._ops.asarray(np.arange(N) * T + forced.lengths - 1)
        return self._ops.asnumpy(forced._replace(real=last).gather(hidden))

    def _output_inputs(self, decoded: Decoded, words: Array, forced: TeacherForced) -> OutputInputs:
        """The inputs of the output layer at the real targets."""
        hidden = forced.gather(decoded.hidden)
        if not self.output.is_deep:
            return OutputInputs(hidden)
        contexts = None if decoded.contexts is None else forced.gather(decoded.contexts)
        return OutputInputs(hidden, contexts, forced.gather(words))

    def _teacher_forced(self, function: str, name: str, tokens: Array, rows: int) -> TeacherForced:
        """Check sentences (N, L) and split them into inputs and targets."""
        function, words = f"{type(self).__name__}.{function}", self.embedding.vocabulary_size
        return TeacherForced.of(check_sentences(function, name, tokens, rows, words), self.null_token)

    # ------------------------------------------------------------------ decoding

    def _start(self, inputs: Any) -> Any:
        source, _ = self.encoder.forward(self.params, inputs)
        return self.decoder.start(self.params, source)

    def read(self, state: Any, tokens: Array) -> tuple[OutputInputs, Any]:
        """Read one token per row, (N,). Return the output layer's inputs and the next state."""
        words, _ = self.embedding.forward(self.params, tokens)
        decoded, state = self.decoder.advance(words, state)
        return OutputInputs(decoded.hidden, decoded.contexts, words), state

    def advance(self, state: Any, tokens: Array) -> tuple[Array, Any]:
        """Read one token per row, (N,). Return log-probabilities (N, V) and the next state."""
        output_inputs, state = self.read(state, tokens)
        scores, _ = self.output.forward(self.params, output_inputs)
        return ops_for(scores).log_softmax(scores), state

    @property
    def attends_to_source(self) -> bool:
        """Whether the decoder attends to the source, which :meth:`attention` needs."""
        return getattr(self.decoder, "attends_to_source", False)

    def attention(self, state: Any) -> Array:
        """The attention weights (N, L) over the source at the step that led to a state.

        Raises
        ------
        ValueError
            If the model does not attend to its source.
        """
        if not self.attends_to_source:
            raise ValueError(f"{type(self).__name__}: this model does not attend to its source")
        return state[1]
