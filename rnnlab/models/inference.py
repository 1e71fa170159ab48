"""Inference with models of sentences: likelihoods, attention weights and decoding steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rnnlab.decoding.search import gives_new_array
from rnnlab.decoding.state_rows import num_rows
from rnnlab.errors import InputError, InputTypeError
from rnnlab.models.base import Model
from rnnlab.models.parts.embedding import WordEmbedding
from rnnlab.models.parts.output import OutputInputs
from rnnlab.models.parts.output_loss import OutputLoss
from rnnlab.models.parts.repeats import Repeats
from rnnlab.models.parts.reviewer import NoReviewer, Reviewed, Reviewer
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.models.parts.values import Decoded
from rnnlab.ops import ops_for
from rnnlab.types import Array


class Inference(Model):
    """The part of :class:`~rnnlab.models.encoder_decoder.EncoderDecoder` that needs no gradients.

    Nothing is dropped, and zoneout takes its expectation.
    """

    encoder: Any
    reviewer: Reviewer | NoReviewer
    embedding: WordEmbedding
    decoder: Any
    output: Any
    output_loss: OutputLoss
    null_token: int
    _inputs: Callable[[str, Any], tuple[Any, int]]

    # ------------------------------------------------------------------ teacher forcing

    def _nll(self, inputs: Any, forced: TeacherForced, *, return_state: bool = False) -> tuple[Any, ...]:
        """The negative log-likelihood of a batch in nats, and its number of real targets.

        With ``return_state`` also the state of the decoder after the last word.
        """
        params, forced = self.params, forced.on(self._ops)
        words, _ = self.embedding.forward(params, forced.inputs)
        source = self._reviewed(inputs).source
        source = Repeats(source, len(forced.inputs)).forward(source)
        decoded, cache = self.decoder.forward(params, words, source, forced.lengths)
        further = [self.decoder.last_state(cache)] if return_state else []
        return self.output_loss.nll(params, decoded, words, forced), forced.num_targets, *further

    def _align(self, inputs: Any, forced: TeacherForced) -> Array:
        """The attention weights (N, T, L) over the source under teacher forcing."""
        self._check_attends()
        decoded, alignment = self._decoded(inputs, forced)
        weights = decoded.weights["source"]
        return self._ops.asnumpy(weights if alignment is None else self._ops.matmul(weights, alignment))

    def review(self, source: Any) -> Reviewed:
        """The thought vectors and the attention weights of the reviewer, without dropout.

        Parameters
        ----------
        source : as :meth:`start` takes it, N rows

        Returns
        -------
        Reviewed
            ``thoughts[b]`` (N, L, H) holds the thought vectors of block b + 1, and ``weights[b][j]`` the
            attention weights (N, L, slots) of its steps over memory j. Memory 0 is the encoder's; memory j is
            the thought vectors of block j.

        Raises
        ------
        ValueError, TypeError
            As :meth:`loss`; ValueError also if the model has no reviewer.
        """
        self._check_reviewer()
        reviewed, asnumpy = self._reviewed(self._inputs("review", source)[0]), self._ops.asnumpy
        weights = tuple(tuple(map(asnumpy, block)) for block in reviewed.weights)
        return reviewed._replace(thoughts=tuple(map(asnumpy, reviewed.thoughts)), weights=weights)

    def align_thoughts(self, *batch: Any) -> Array:
        """The attention weights over the last block's thought vectors at each token, under teacher forcing.

        Parameters
        ----------
        *batch
            The source and N sentences (N, M), as :meth:`loss` takes them.

        Returns
        -------
        weights : (N, T, L)
            Their product with the weights of the last block's steps over the source is what ``align``
            returns.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`; ValueError also if the model has no reviewer.
        """
        self._check_reviewer()
        return self._weights("align_thoughts", "source", *batch)

    def align_past(self, *batch: Any) -> Array:
        """The weights of target attention at each token, under teacher forcing (Xia et al. 2017, eq. 6).

        Parameters
        ----------
        *batch
            The source, if the model has one, and N sentences (N, M), as :meth:`loss` takes them.

        Returns
        -------
        weights : (N, T, T)
            Row t holds the weights for predicting ``sentences[:, t + 1]``, and column s those over the hidden
            state that predicts ``sentences[:, s + 1]``, zero from s = t on. T is as in ``align``.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`; ValueError also if the decoder does not attend to its own past.
        """
        if not self.decoder.attends_to_past:
            raise InputError(f"{type(self).__name__}: this model does not attend to the decoder's own past")
        return self._weights("align_past", "target", *batch)

    def _weights(self, function: str, attended: str, *batch: Any) -> Array:
        """The decoder's own attention weights over its "source" or its "target", under teacher forcing."""
        inputs, forced = self._batch(function, *batch, several=False)
        return self._ops.asnumpy(self._decoded(inputs, forced)[0].weights[attended])

    def _check_attends(self) -> None:
        """Raise ValueError if the decoder does not attend to the source."""
        if not self.attends_to_source:
            raise InputError(f"{type(self).__name__}: this model does not attend to its source")

    def _check_reviewer(self) -> None:
        """Raise ValueError if the model has no reviewer."""
        if not self.reviewer.blocks:
            raise InputError(f"{type(self).__name__}: this model has no reviewer")

    def _decoded(self, inputs: Any, forced: TeacherForced) -> tuple[Decoded, Array | None]:
        """The decoder's outputs under teacher forcing, and the alignment of thought vectors, if any."""
        source = self._reviewed(inputs).source
        words, _ = self.embedding.forward(self.params, forced.inputs)
        return self.decoder.forward(self.params, words, source, forced.lengths)[0], source.alignment

    def _reviewed(self, inputs: Any) -> Reviewed:
        """The outputs of encoder and reviewer, as in inference."""
        source, _ = self.encoder.forward(self.params, inputs)
        return self.reviewer.forward(self.params, source)[0]

    def hidden_states(self, *batch: Any) -> Array:
        """The hidden states of the decoder's last layer under teacher forcing.

        Nothing is dropped, and zoneout takes its expectation.

        Parameters
        ----------
        *batch
            The source, if the model has one, and N sentences (N, M), as :meth:`loss` takes them.

        Returns
        -------
        (N, T, H)
            Row t holds the state that predicts ``sentences[:, t + 1]``. After the end of a sentence its last
            state is repeated. T is as in ``align``.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        inputs, forced = self._batch("hidden_states", *batch, several=False)
        return self._ops.asnumpy(self._decoded(inputs, forced)[0].hidden)

    def last_states(self, *batch: Any) -> Array:
        """The hidden state that predicts the last token of each sentence, of the decoder's last layer.

        Under teacher forcing, nothing is dropped, and zoneout takes its expectation. For a sentence that the
        model generated, it is the hidden state from which it generated the last token.

        Parameters
        ----------
        *batch
            The source, if the model has one, and N sentences, as :meth:`loss` takes them; ``<END>`` may be
            missing.

        Returns
        -------
        (N, H)

        Raises
        ------
        IndexError, ValueError, TypeError
            If a shape, a dtype or a token is wrong, or a sentence has no token after its first.
        """
        inputs, forced = self._batch("last_states", *batch, several=False)
        if not forced.lengths.all():
            row = int(np.flatnonzero(forced.lengths == 0)[0])
            raise InputError(
                f"{type(self).__name__}.last_states: sentence {row} has no token after its first"
            )
        hidden, T = self._decoded(inputs, forced)[0].hidden, forced.inputs.shape[1]
        last = self._ops.asarray(np.arange(len(hidden)) * T + forced.lengths - 1)
        return self._ops.asnumpy(forced._replace(target_rows=last).gather(hidden))

    def _batch(
        self, function: str, *batch: Any, name: str = "sentences", **options: Any
    ) -> tuple[Any, TeacherForced]:
        """The encoder's inputs, and the sentences split into inputs and targets, after a check of both.

        ``batch`` is a source and sentences. ``name`` is that of the sentences in errors; ``options`` are
        those of :meth:`TeacherForced.checked`.
        """
        if len(batch) != 2:
            raise InputTypeError(
                f"{type(self).__name__}.{function}: found {len(batch)} arguments, expected the source and "
                "the sentences"
            )
        source, sentences = batch
        inputs, rows = self._inputs(function, source)
        function, words = f"{type(self).__name__}.{function}", self.embedding.vocabulary_size
        forced = TeacherForced.checked(function, name, sentences, rows, words, self.null_token, **options)
        return inputs, forced

    # ------------------------------------------------------------------ decoding

    def _start(self, inputs: Any) -> Any:
        return self.decoder.start(self.params, self._reviewed(inputs).source)

    def read(self, state: Any, tokens: Array) -> tuple[OutputInputs, Any]:
        """Read one token per row, (N,). Return the output layer's inputs and the next state."""
        expected = (num_rows(state),)
        if (shape := getattr(tokens, "shape", expected)) != expected:  # embedding refuses what is no array
            raise InputError(
                f"{type(self).__name__}: tokens has shape {shape}, expected (N,) = {expected}, one for each "
                "row of the state"
            )
        words, looked_up = self.embedding.look_up(self.params, tokens)
        decoded, state = self.decoder.advance(words, state, looked_up)
        return OutputInputs(decoded.hidden, decoded.contexts, words), state

    @gives_new_array
    def advance(self, state: Any, tokens: Array) -> tuple[Array, Any]:
        """Read one token per row, (N,). Return log-probabilities (N, V) and the next state."""
        output_inputs, state = self.read(state, tokens)
        scores, _ = self.output.forward(self.params, output_inputs)
        return ops_for(scores).log_softmax(scores, out=scores), state

    @property
    def attends_to_source(self) -> bool:
        """Whether the decoder attends to the source, which :meth:`attention` needs."""
        return self.decoder.attends_to_source

    def attention(self, state: Any) -> Array:
        """The attention weights (N, L) over the source at the step that led to a state.

        Raises
        ------
        ValueError
            If the model does not attend to its source.
        """
        self._check_attends()
        return self.decoder.attention(state)
