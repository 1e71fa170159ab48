"""What models that write sentences share: teacher forcing forward and back, and a search's step function.

    source   = encoder(inputs)
    words    = embedding(tokens)
    decoded  = decoder(words, source)
    scores   = output(hidden, contexts, words)          at real tokens only
    loss     = softmax cross-entropy (label smoothing) + doubly stochastic attention + ARNet

A model is the choice of the parts, and what its inputs are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.layers.attention.losses import doubly_stochastic_loss
from rnnlab.layers.checks import check_rng
from rnnlab.layers.softmax import loss_divisor
from rnnlab.models.base import Batch, Model, averaged_over
from rnnlab.models.parts.decoders import Decoded
from rnnlab.models.parts.embedding import Readout, WordEmbedding
from rnnlab.models.parts.encoders import Random, Source
from rnnlab.models.parts.initialisation import initialise
from rnnlab.models.parts.output import output_loss, output_nll
from rnnlab.models.parts.padding import Padded
from rnnlab.models.parts.reconstruction import EncoderReconstructor, Reconstructor, required
from rnnlab.models.parts.scheduled_sampling import check_sampling, choose_places, sampled_inputs
from rnnlab.models.parts.teacher_forcing import Teaching, check_sentences
from rnnlab.models.parts.vocabulary import check_vocabulary
from rnnlab.ops import ops_for
from rnnlab.options import Initialisation, LossAverage
from rnnlab.parameters import Parameters
from rnnlab.types import Array


class Averages(NamedTuple):
    """How losses of a batch, or of a part of one, become averages over the whole."""

    divisor: int  # of the sum over tokens
    share: float  # of the whole's examples: the factor of what is a mean over the part's own


class EncoderDecoder(Model):
    """Encoder, word vectors, decoder and output as one model.

    Parameters
    ----------
    word_to_idx : mapping of str to int
        The vocabulary of the sentences. Padding is ``<NULL>``; decoding needs ``<START>`` and ``<END>``.
    encoder, embedding, decoder, output : parts
        See :mod:`rnnlab.models.parts.encoders`.
    loss_average : "batch" or "token"
    label_smoothing : float in [0, 1)
    doubly_stochastic : float
        The weight of that loss of the attention to the source; 0 is none.
    reconstruction : float
        The weight of the loss of ``reconstructor``, likewise.
    reconstructor : Reconstructor or None
        The ARNet of the decoder's hidden states.
    encoder_reconstruction, encoder_reconstructor
        The same of what a token encoder makes.
    initialisation, init_scale, rng, dtype, device
        Of the parameters.
    """

    _inputs: Callable[..., tuple[Any, int]]  # (function, source) -> what the encoder reads, checked, and N
    _padded_inputs: Callable[[Any], dict[str, Array]]  # what the encoder reads -> its arrays, padded
    _inputs_of_padded: Callable[[Mapping[str, Array]], Any]  # and back, once they are on the device

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
        self.start_token: Any = self.word_to_idx.get("<START>")  # None where the vocabulary has none
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
        taught: Teaching,
        rng: Random,
        grads: Parameters | None,
        sampling: float = 0.0,
        part_of: Batch | None = None,
    ) -> tuple[float, Parameters]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        With the probability ``sampling`` a word that is read is the model's own.
        """
        self._check_losses("loss")
        check_rng(f"{type(self).__name__}.loss", rng)
        check_sampling(f"{type(self).__name__}.loss", sampling, rng)
        if rng is not None and sampling:
            taught = self._with_samples(inputs, taught, sampling, rng)
        averages = self._averages(taught, part_of)
        grads, taught = self._room(grads, part_of), taught.on(self._ops)
        return self._ops.scalar(self._taught_loss(inputs, taught, averages, grads, rng)), grads

    def _taught_loss(
        self, inputs: Any, taught: Teaching, averages: Averages, grads: Parameters, rng: Random
    ) -> float:
        """The loss, with the gradient of every parameter added into ``grads``."""
        params = self.params
        source, encoded = self.encoder.forward(params, inputs, rng=rng)
        words, embedded = self.embedding.forward(params, taught.inputs, rng=rng, checked=taught.is_padded)
        decoded, cache = self.decoder.forward(params, words, source, taught.lengths, rng)
        loss, ddecoded, dread = self._score(decoded, words, source, taught, averages, grads, rng)
        del decoded  # its memory serves the backward
        dwords, dsource = self.decoder.backward(ddecoded, cache, grads)
        if dread is not None:
            dwords += dread
        self.embedding.backward(dwords, embedded, grads)
        if self.encoder_reconstruction:
            weight = self.encoder_reconstruction * averages.share
            term, dmemory = required(self, "encoder_reconstruction", self.encoder_reconstructor).loss(
                params, source.memory, inputs, weight=weight, grads=grads
            )
            loss += term
            if dsource.memory is not None:
                dmemory += dsource.memory
            dsource = dsource._replace(memory=dmemory)
        self.encoder.backward(dsource, encoded, grads)
        return loss

    def padded(self, inputs: Any, tokens: Array, *, part_of: Batch | None = None) -> Padded:
        """A batch as :meth:`padded_loss` takes it, once its arrays are on the model's device.

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
        taught = self._taught("loss", "tokens", tokens, rows)
        averages = self._averages(taught, part_of)
        arrays = taught.padded(averages.divisor, self.null_token, self.dtype)
        return Padded(self._padded_inputs(inputs) | arrays, averages.share, self._loss_weights)

    def padded_loss(self, batch: Padded, *, rng: Random = None, grads: Parameters) -> Any:
        """The loss of a batch from :meth:`padded`, which adds its gradients into ``grads``.

        It waits for nothing, and what it does follows from the shapes of the arrays alone.
        """
        inputs, taught = self._inputs_of_padded(batch.arrays), Teaching.of_padded(batch.arrays)
        return self._taught_loss(inputs, taught, Averages(1, batch.share), grads, rng)

    def _with_samples(
        self, inputs: Any, taught: Teaching, sampling: float, rng: np.random.Generator
    ) -> Teaching:
        """Scheduled sampling: the same targets, but some of the words that are read are the model's own."""
        tokens = taught.inputs
        real = (tokens != self.null_token) & (np.arange(tokens.shape[1]) < taught.lengths[:, None])
        places, points = choose_places(real, sampling, rng)
        if not places.any():
            return taught
        return taught._replace(inputs=sampled_inputs(self, self._start(inputs), tokens, places, points))

    def _averages(self, taught: Teaching, part_of: Batch | None) -> Averages:
        """Those of a batch, or of a part of one."""
        rows = len(taught.lengths)
        N, tokens = averaged_over(f"{type(self).__name__}.loss", rows, taught.num_targets, part_of)
        return Averages(loss_divisor("loss", self.loss_average, N, tokens), rows / max(1, N))

    def _score(
        self,
        decoded: Decoded,
        words: Array,
        source: Source,
        taught: Teaching,
        averages: Averages,
        grads: Parameters,
        rng: Random,
    ) -> tuple[float, Decoded, Array | None]:
        """The loss of what was decoded; its gradient, and that of the words that the output read."""
        readout = self._readout(decoded, words, taught)
        loss, dreadout = output_loss(
            self.output,
            self.params,
            readout,
            taught.targets,
            weights=1 / averages.divisor if taught.weights is None else taught.weights,
            grads=grads,
            label_smoothing=self.label_smoothing,
            rng=rng,
        )
        dweights = {}
        if self.doubly_stochastic:
            weight = self.doubly_stochastic * averages.share
            term, dterm = doubly_stochastic_loss(
                decoded.weights["source"], taught.lengths, mask=taught.mask, memory_mask=source.mask
            )
            loss += weight * term
            dweights["source"] = weight * dterm
        dhidden, dcontexts, dread = (None if rows is None else taught.spread(rows) for rows in dreadout)
        dfirst = None
        if self.reconstruction:
            term, dstates, dfirst = required(self, "reconstruction", self.reconstructor).loss(
                self.params,
                decoded.hidden,
                decoded.first,
                taught.lengths,
                weight=self.reconstruction * averages.share,
                grads=grads,
                mask=taught.mask,
            )
            loss += term
            dhidden += dstates
        return loss, Decoded(dhidden, dcontexts, dweights, dfirst), dread

    def _nll(self, inputs: Any, taught: Teaching) -> tuple[float, int]:
        """The negative log-likelihood of a batch in nats, and its tokens; without noise and gradients."""
        params, taught = self.params, taught.on(self._ops)
        source, _ = self.encoder.forward(params, inputs)
        words, _ = self.embedding.forward(params, taught.inputs)
        decoded, _ = self.decoder.forward(params, words, source, taught.lengths)
        readout = self._readout(decoded, words, taught)
        return output_nll(self.output, params, readout, taught.targets), taught.num_targets

    def _align(self, inputs: Any, taught: Teaching) -> Array:
        """The attention (N, T, L) to the source under teacher forcing."""
        if not self.attends_to_source:
            raise ValueError(f"{type(self).__name__}: this model does not attend to its source")
        return self._ops.asnumpy(self._decoded(inputs, taught).weights["source"])

    def _decoded(self, inputs: Any, taught: Teaching) -> Decoded:
        """What the decoder makes under teacher forcing, without noise."""
        source, _ = self.encoder.forward(self.params, inputs)
        words, _ = self.embedding.forward(self.params, taught.inputs)
        return self.decoder.forward(self.params, words, source, taught.lengths)[0]

    def last_states(self, source: Any, sentences: Array) -> Array:
        """The hidden state that emits the last token of each sentence, under teacher forcing, without noise.

        Of a sentence that the model has written, it is the state in which it wrote that token.

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
            If source or sentences do not fit, or a sentence has no token after its first.
        """
        inputs, N = self._inputs("last_states", source)
        taught = self._taught("last_states", "sentences", sentences, N)
        if not taught.lengths.all():
            row = int(np.flatnonzero(taught.lengths == 0)[0])
            raise ValueError(
                f"{type(self).__name__}.last_states: sentence {row} has no token after its first"
            )
        hidden, T = self._decoded(inputs, taught).hidden, taught.inputs.shape[1]
        last = self._ops.asarray(np.arange(N) * T + taught.lengths - 1)
        return self._ops.asnumpy(taught._replace(real=last).gather(hidden))

    def _readout(self, decoded: Decoded, words: Array, taught: Teaching) -> Readout:
        """What is scored, at the targets."""
        hidden = taught.gather(decoded.hidden)
        if not self.output.is_deep:
            return Readout(hidden)
        contexts = None if decoded.contexts is None else taught.gather(decoded.contexts)
        return Readout(hidden, contexts, taught.gather(words))

    def _taught(self, function: str, name: str, tokens: Array, rows: int) -> Teaching:
        """Sentences (N, L), checked."""
        function, words = f"{type(self).__name__}.{function}", self.embedding.vocabulary_size
        return Teaching.of(check_sentences(function, name, tokens, rows, words), self.null_token)

    # ------------------------------------------------------------------ decoding

    def _start(self, inputs: Any) -> Any:
        source, _ = self.encoder.forward(self.params, inputs)
        return self.decoder.start(self.params, source)

    def read(self, state: Any, tokens: Array) -> tuple[Readout, Any]:
        """Read a token a row, (N,); return what the next is scored from, and the state then."""
        words, _ = self.embedding.forward(self.params, tokens)
        decoded, state = self.decoder.advance(words, state)
        return Readout(decoded.hidden, decoded.contexts, words), state

    def advance(self, state: Any, tokens: Array) -> tuple[Array, Any]:
        """Read a token a row, (N,); return log-probabilities (N, V) of the next, and the state then."""
        readout, state = self.read(state, tokens)
        scores, _ = self.output.forward(self.params, readout)
        return ops_for(scores).log_softmax(scores), state

    @property
    def attends_to_source(self) -> bool:
        """Whether :meth:`attention` has something to say."""
        return getattr(self.decoder, "attends_to_source", False)

    def attention(self, state: Any) -> Array:
        """The weights (N, L) of the step that led to a state, of a model that attends to its source.

        Raises
        ------
        ValueError
            If it does not.
        """
        if not self.attends_to_source:
            raise ValueError(f"{type(self).__name__}: this model does not attend to its source")
        return state[1]
