"""The array primitives: what every library's module in :mod:`rnnlab.ops` provides.

:class:`Primitives` declares each primitive once, with its shapes. :mod:`rnnlab.ops.numpy` is the reference,
:mod:`rnnlab.ops.numba` has compiled kernels for NumPy arrays, :mod:`rnnlab.ops.cuda` works on CuPy arrays.

Conventions, unless a docstring says otherwise:

- Arrays are float32 or float64, all of one dtype, and C-contiguous; index arrays are int64.
- A primitive writes its last arguments and reads the others. An array that is written overlaps no other
  argument, and its previous content is not read.
- ``gates`` (n, num_gates H) hold pre-activations before the call and activations after it. ``da`` is a
  gradient with respect to pre-activations. n is the number of rows of one step, H that of hidden units.
- ``masks`` are a step's dropout and zoneout; see :class:`~rnnlab.ops.step_masks.StepMasks`.
- ``slots`` (n, L) lists the distinct memory rows that each query may attend to; -1 marks an empty slot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from rnnlab.ops.beams import BeamRules, BeamStep, Found
from rnnlab.ops.step_masks import ChunkMasks, StepMasks
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array, Shape, State

__all__ = ["Primitives"]


class Primitives(Protocol):
    """The functions of a module of primitives."""

    __name__: str

    @property
    def CHUNK(self) -> int:
        """How many times more steps of a sequence form a chunk than on NumPy."""

    # ------------------------------------------------------------ arrays

    def empty(self, shape: int | Shape, dtype: DTypeLike = float) -> Array:
        """An array of undefined content."""

    def zeros(self, shape: int | Shape, dtype: DTypeLike = float) -> Array:
        """An array of zeros."""

    def asarray(self, x: Any, dtype: DTypeLike | None = None) -> Array:
        """The array x, or numbers of the host, as an array of this library; copied only where needed."""

    def asnumpy(self, x: Array) -> Array:
        """The array in the host's memory; waits for the device."""

    def fetch(self, x: Array) -> Callable[[], Array]:
        """A function that waits for the work up to this call and returns the array in the host's memory.

        It does not wait for later work, which must not change x.
        """

    def indices(self, x: Array) -> Array:
        """Integers of any width, in an array of any library, as the index array that primitives take."""

    def scalar(self, x: Any) -> Any:
        """A number as a Python float; an array () on a device unchanged, so that nothing waits for it."""

    def prefetch(self, x: Array, like: Array) -> Array:
        """The array x in the dtype and on the device of ``like``, copied while other work continues.

        The caller must keep the result until the work that reads it is done, because its memory is reused.
        """

    def concatenate(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        """The arrays joined along an axis; in a step that is captured as a CUDA graph, at most 8 arrays."""

    def take(self, x: Array, rows: Array, out: Array) -> None:
        """Write x[rows] to ``out``, (M, D) (n,) -> (n, D). There may be gaps between the rows of both."""

    def put(self, x: Array, rows: Array, out: Array) -> None:
        """Write x (n, D) to out[rows], (M, D); no row occurs twice. Layout as in :meth:`take`."""

    def clear(self, x: Array) -> None:
        """x (P,) = 0."""

    # ------------------------------------------------------------ matrix products

    def matmul(self, x: Array, w: Array) -> Array:
        """The product x w, (M, K) (K, N) -> (M, N); with three axes, that of each pair of matrices."""

    def affine(self, x: Array, w: Array, b: Array) -> Array:
        """The product x w + b, (M, D) (D, H) (H,) -> (M, H)."""

    def prepacked(self, w: Array) -> Array:
        """The matrix w (K, G) in the layout that is fastest for repeated products."""

    def affine_into(self, x: Array, w: Array, b: Array, out: Array) -> None:
        """Write x w + b to ``out``, (n, K) (K, G) (G,) -> (n, G), as :meth:`matmul_into`."""

    def matmul_into(self, x: Array, w: Array, out: Array) -> None:
        """Write x w to ``out``, (n, K) (K, G) -> (n, G). w may be prepacked, all may be strided."""

    def matmul_add(self, x: Array, w: Array, out: Array) -> None:
        """Add x w to ``out``, (n, K) (K, G) -> (n, G), as :meth:`matmul_into`."""

    def add_column_sums(self, x: Array, out: Array) -> None:
        """Add the sum of all rows of x (M, N) to ``out`` (N,): the gradient of a bias."""

    def add_affine_gradients(self, x: Array, dout: Array, dW: Array, db: Array) -> None:
        """Add x^T dout to dW (K, G) and the sum of all rows of dout to db (G,); x (n, K), dout (n, G)."""

    # ------------------------------------------------------------ activations, words, scores

    def sigmoid(self, x: Array, out: Array | None = None) -> Array:
        """The logistic function 1 / (1 + exp(-x)) of any shape; ``out`` may be x itself."""

    def tanh(self, x: Array, out: Array | None = None) -> Array:
        """The hyperbolic tangent of any shape; ``out`` may be x itself."""

    def embedding_gradient(self, dout: Array, tokens: Array, dW: Array) -> None:
        """Add row m of dout (M, W) to row tokens[m] of dW (V, W)."""

    def softmax_cross_entropy(
        self, scores: Array, targets: Array, scale: float | Array, dscores: Array, smoothing: float = 0.0
    ) -> Array:
        """The cross-entropy of each row, (M, V) (M,) -> (M,); ``dscores`` gets its gradient times ``scale``.

        It is (1 - smoothing) times the negative log-likelihood of the target plus smoothing times the mean
        over all V classes. ``scale`` is a number or (M,). ``dscores`` may be ``scores``.
        """

    def log_softmax(self, scores: Array, out: Array | None = None) -> Array:
        """The log-probabilities of each row, (M, V) -> (M, V). ``out`` may be ``scores``."""

    def top(self, scores: Array, count: int) -> tuple[Array, Array]:
        """The columns and values (n, count) of the largest scores of each row (n, V), largest first.

        Equal scores stay in the order of their columns; NaN counts as the largest. If V < count, the values
        beyond V are minus infinity. The column of a value of minus infinity is 0.
        """

    def draw(self, scores: Array, uniform: Array, temperature: float = 1.0) -> Array:
        """Draw a column (n,) of each row of scores (n, V) from the row's softmax(scores / temperature).

        It is the first column at which the cumulative probability exceeds ``uniform`` (n,), float64 numbers
        in [0, 1). A row in which all scores are minus infinity gives its last column, and a row with NaN its
        first NaN. A row with plus infinity gives an arbitrary column.
        """

    def max_pool(self, x: Array, values: Array) -> Array:
        """Write the maximum over the L slots of x (n, L, V) to ``values`` (n, V); return its slots (n, V).

        The first of equal numbers is taken. NaN counts as the largest. L is at least 1.
        """

    def max_pool_gradient(self, dvalues: Array, slots: Array, dx: Array) -> None:
        """Backward of :meth:`max_pool`: write ``dvalues`` to ``dx`` (n, L, V) at ``slots``, else zero."""

    def multilabel_margin(self, scores: Array, words: Array, scale: float, dscores: Array) -> Array:
        """The sum of max(0, 1 - (s_j - s_i)) over words j and other columns i, (M, V) (M, K) -> (M,).

        Each row of ``words`` lists columns, -1 for none. A column that is listed twice counts once.
        ``dscores`` gets the gradient of each row's loss times ``scale``.
        """

    # ------------------------------------------------------------ beam search

    def beam_step(
        self,
        log_probs: Array,
        before: BeamStep,
        found: Found,
        pointers: Array,
        rules: BeamRules,
        places: Array | None = None,
        penalty: Array | None = None,
    ) -> BeamStep:
        """Continue the partial sentences of each beam by a token.

        The K best continuations are chosen. Among equal ones, the first sentence goes first, then the first
        word. Those that end with <END> are finished sentences, and the K best others are the next partial
        sentences. Beams whose ``status`` is not GOING get empty slots.

        Parameters
        ----------
        log_probs : (b0 S, V)
            Log-probabilities of the next token, for each slot of each beam of ``before``.
        before : BeamStep
            b0 beams with S slots.
        found : Found
            Updated.
        pointers : (2, B, K) int64
            Written for the beams of this step: the words, and the slots of the sentences that they continue.
        rules : BeamRules
        places : (b,) int64, optional
            The beams to continue, as indices into the beams of ``before``; all by default.
        penalty : (b, V), optional
            Subtracted from the log-probabilities for the ranking only. The penalty of <END> must be zero.

        Returns
        -------
        BeamStep
            b beams with K slots.
        """

    def beam_words(self, pointers: Array, beams: Array, lengths: Array, slots: Array) -> tuple[Array, Array]:
        """Follow the pointers (T, 2, B, K) of M sentences back from their slots after the last word.

        Returns
        -------
        words : (M, T) int64
            Zero past the end of a sentence.
        path : (M, T + 1) int64
            The slot after 0, 1, ... words. Past the end of a sentence, its last slot.
        """

    # ------------------------------------------------------------ recurrent steps

    def rnn_forward(self, gates: Array, h: Array) -> None:
        """Activate ``gates`` (n, H) by tanh; copy them to h."""

    def rnn_backward(self, dh: Array, gates: Array, da: Array) -> None:
        """Write da = dh (1 - gates^2), (n, H); ``da`` may be ``dh``."""

    def lstm_forward(self, gates: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
        """Activate i, f, o, g in ``gates`` (n, 4H); write c = f prev_c + i g, tanh(c) and h = o tanh(c)."""

    def lstm_backward(
        self, dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array
    ) -> None:
        """Write da (n, 4H) and turn ``dc`` from the gradient of c_t into that of c_{t-1}."""

    def gru_gates_forward(self, gates: Array, prev_h: Array, reset_h: Array) -> None:
        """Activate z and r in ``gates`` (n, 3H); write reset_h = r prev_h, (n, H)."""

    def gru_gates_backward(self, dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
        """Write the r part of da (n, 3H); add dreset_h r to ``dh``. ``dreset_h`` is undefined afterwards."""

    def gru_candidate_forward(self, gates: Array, prev_h: Array, h: Array) -> None:
        """Activate g in ``gates`` (n, 3H), where z is activated; write h = (1 - z) g + z prev_h."""

    def gru_candidate_backward(self, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
        """Write the z and g parts of da (n, 3H); multiply ``dh`` by z: the direct part of dprev_h."""

    def simplified_gru_forward(self, gates: Array, prev_h: Array, h: Array) -> None:
        """Activate z, g in ``gates`` (n, 2H); write h = (1 - z) g + z prev_h."""

    def simplified_gru_backward(self, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
        """Write da (n, 2H); multiply ``dh`` by z: the direct part of dprev_h."""

    def steps_forward(
        self,
        cell: str,
        gates: Array,
        weights: Sequence[Array],
        states: State,
        saved: Array,
        steps: Steps,
        inputs: StepInputs | None = None,
        masks: ChunkMasks | None = None,
    ) -> bool:
        """Run consecutive steps of packed sequences at once, if this library can.

        Parameters
        ----------
        cell : "rnn", "lstm", "gru" or "simplified_gru"
        gates : (M, G)
            x Wx + b of all packed rows. The rows of ``steps`` are overwritten by activations.
        weights : sequence of arrays
            The recurrent weights (H, G), from :meth:`prepacked`. A GRU has two, (H, 2H) of the gates z and r,
            and (H, H) of the candidate.
        states : (h,) or (h, c), each (N + M, H)
            Those after each step are written.
        saved : (M, H) or (M, 0)
            Written: tanh(c) of an LSTM, before zoneout; r h_{t-1} of a GRU. An RNN and a simplified GRU have
            none, (M, 0).
        steps : Steps
        inputs : StepInputs, optional
            The factors from which x Wx + b of these steps is computed. Without them ``gates`` holds x Wx + b
            already.
        masks : ChunkMasks, optional

        Returns
        -------
        bool
            Whether the steps have run. If not, nothing is written except x Wx + b of ``inputs``.
        """

    def steps_backward(
        self,
        cell: str,
        dh: Array,
        dstate: State,
        gates: Array,
        weights: Sequence[Array],
        states: State,
        saved: Array,
        da: Array,
        steps: Steps,
        masks: ChunkMasks | None = None,
    ) -> bool:
        """Run the backward of :meth:`steps_forward` at once, if this library can.

        Parameters
        ----------
        dh : (m, H)
            Gradient of the hidden states after these steps, which have m packed rows.
        dstate : as ``states``, each (N, H)
            Gradients of the states from the steps after the last one. They are overwritten with the gradients
            of the states before the first step.
        weights : sequence of arrays
            The transposed weights (G, H), from :meth:`prepacked`.
        da : (m, G)
            Gradient of x Wx + b, written.
        cell, gates, states, saved, steps, masks
            As the forward had and left them.

        Returns
        -------
        bool
            Whether the steps have run. If not, nothing is written.
        """

    # ------------------------------------------------------------ recurrent steps with dropout and zoneout

    def rnn_regularised_forward(self, gates: Array, prev_h: Array, h: Array, masks: StepMasks) -> None:
        """:meth:`rnn_forward` with zoneout of h; ``gates`` hold tanh(a) before zoneout."""

    def rnn_regularised_backward(self, dh: Array, gates: Array, da: Array, masks: StepMasks) -> Array | None:
        """Backward of :meth:`rnn_regularised_forward`; see :meth:`lstm_regularised_backward`."""

    def lstm_regularised_forward(
        self, gates: Array, prev_h: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array, masks: StepMasks
    ) -> None:
        """:meth:`lstm_forward` with masks; h and ``tanh_c`` are computed from c before its zoneout."""

    def lstm_regularised_backward(
        self, dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array, masks: StepMasks
    ) -> Array | None:
        """Backward of :meth:`lstm_regularised_forward`: write da (n, 4H), turn dc into that of c_{t-1}.

        ``dh`` is overwritten with the part of the gradient of h_{t-1} that does not go through the product
        with Wh; the caller adds the product to it. The caller adds a returned array (n, H) after the product.
        """

    def gru_candidate_regularised_forward(
        self, gates: Array, prev_h: Array, h: Array, masks: StepMasks
    ) -> None:
        """:meth:`gru_candidate_forward` with masks."""

    def gru_candidate_regularised_backward(
        self, dh: Array, gates: Array, prev_h: Array, da: Array, masks: StepMasks
    ) -> Array | None:
        """Backward of its forward; ``dh`` and the result as in :meth:`lstm_regularised_backward`."""

    def simplified_gru_regularised_forward(
        self, gates: Array, prev_h: Array, h: Array, masks: StepMasks
    ) -> None:
        """:meth:`simplified_gru_forward` with masks."""

    def simplified_gru_regularised_backward(
        self, dh: Array, gates: Array, prev_h: Array, da: Array, masks: StepMasks
    ) -> Array | None:
        """Backward of its forward; ``dh`` and the result as in :meth:`lstm_regularised_backward`."""

    # ------------------------------------------------------------ masks

    def mask_seeds(self, rng: np.random.Generator, count: int) -> Sequence[int]:
        """Draw seeds in [0, 2^63). In a captured step, each launch of the graph replaces them by new ones."""

    def dropout(self, x: Array, p: float, seed: int, out: Array) -> None:
        """Write x times 0 with probability p, else times 1 / (1 - p); any shape and layout. ``out`` may be x.

        NaN remains NaN, and infinity that is dropped becomes NaN.
        """

    def dropout_mask(self, p: float, seed: int, start: int, out: Array) -> None:
        """Write a mask of a recurrent step: 0 with probability p, else 1 / (1 - p); any shape and layout.

        ``start`` is the index of its first element in the mask of a sequence. The mask is not that of
        :meth:`dropout` with the same seed.
        """

    # ------------------------------------------------------------ attention

    def additive_attention_forward(
        self, query: Array, keys: Array, v: Array, memory: Array, slots: Array, weights: Array, context: Array
    ) -> None:
        """Write the weights softmax(v . tanh(query + key)), (n, L), and the context, (n, C).

        The query is (n, A), the keys (R, A), v (A,) and the memory (R, C). The weights of empty slots are
        zero, and so is the context of a query with empty slots only. Queries may share memory rows. The rows
        of ``slots`` and ``weights`` may be part of wider arrays.
        """

    def additive_attention_backward(
        self, dcontext: Array, query: Array, keys: Array, v: Array, memory: Array, slots: Array,
        weights: Array, dscores: Array, dquery: Array, dkeys: Array, dv: Array,
    ) -> None:  # fmt: skip
        """Add to dquery (n, A), dkeys (R, A) and dv (n, A), which has a row for each query.

        ``dscores`` (n, L) is turned from the gradient of the weights into that of the scores. No two queries
        share a memory row.
        """

    def dot_attention_forward(
        self, query: Array, keys: Array, memory: Array, slots: Array, weights: Array, context: Array
    ) -> None:
        """Write the weights softmax(query . key) and the context, as :meth:`additive_attention_forward`."""

    def dot_attention_backward(
        self, dcontext: Array, query: Array, keys: Array, memory: Array, slots: Array,
        weights: Array, dscores: Array, dquery: Array, dkeys: Array,
    ) -> None:  # fmt: skip
        """Add to dquery (n, A) and dkeys (R, A); otherwise as :meth:`additive_attention_backward`."""

    def attention_memory_gradient(
        self, dcontext: Array, weights: Array, slots: Array, dmemory: Array
    ) -> None:
        """Add weight times dcontext (n, C) to the rows of dmemory (R, C). No two queries share a row."""

    # ------------------------------------------------------------ updates of flat parameters, all (P,)
    # dw is the gradient, and g = scale dw, so that clipping by norm needs no pass of its own. w and the state
    # are updated in place. On a GPU, scale may be an array () of float64; nothing is updated unless it is
    # finite.

    def sgd(self, w: Array, dw: Array, *, learning_rate: float, scale: float = 1.0) -> None:
        """w -= learning_rate g."""

    def momentum(
        self, w: Array, dw: Array, velocity: Array, *,
        learning_rate: float, momentum: float, scale: float = 1.0,
    ) -> None:  # fmt: skip
        """velocity = momentum velocity - learning_rate g; w += velocity (Polyak 1964)."""

    def rmsprop(
        self, w: Array, dw: Array, cache: Array, *,
        learning_rate: float, decay_rate: float, epsilon: float, scale: float = 1.0,
    ) -> None:  # fmt: skip
        """cache = decay_rate cache + (1 - decay_rate) g^2; w -= learning_rate g / (sqrt(cache) + epsilon)."""

    def adagrad(
        self, w: Array, dw: Array, cache: Array, *, learning_rate: float, epsilon: float, scale: float = 1.0
    ) -> None:
        """cache += g^2; w -= learning_rate g / (sqrt(cache) + epsilon) (Duchi, Hazan and Singer 2011)."""

    def adadelta(
        self, w: Array, dw: Array, cache: Array, delta_cache: Array, *,
        learning_rate: float, decay_rate: float, epsilon: float, scale: float = 1.0,
    ) -> None:  # fmt: skip
        """Zeiler (2012), algorithm 1; ``cache`` is E[g^2] and ``delta_cache`` is E[dx^2] of the paper.

        cache       = decay_rate cache + (1 - decay_rate) g^2
        delta       = sqrt(delta_cache + epsilon) / sqrt(cache + epsilon) g
        delta_cache = decay_rate delta_cache + (1 - decay_rate) delta^2
        w          -= learning_rate delta
        """

    def adam(
        self, w: Array, dw: Array, m: Array, v: Array, *,
        step: int, learning_rate: float, beta1: float, beta2: float, epsilon: float, scale: float = 1.0,
    ) -> None:  # fmt: skip
        """Kingma and Ba (2015), algorithm 1; ``step`` is t of the paper, 1 at the first update.

        m  = beta1 m + (1 - beta1) g
        v  = beta2 v + (1 - beta2) g^2
        w -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon)
        """

    def adamw(
        self, w: Array, dw: Array, m: Array, v: Array, *,
        step: int, learning_rate: float, beta1: float, beta2: float, epsilon: float,
        weight_decay: float, scale: float = 1.0,
    ) -> None:  # fmt: skip
        """:meth:`adam` after w -= learning_rate weight_decay w (Loshchilov and Hutter 2019, algorithm 2).

        The paper's schedule multiplier is part of ``learning_rate``, so the decay follows the schedule, too.
        """

    def decay_weights(self, w: Array, *, rate: float, scale: float = 1.0) -> None:
        """w -= rate w. On a GPU nothing is done if the scale is not finite, as in the updates above."""

    def move_towards(self, x: Array, target: Array, *, rate: float) -> None:
        """x += rate (target - x), both (P,): a step of a moving average. It keeps equal finite numbers."""

    def sum_of_squares(self, x: Array) -> Any:
        """The sum of squares of x (P,), a float or an array () on the device; not finite if x is not."""

    def first_non_finite(self, x: Array) -> int | None:
        """The index of the first NaN or infinity in x (P,), None if all elements are finite."""

    def clip_values(self, x: Array, bound: float) -> None:
        """Clip every element of x (P,) to [-bound, bound], in place; NaN remains NaN."""

    def flush_subnormals(self, x: Array) -> None:
        """Set the subnormal elements of x (P,) to zero, in place.

        A decaying average, such as the momentum of a word that no longer occurs, gets stuck at subnormal
        numbers, with which a CPU is many times slower. They are below 1.2e-38 in float32, so they change no
        update by more than rounding, as long as an epsilon that is added to their root is above 1e-11. On a
        GPU this does nothing, because subnormals are not slower there.
        """
