"""The base class of models that generate sentences: training with teacher forcing, and decoding steps.

    source   = encoder(inputs), then reviewer(source) if there is one
    words    = embedding(tokens)
    decoded  = decoder(words, source)
    scores   = output(hidden, contexts, words)          at real targets only
    loss     = softmax cross-entropy (label smoothing) + doubly stochastic attention + ARNet
               + discriminative supervision of the reviewer's thought vectors

The options choose the parts. A subclass defines the encoder and checks its inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.decoding.state_rows import num_rows, repeated_rows
from rnnlab.errors import InputError
from rnnlab.layers.attention.losses import doubly_stochastic_loss
from rnnlab.layers.checks import check_rng
from rnnlab.layers.softmax import loss_divisor
from rnnlab.models.base import BatchSize, averaging_size
from rnnlab.models.inference import Inference
from rnnlab.models.parts.decoders import attended, build_decoder
from rnnlab.models.parts.discriminator import build_discriminator
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.initialisation import set_forget_bias
from rnnlab.models.parts.losses import LOSSES, checked_loss
from rnnlab.models.parts.output import build_output
from rnnlab.models.parts.output_loss import OutputLoss
from rnnlab.models.parts.padding import Padded, real_steps
from rnnlab.models.parts.reconstruction import decoder_reconstructor, encoder_reconstructor
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.repeats import Repeats
from rnnlab.models.parts.reviewer import build_reviewer
from rnnlab.models.parts.scheduled_sampling import check_sampling, choose_places, sampled_inputs
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.models.parts.values import Decoded, Source
from rnnlab.models.parts.vocabulary import check_vocabulary
from rnnlab.parameters import Parameters, distinct
from rnnlab.types import Array, Random, State


class LossScales(NamedTuple):
    """The factors that turn the losses of a batch, or of a part of a batch, into averages over the batch."""

    divisor: int  # divides the sum of the losses of tokens
    share: float  # the part's share of the batch's examples; scales losses that are means over examples


class EncoderDecoder(Inference, ABC):
    """Encoder, word vectors, decoder and output as one model.

    A subclass defines the encoder, and checks its inputs: the methods up to ``_input_gradients``.

    Parameters
    ----------
    options : mapping
        The result of :func:`~rnnlab.models.base.checked_options`. They choose the parts.
    word_to_idx : mapping of str to int
        The vocabulary of the sentences. Padding is ``<NULL>``; decoding needs ``<START>`` and ``<END>``.
    memory_dim : int
        Size of a vector of the encoder's memory.
    rng : numpy Generator or seed
    device : str
    """

    # the weights of the losses; 0 for a loss that the model does not have
    label_smoothing: float
    doubly_stochastic: float
    reconstruction: float
    encoder_reconstruction: float
    discriminative: float

    def __init__(
        self,
        options: dict[str, Any],
        word_to_idx: Mapping[str, int],
        *,
        memory_dim: int,
        rng: np.random.Generator | int,
        device: str,
    ) -> None:
        name = type(self).__name__
        check_vocabulary(name, "word_to_idx", word_to_idx)
        V = len(word_to_idx)
        self._options, self.loss_average = options, options["loss_average"]
        for loss in LOSSES:
            setattr(self, loss, options.get(loss, 0.0))
        self.word_to_idx = dict(word_to_idx)
        self.idx_to_word = {index: word for word, index in self.word_to_idx.items()}
        self.null_token = self.word_to_idx["<NULL>"]
        self.start_token: Any = self.word_to_idx.get("<START>")  # None if the vocabulary has no <START>
        self.end_token: Any = self.word_to_idx.get("<END>")

        recurrence = Recurrence.of(name, options)
        self.reviewer = build_reviewer(
            name, options, memory_dim=memory_dim, num_states=recurrence.cell.num_states
        )
        self.decoder = build_decoder(recurrence, self.reviewer.memory_dim, options)
        self.encoder = self._build_encoder(recurrence, self.reviewer.num_states)
        self.embedding = WordEmbedding(V, options["wordvec_dim"], dropout=options["word_dropout"])
        self.output = build_output(self.decoder.context_dim, V, options)
        self.output_loss = OutputLoss(self.output)
        self.reconstructor = decoder_reconstructor(options)
        self.encoder_reconstructor = encoder_reconstructor(self.encoder, options)
        self.discriminator = build_discriminator(name, word_to_idx, options)

        read, scored = (self.encoder, self.reviewer, self.embedding), (self.output, self.reconstructor)
        parts = (*read, self.decoder, *scored, self.encoder_reconstructor, self.discriminator)
        shapes = distinct(name, *(part.shapes() for part in parts if part is not None))
        self._after_score, self._after_decoder, self._after_embedding = (
            [name for part in done if part is not None for name in part.shapes()]
            for done in (scored, (self.decoder,), (self.embedding,))
        )
        self._initialise(shapes, rng, {**self.reviewer.fan_ins(), **self.output.fan_ins()})
        set_forget_bias(name, self.params, recurrence.cell, options["forget_bias"])
        self.to(device)

    # ------------------------------------------------------------------ the encoder, by the subclass

    @abstractmethod
    def _build_encoder(self, recurrence: Recurrence, num_states: int) -> Any:
        """The encoder that the options choose.

        ``num_states`` is the number of states that its reader starts from: the reviewer, or the decoder.
        """

    @abstractmethod
    def _inputs(self, function: str, source: Any) -> tuple[Any, int]:
        """The encoder's inputs for a source, checked, and their number of rows."""

    @abstractmethod
    def _padded_inputs(self, inputs: Any) -> dict[str, Array]:
        """The arrays of these inputs, padded."""

    @abstractmethod
    def _inputs_of_padded(self, arrays: Mapping[str, Array]) -> Any:
        """The inputs that have these padded arrays, which are on the model's device."""

    @abstractmethod
    def _input_gradients(self, dinputs: Any, dwords: Array, dhidden: Array) -> Any:
        """The gradients of the encoder's inputs, of word vectors and of hidden states, as one tuple."""

    def widened_from(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        """The parameters of which a warm start from a model with ``config`` may fill the first rows only.

        That is the output layer's weight of the contexts, if the contexts of the other model are the first
        ones of this model: it attends to the source only, or to nothing.
        """
        weight = {"concat": "W_vocab", "deep": "W_deep_z"}.get(self._options["output"])
        other, own = attended(config), attended(self._options)
        return (weight,) if weight and len(other) < len(own) and own[: len(other)] == other else ()

    # ------------------------------------------------------------------ training

    def _loss(
        self,
        inputs: Any,
        forced: TeacherForced,
        rng: Random,
        grads: Parameters | None,
        sampling: float = 0.0,
        part_of: BatchSize | None = None,
        input_gradients: bool = False,
        return_state: bool = False,
    ) -> tuple[Any, ...]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        With probability ``sampling`` an input word is drawn from the model's own distribution. If
        ``input_gradients`` is true, the gradients of the inputs are returned too; if ``return_state`` is, the
        state of the decoder after the last word.
        """
        self._check_losses("loss")
        check_rng(f"{type(self).__name__}.loss", rng)
        check_sampling(f"{type(self).__name__}.loss", sampling, rng)
        if rng is not None and sampling:
            forced = self._with_samples(inputs, forced, sampling, rng)
        scales = self._loss_scales("loss", forced, part_of)
        forced = forced.scaled(scales.divisor, self.dtype).on(self._ops)
        grads = self._gradients_workspace(grads, part_of)
        loss, dinputs, last = self._teacher_forced_loss(
            inputs, forced, scales, grads, rng, input_gradients, return_state
        )
        further = [dinputs] * input_gradients + [last] * return_state
        return self._ops.scalar(loss), grads, *further

    def hidden_loss(
        self, hidden: Array, mask: Array, share: float, grads: Parameters
    ) -> tuple[float | Array, Array]:
        """A loss of the decoder's hidden states that a subclass adds to that of the words; none by default.

        Parameters
        ----------
        hidden : (N, T, H)
            Those of the last layer. Not to be changed.
        mask : (N, T)
            1 for the steps of a sentence, 0 for padding.
        share : float
            The fraction of the batch in these rows. Multiply a mean over them, and its gradients, by it.
        grads : Parameters
            The gradients of the parameters that the loss reads are added to them.

        Returns
        -------
        loss : float
        dhidden : (N, T, H)
            Its gradient, zero in padding.
        """
        return 0.0, self._ops.zeros(hidden.shape, hidden.dtype)

    @staticmethod
    def num_examples(batch: Sequence[Any]) -> int:
        """The number of sentences of a batch, those that :meth:`loss` takes after the inputs."""
        return int(np.prod(np.shape(batch[1])[:-1]))

    def _teacher_forced_loss(
        self,
        inputs: Any,
        forced: TeacherForced,
        scales: LossScales,
        grads: Parameters,
        rng: Random,
        input_gradients: bool = False,
        return_state: bool = False,
    ) -> tuple[float, Any, State | None]:
        """The loss, the gradients of the inputs or None, and the state after the last word or None.

        The gradients of parameters are added into ``grads``.
        """
        params, self.last_terms = self.params, {}
        encoder_source, encoder_cache = self.encoder.forward(params, inputs, rng=rng)
        if input_gradients:
            encoder_source = encoder_source._replace(memory_gradient=True)
        (source, thoughts, _), reviewer_cache = self.reviewer.forward(params, encoder_source, rng=rng)
        repeats = Repeats(source, len(forced.inputs))
        source = repeats.forward(source)
        words, embedding_cache = self.embedding.forward(
            params, forced.inputs, rng=rng, checked=forced.is_padded
        )
        decoded, decoder_cache = self.decoder.forward(params, words, source, forced.lengths, rng)
        loss, ddecoded, dscored = self._decoder_losses(decoded, words, source, forced, scales, grads, rng)
        grads.complete(self._after_score)
        state = self.decoder.last_state(decoder_cache) if return_state else None
        del decoded  # so that the backward can reuse its memory
        dhidden = self._ops.empty(ddecoded.hidden.shape, self.dtype) if input_gradients else None
        dwords, dsource = self.decoder.backward(ddecoded, decoder_cache, grads, total_dh=dhidden)
        grads.complete(self._after_decoder)
        if dscored is not None:
            dwords += dscored
        dwords = self.embedding.backward(dwords, embedding_cache, grads)
        grads.complete(self._after_embedding)
        dthoughts: Sequence[Array | None] = [None] * len(thoughts)
        if self.discriminative:
            term, dthoughts = self._thought_loss(thoughts, repeats, forced, scales, grads)
            loss += term
        dsource = self.reviewer.backward(repeats.backward(dsource), dthoughts, reviewer_cache, grads)
        if self.encoder_reconstruction:
            term, dmemory = self._encoder_loss(encoder_source.memory, inputs, scales, grads)
            loss += term
            if dsource.memory is not None:
                dmemory += dsource.memory
            dsource = dsource._replace(memory=dmemory)
        dinputs = self.encoder.backward(dsource, encoder_cache, grads, input_gradient=input_gradients)
        return loss, self._input_gradients(dinputs, dwords, dhidden) if input_gradients else None, state

    def padded(
        self,
        *batch: Any,
        part_of: BatchSize | None = None,
        sentence_weights: Array | None = None,
        sentence_lengths: Array | None = None,
    ) -> Padded:
        """Pad a batch for :meth:`padded_loss`, which needs its arrays on the model's device.

        Parameters
        ----------
        *batch, part_of, sentence_weights, sentence_lengths
            The arguments of :meth:`loss`.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        inputs, forced = self._batch(
            "padded",
            *batch,
            sentence_weights=sentence_weights,
            sentence_lengths=sentence_lengths,
        )
        scales = self._loss_scales("padded", forced, part_of)
        arrays = forced.padded(scales.divisor, self.null_token, self.dtype)
        return Padded(self._padded_inputs(inputs) | arrays, scales.share)

    def padded_loss(self, batch: Padded, *, rng: Random = None, grads: Parameters) -> Any:
        """The loss of a batch from :meth:`padded`. Its gradients are added into ``grads``.

        It does not synchronise with the device, and the work done depends on the shapes of the arrays alone.
        """
        self._check_losses("padded_loss")
        source, forced = self._inputs_of_padded(batch.arrays), TeacherForced.of_padded(batch.arrays)
        return self._teacher_forced_loss(source, forced, LossScales(1, batch.share), grads, rng)[0]

    def _with_samples(
        self, inputs: Any, forced: TeacherForced, sampling: float, rng: np.random.Generator
    ) -> TeacherForced:
        """Scheduled sampling: replace some input words by words drawn from the model."""
        tokens = forced.inputs
        mask = (tokens != self.null_token) & (np.arange(tokens.shape[1]) < forced.lengths[:, None])
        places, points = choose_places(mask, sampling, rng)
        if not places.any():
            return forced
        state = self._start(inputs)
        state = repeated_rows(state, len(tokens) // num_rows(state))
        return forced._replace(inputs=sampled_inputs(self, state, tokens, places, points))

    def _loss_scales(self, function: str, forced: TeacherForced, part_of: BatchSize | None) -> LossScales:
        """The scales of a batch, or of a part of a batch."""
        function, rows = f"{type(self).__name__}.{function}", len(forced.lengths)
        N, tokens = averaging_size(function, rows, forced.num_targets, part_of)
        return LossScales(loss_divisor(function, self.loss_average, N, tokens), rows / max(1, N))

    def _decoder_losses(
        self,
        decoded: Decoded,
        words: Array,
        source: Source,
        forced: TeacherForced,
        scales: LossScales,
        grads: Parameters,
        rng: Random,
    ) -> tuple[float, Decoded, Array | None]:
        """The losses of words, of the attention to the source and of hidden states: ARNet's, a subclass's.

        Returns
        -------
        loss : float
        ddecoded : Decoded
        dwords : array or None
            The gradient of the word vectors that the output reads.
        """
        loss, (dhidden, dcontexts, dwords) = self.output_loss.loss(
            self.params,
            decoded,
            words,
            forced,
            weights=1 / scales.divisor if forced.weights is None else forced.weights,
            grads=grads,
            label_smoothing=self.label_smoothing,
            rng=rng,
        )
        dweights, dfirst = {}, None
        if self.doubly_stochastic:
            term, dweights["source"] = self._attention_loss(decoded, source, forced, scales)
            loss += term
        if self.reconstruction:
            term, dstates, dfirst = self._reconstruction_loss(decoded, forced, scales, grads)
            loss += term
            dhidden += dstates
        if type(self).hidden_loss is not EncoderDecoder.hidden_loss:  # the mask alone would cost a copy
            term, dstates = self._checked_hidden_loss(decoded.hidden, forced, scales, grads)
            loss += term
            dhidden = dhidden + dstates
        return loss, Decoded(dhidden, dcontexts, dweights, dfirst), dwords

    def _attention_loss(
        self, decoded: Decoded, source: Source, forced: TeacherForced, scales: LossScales
    ) -> tuple[float, Array]:
        """The loss of attention to the source, and the gradient of the attention weights."""
        if "source" not in decoded.weights:
            raise InputError(
                f"{type(self).__name__}: doubly_stochastic is {self.doubly_stochastic}, but the model "
                "was made without attention"
            )
        lengths = forced.lengths if forced.mask is None else None
        term, dterm = doubly_stochastic_loss(
            decoded.weights["source"], lengths, mask=forced.mask, memory_mask=source.mask
        )
        dweights = float(self.doubly_stochastic * scales.share) * dterm
        return self._weighted("doubly_stochastic", term, scales.share), dweights

    def _reconstruction_loss(
        self, decoded: Decoded, forced: TeacherForced, scales: LossScales, grads: Parameters
    ) -> tuple[float, Array, Array | None]:
        """The loss of the decoder's ARNet, and the gradients of the hidden states and of the first one."""
        term, dhidden, dfirst = self._part_of("reconstruction").loss(
            self.params,
            decoded.hidden,
            decoded.first,
            forced.lengths,
            weight=self.reconstruction * scales.share,
            grads=grads,
            mask=forced.mask,
        )
        return self._weighted("reconstruction", term, scales.share), dhidden, dfirst

    def _checked_hidden_loss(
        self, hidden: Array, forced: TeacherForced, scales: LossScales, grads: Parameters
    ) -> tuple[Any, Array]:
        """The loss of a subclass and its gradient, from :meth:`hidden_loss`."""
        mask = forced.mask
        if mask is None:
            mask = self._ops.asarray(real_steps(forced.lengths, hidden.shape[1], self.dtype))
        found = self.hidden_loss(hidden, mask, scales.share, grads)
        return checked_loss(f"{type(self).__name__}.hidden_loss", found, like=hidden)

    def _thought_loss(
        self,
        thoughts: Sequence[Array],
        repeats: Repeats,
        forced: TeacherForced,
        scales: LossScales,
        grads: Parameters,
    ) -> tuple[float, list[Array]]:
        """The loss of the words that thought vectors predict, and the gradients of the thought vectors."""
        term, drepeated = self._part_of("discriminative").loss(
            self.params,
            list(map(repeats.repeated, thoughts)),
            forced,
            weight=self.discriminative * scales.share,
            grads=grads,
        )
        return self._weighted("discriminative", term, scales.share), list(map(repeats.summed, drepeated))

    def _encoder_loss(
        self, memory: Array, inputs: Any, scales: LossScales, grads: Parameters
    ) -> tuple[float, Array]:
        """The loss of the encoder's ARNet, and the gradient of the encoder's states."""
        term, dmemory = self._part_of("encoder_reconstruction").loss(
            self.params,
            memory,
            inputs.lengths,
            weight=self.encoder_reconstruction * scales.share,
            grads=grads,
            mask=inputs.float_mask,
            reverse=inputs.reversed_rows,
        )
        return self._weighted("encoder_reconstruction", term, scales.share), dmemory
