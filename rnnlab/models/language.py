"""LanguageModel: the distribution of sentences without a source, and sentences that continue a prompt.

    p(w_1 .. w_T) = p(w_1 | <START>) p(w_2 | <START> w_1) ...          by recurrent layers, from a zero state

A running text is read in windows. Each begins at the state that the window before has left, and the gradient
ends where the window begins: truncated backpropagation through time (Williams and Peng 1990).

:mod:`rnnlab.models.encoder_decoder` has the rest of the model (Mikolov et al. 2010; with attention to its own
past states, Xia et al. 2017).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.attention.contexts import Delay
from rnnlab.layers.checks import as_padded, as_tokens
from rnnlab.models.base import BatchSize, RegularisationOptions, announces_gradients, checked_options
from rnnlab.models.encoder_decoder import EncoderDecoder
from rnnlab.models.input_gradients import LanguageGradients
from rnnlab.models.parts.initialisation import INIT_SCALE
from rnnlab.models.parts.no_source import Beginning, NoSource
from rnnlab.models.parts.output import OutputInputs
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.options import (
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
from rnnlab.types import Array, State


class Prompted(NamedTuple):
    """The decoding state after all tokens of a prompt but the last, which is read at the first step."""

    state: Any
    last: Array  # (N,)


class LanguageModel(EncoderDecoder):
    """A recurrent network that predicts each word of a sentence from the words before it.

    Parameters
    ----------
    word_to_idx : mapping of str to int
        The vocabulary, V words or characters. Padding is ``<NULL>``; decoding needs ``<START>`` and
        ``<END>``.
    wordvec_dim : int
        W, size of a word vector.
    hidden_dim : int
        H, units of each recurrent layer.
    cell_type : "rnn", "lstm", "gru", "simplified_gru" or another name
        The recurrent cell: a built-in one, a registered one, or "package.module:Object".
    dtype : dtype
        The dtype of all parameters and arithmetic: float32 for training, float64 for gradient checks.
    decoder_layers : int
        Number of stacked recurrent layers. Each starts at zero and reads the hidden states of the layer
        below; the output reads those of the last one.
    target_attention : bool
        Whether the first layer attends to its own past states, with additive scores (Xia et al. 2017).
    target_delay : int, optional
        At least 2, with ``target_attention``: the first layer does not attend to its past, but reads the
        state this many steps back (Xia et al. 2017, section 3.4).
    attention_dim : int, optional
        With ``target_attention``: units of its scores, ``hidden_dim`` if left out.
    output : "linear", "concat" or "deep"
        What the scores are computed from: the hidden state alone; the hidden state, the input word and the
        context, by one affine map (Xia et al. 2017, eq. 11); or the same through a hidden layer (Xu et al.
        2015, eq. 7).
    tied_embeddings : bool
        Whether the word vectors are also the weight of the scores, W_vocab = W_embed^T (Press and Wolf
        2017). With the "linear" output this needs ``hidden_dim`` equal to ``wordvec_dim``; an error with
        "concat".
    word_dropout : float in [0, 1)
        Probability of dropping an element of a word vector.
    layer_dropout : float in [0, 1)
        Probability of dropping an element of the hidden states that layers 2 and higher read. Must be 0 with
        a single layer.
    output_dropout : float in [0, 1)
        Probability of dropping an element of the vectors that are scored: the hidden states; with
        ``output="concat"`` the words and contexts as well; with ``output="deep"`` the units of the deep
        layer.
    reconstruction : float >= 0
        Weight of ARNet's loss, which reconstructs each hidden state from the next one (X. Chen et al. 2018,
        eq. 9), a mean over the batch whatever ``loss_average`` is. Not part of :meth:`nll`. It is also an
        attribute, which may change between two calls of :meth:`loss`.
    reconstructor_dim : int, optional
        Units of ARNet, ``hidden_dim`` if left out. If it is given, the model has an ARNet even where the
        weight of its loss is 0.
    detach_target : bool
        Whether the states that ARNet reconstructs are treated as constants; in the paper they are not. Needs
        an ARNet.
    label_smoothing : float in [0, 1)
        Share of a token's probability that the loss spreads over all words (Szegedy et al. 2016).
    loss_average : "batch" or "token"
        Divide the loss, a sum over all real tokens, by the batch size or by their number.
    forget_bias : float
        Initial value of the biases of an LSTM's forget gates (Gers et al. 2000; Jozefowicz et al. 2015
        recommend 1). Must be 0 for a cell without a forget gate.
    initialisation : "course" or "uniform"
        "course": weights from N(0, 1) / sqrt(fan-in), word vectors from N(0, 1) / 100, or with
        ``tied_embeddings`` from N(0, 1) / sqrt(wordvec_dim). "uniform": all from U(-init_scale, init_scale).
        Biases start at zero.
    init_scale : float > 0
        Bound of the "uniform" initialisation. Other values than 0.08 need "uniform".
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
        By name: W_embed, Wx, Wh, b, W_vocab, b_vocab for a single layer with the "linear" output, the names
        of a :class:`~rnnlab.models.CaptioningRNN`.

    Raises
    ------
    ValueError
        If an option does not fit; the error names it.
    """

    def __init__(
        self,
        word_to_idx: Mapping[str, int],
        wordvec_dim: Count = 128,
        hidden_dim: Count = 128,
        cell_type: CellType = "lstm",
        dtype: FloatType = np.float32,
        *,
        decoder_layers: Count = 1,
        target_attention: bool = False,
        target_delay: Delay | None = None,
        attention_dim: Count | None = None,
        output: Output = "linear",
        tied_embeddings: bool = False,
        word_dropout: Probability = 0.0,
        layer_dropout: Probability = 0.0,
        output_dropout: Probability = 0.0,
        reconstruction: NotNegative = 0.0,
        reconstructor_dim: Count | None = None,
        detach_target: bool = False,
        label_smoothing: Probability = 0.0,
        loss_average: LossAverage = "token",
        forget_bias: Number = 0.0,
        initialisation: Initialisation = "course",
        init_scale: Positive = INIT_SCALE,
        regularisation: RegularisationOptions = None,
        rng: np.random.Generator | int = 0,
        device: str = "cpu",
    ) -> None:
        options = checked_options(LanguageModel, locals())
        super().__init__(options, word_to_idx, memory_dim=0, rng=rng, device=device)

    def __repr__(self) -> str:
        names = ["cell_type", "wordvec_dim", "hidden_dim", "decoder_layers"]
        more = ("target_attention", "target_delay", "tied_embeddings")
        names += [name for name in more if self._options[name]]
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        sizes = f"{len(self.word_to_idx):,} words, {self.params.flat.size:,} {self.dtype} parameters"
        return f"LanguageModel({options}; {sizes})"

    # ------------------------------------------------------------------ training

    @announces_gradients
    def loss(
        self,
        sentences: Array,
        *,
        state: Sequence[Array] | None = None,
        return_state: bool = False,
        rng: np.random.Generator | None = None,
        grads: Parameters | None = None,
        sampling: float = 0.0,
        part_of: BatchSize | None = None,
        input_gradients: bool = False,
    ) -> tuple[Any, ...]:
        """The loss of a batch under teacher forcing, and the gradient of every parameter.

        Parameters
        ----------
        sentences : (N, L) integers in [0, V)
            ``<START>``, the words, ``<END>``, then ``<NULL>``. The model reads all tokens of a row except
            the last and predicts all except the first. ``<NULL>`` is not scored.
        state : sequence of (N, H) arrays, optional
            The state at the beginning of each row, zeros if left out. For a window of a running text it is
            what the loss of the window before has returned. No gradient flows into it. Not with
            ``target_attention``.
        return_state : bool
            Whether to return the state at the end of each row as well. Not with ``target_attention``.
        rng : numpy Generator, optional
            Draws the masks of dropout and zoneout. Without it nothing is dropped, and zoneout takes its
            expectation, as in inference.
        grads : Parameters, optional
            Overwritten with the gradients. New arrays are allocated if it is left out.
        sampling : float in [0, 1]
            Scheduled sampling: the probability that the model reads a word drawn from its own distribution
            instead of the true one (:mod:`rnnlab.models.parts.scheduled_sampling`). Needs ``rng``.
        part_of : (int, int), optional
            The numbers of examples and tokens of the batch that this one is a part of. Losses are then
            averaged over that batch, and gradients are added into ``grads``, so that the losses and gradients
            of the parts add up to those of the batch.
        input_gradients : bool
            Whether to return the gradients of the inputs as well.

        Returns
        -------
        loss : float, or on a GPU an array () whose computation may still be running
        grads : Parameters
        inputs : LanguageGradients
            Only with ``input_gradients``. See :mod:`rnnlab.models.input_gradients`.
        state : tuple of (N, H) arrays
            Only with ``return_state``, as the last result: for each layer h, of an LSTM h and c.

        Raises
        ------
        IndexError
            If a token is out of range.
        ValueError, TypeError
            If a shape or a dtype is wrong.
        """
        begin, forced = self._batch("loss", sentences, state=state, return_state=return_state)
        return self._loss(begin, forced, rng, grads, sampling, part_of, input_gradients, return_state)

    def nll(
        self, sentences: Array, *, state: Sequence[Array] | None = None, return_state: bool = False
    ) -> tuple[Any, ...]:
        """The negative log-likelihood of a batch, as in inference, without gradients.

        Parameters
        ----------
        sentences, state, return_state
            As in :meth:`loss`.

        Returns
        -------
        total : float
            Summed over all real tokens, in nats.
        tokens : int
            Number of real tokens. exp(total / tokens) is the perplexity.
        state : tuple of (N, H) arrays
            Only with ``return_state``.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        begin, forced = self._batch("nll", sentences, state=state, return_state=return_state)
        return self._nll(begin, forced, return_state=return_state)

    @staticmethod
    def num_examples(batch: Sequence[Any]) -> int:
        """The number of sentences of a batch."""
        return len(batch[0])

    def _batch(
        self,
        function: str,
        *batch: Any,
        name: str = "sentences",
        state: Sequence[Array] | None = None,
        return_state: bool = False,
        **options: Any,
    ) -> tuple[Beginning, TeacherForced]:
        function = f"LanguageModel.{function}"
        if len(batch) != 1:
            raise InputTypeError(f"{function}: found {len(batch)} arguments, expected sentences alone")
        words, options = self.embedding.vocabulary_size, {**options, "several": False}
        forced = TeacherForced.checked(function, name, *batch, None, words, self.null_token, **options)
        if self.decoder.attends_to_past and (return_state or state is not None):
            raise InputError(
                f"{function}: state is given or return_state is True, expected neither: this model attends "
                "to all its past states, and a state holds only the last ones"
            )
        rows = len(forced.inputs)
        return Beginning(rows, state if state is None else self._state(function, state, rows)), forced

    def _state(self, function: str, state: Any, rows: int) -> State:
        """The checked arrays of a state of N rows."""
        layers, shape = self._options["decoder_layers"], (rows, self._options["hidden_dim"])
        count = layers * self.decoder.num_states
        if not isinstance(state, tuple | list) or len(state) != count:
            found = f"{len(state)} arrays" if isinstance(state, tuple | list) else type(state).__name__
            raise InputTypeError(
                f"{function}: state is {found}, expected a tuple of {count} arrays of shape (N, H) = "
                f"{shape}, as return_state gives it"
            )
        arrays = [self._floats(f"{function}: state[{k}]", array) for k, array in enumerate(state)]
        for k, array in enumerate(arrays):
            if array.shape != shape:
                raise InputError(
                    f"{function}: state[{k}] has shape {array.shape}, expected (N, H) = {shape}, a row for "
                    "each of the sentences"
                )
        return tuple(arrays)

    def _build_encoder(self, recurrence: Recurrence, num_states: int) -> NoSource:
        return NoSource(self._options["hidden_dim"], num_states)

    def _inputs(self, function: str, source: Any) -> tuple[Beginning, int]:
        rows = len(self._prompts(function, source))
        return Beginning(rows), rows

    def _prompts(self, function: str, prompts: Any) -> Array:
        """The checked prompts."""
        function = f"LanguageModel.{function}"
        prompts = as_padded(function, "prompts", prompts, "equally many tokens in each, without <NULL>")
        if prompts.ndim != 2 or not prompts.shape[1]:
            raise InputError(
                f"{function}: prompts has shape {prompts.shape}, expected (N, P) with P of at least 1: "
                "<START> and any words, such as data.prompt(text)"
            )
        prompts = as_tokens(function, "prompts", prompts, len(self.word_to_idx))
        if self.start_token is None:
            raise InputError(f"{function}: word_to_idx has no <START>, with which a prompt begins")
        ends = [token for token in (self.null_token, self.end_token) if token is not None]
        wrong = (prompts[:, 0] != self.start_token) | np.isin(prompts, ends).any(axis=1)
        if wrong.any():
            raise InputError(
                f"{function}: prompts has the row {prompts[wrong][0].tolist()!r:.60}, expected the model's "
                f"<START> first, the token {self.start_token}, then words without <NULL> and <END>"
            )
        return prompts

    def _padded_inputs(self, inputs: Beginning) -> dict[str, Array]:
        return {}

    def _inputs_of_padded(self, arrays: Mapping[str, Array]) -> Beginning:
        return Beginning(len(arrays["read"]))

    def _input_gradients(self, dinputs: None, dwords: Array, dhidden: Array) -> LanguageGradients:
        return LanguageGradients(dwords, dhidden)

    # ------------------------------------------------------------------ decoding

    def start(self, prompts: Array) -> Any:
        """The decoding state of sentences that begin with these prompts.

        Parameters
        ----------
        prompts : (N, P) integers in [0, V)
            ``<START>`` and any words, equally many in each row, without ``<NULL>`` and ``<END>``:
            ``[[model.start_token]]`` begins a sentence from nothing. A search continues each row, and returns
            the words after it.

        Raises
        ------
        IndexError, ValueError, TypeError
            If a shape, a dtype or a token is wrong.
        """
        prompts = self._prompts("start", prompts)
        state = self._start(Beginning(len(prompts)))
        for tokens in prompts.T[:-1]:
            _, state = self.read(state, tokens)
        return Prompted(state, prompts[:, -1])

    def read(self, state: Any, tokens: Array) -> tuple[OutputInputs, Any]:
        """Read one token per row, (N,). Return the output layer's inputs and the next state.

        The first step after :meth:`start` reads the last token of each prompt, whatever ``tokens`` are.
        """
        if isinstance(state, Prompted):
            state, tokens = state
        return super().read(state, tokens)
