"""SequenceClassifier: the class of a sequence of vectors.

h_k    = cell_k(h_{k-1}),  h_0 = x                   (N, T, H), each layer with an initial state of zeros
r      = sum_t w_t h_t of the last layer             (N, H), the last real state or their mean
scores = dropout(r) W_class + b_class                (N, C)
loss   = softmax cross-entropy, the mean over the batch, + ARNet's loss of the last layer's states

With layers in both directions (Schuster and Paliwal 1997), h_k = [cell_k, its backward cell] and r have 2H
units. The last real state of the backward direction is that of the first step.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np

from rnnlab.errors import InputError
from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
)
from rnnlab.layers.checks import as_array, as_tokens, check_rng
from rnnlab.layers.recurrent.packing import real_lengths
from rnnlab.layers.recurrent.reversal import reversed_rows
from rnnlab.models.base import BatchSize, Model, RegularisationOptions, averaging_size, checked_options
from rnnlab.models.input_gradients import ClassificationGradients
from rnnlab.models.parts.initialisation import INIT_SCALE, set_forget_bias
from rnnlab.models.parts.padding import Padded, real_steps, rounded_up
from rnnlab.models.parts.reconstruction import classifier_reconstructor
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.stacked_layers import StackedLayers
from rnnlab.ops import ops_for
from rnnlab.options import (
    CellType,
    Count,
    FloatType,
    Initialisation,
    NotNegative,
    Number,
    Positive,
    Probability,
    Range,
)
from rnnlab.parameters import Parameters, distinct
from rnnlab.types import Array, Random

StateReadout: TypeAlias = Literal["last", "mean"]  # which states of the last layer are classified

READOUTS = get_args(StateReadout)


class SequenceClassifier(Model):
    """A recurrent network that classifies sequences.

    Parameters
    ----------
    num_classes : int
        C, at least 2.
    input_dim : int
        D, size of a vector of the sequence; 1 for pixels.
    hidden_dim : int
        H, units of a recurrent layer, in each direction.
    cell_type : "rnn", "lstm", "gru", "simplified_gru" or another name
        The recurrent cell: a built-in one, a registered one, or "package.module:Object".
    dtype : dtype
        The dtype of all parameters and arithmetic: float32 for training, float64 for gradient checks.
    readout : "last" or "mean"
        Classify the state after the last real step, or the mean of the states after all real steps.
    num_layers : int
        Number of recurrent layers.
    bidirectional : bool
        Whether each layer has a second cell, which reads the sequence from end to start. The states of both
        directions are concatenated.
    layer_dropout : float in [0, 1)
        Probability of dropping an element of the input of layers 2 and higher.
    output_dropout : float in [0, 1)
        Probability of dropping an element of the vector that is classified.
    label_smoothing : float in [0, 1)
        Share of a class's probability that the loss spreads over all classes (Szegedy et al. 2016).
    reconstruction : float >= 0
        Weight of ARNet's loss, which reconstructs each hidden state of the last layer from the next one
        (X. Chen et al. 2018, section 5.3), in each direction by an ARNet of its own. Not part of :meth:`nll`.
        It is also an attribute, which may change between two calls of :meth:`loss`.
    reconstructor_dim : int, optional
        Units of ARNet, ``hidden_dim`` if left out. If it is given, the model has an ARNet even where the
        weight of its loss is 0.
    detach_target : bool
        Whether the states that ARNet reconstructs are treated as constants; in the paper they are not. Needs
        an ARNet.
    forget_bias : float
        Initial value of the biases of an LSTM's forget gates. A positive value keeps the gates open at first,
        so that a state is remembered for longer (Gers et al. 2000; Jozefowicz et al. 2015 recommend 1). Must
        be 0 for a cell without a forget gate.
    initialisation : "course" or "uniform"
        "course": weights from N(0, 1) / sqrt(fan-in). "uniform":
        all from U(-init_scale, init_scale). Biases start at zero.
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
        Wx, Wh and b of the layers, W_class and b_class. Names of several layers begin with ``layer1_``,
        ``layer2_`` and so on; then, of two directions, comes ``forward_`` or ``backward_``.

    Raises
    ------
    ValueError
        If an option does not fit; the error names it.
    """

    def __init__(
        self,
        num_classes: Annotated[int, Range("[2, inf)")],
        input_dim: Count = 1,
        hidden_dim: Count = 128,
        cell_type: CellType = "lstm",
        dtype: FloatType = np.float32,
        *,
        readout: StateReadout = "last",
        num_layers: Count = 1,
        bidirectional: bool = False,
        layer_dropout: Probability = 0.0,
        output_dropout: Probability = 0.0,
        forget_bias: Number = 0.0,
        label_smoothing: Probability = 0.0,
        reconstruction: NotNegative = 0.0,
        reconstructor_dim: Count | None = None,
        detach_target: bool = False,
        initialisation: Initialisation = "course",
        init_scale: Positive = INIT_SCALE,
        regularisation: RegularisationOptions = None,
        rng: np.random.Generator | int = 0,
        device: str = "cpu",
    ) -> None:
        self._options = checked_options(SequenceClassifier, locals())
        self.num_classes, self.input_dim = num_classes, input_dim
        self.readout, self.output_dropout = readout, output_dropout
        self.label_smoothing, self.reconstruction = label_smoothing, reconstruction
        recurrence = Recurrence.of("SequenceClassifier", self._options)
        self.layers = StackedLayers(
            recurrence,
            input_dim,
            hidden_dim,
            num_layers,
            bidirectional=bidirectional,
            dropout=layer_dropout,
        )
        self.reconstructor = classifier_reconstructor(self.layers, self._options)
        output = {"W_class": (self.layers.output_dim, num_classes), "b_class": (num_classes,)}
        arnet = {} if self.reconstructor is None else self.reconstructor.shapes()
        shapes = distinct("SequenceClassifier", self.layers.shapes(), output, arnet)
        self._initialise(shapes, rng)
        set_forget_bias("SequenceClassifier", self.params, recurrence.cell, forget_bias)
        self.to(device)

    def __repr__(self) -> str:
        names = (
            "num_classes",
            "input_dim",
            "hidden_dim",
            "cell_type",
            "readout",
            "num_layers",
            "bidirectional",
        )
        options = ", ".join(f"{name}={self._options[name]!r}" for name in names)
        return f"SequenceClassifier({options}; {self.params.flat.size:,} {self.dtype} parameters)"

    # ------------------------------------------------------------------ training

    def loss(
        self,
        x: Array,
        labels: Array,
        lengths: Array | None = None,
        *,
        rng: Random = None,
        grads: Parameters | None = None,
        part_of: BatchSize | None = None,
        input_gradients: bool = False,
    ) -> tuple[Any, ...]:
        """The mean cross-entropy of a batch, and the gradient of every parameter.

        Parameters
        ----------
        x : (N, T, D)
        labels : (N,) integers in [0, C)
        lengths : (N,) integers in [0, T], optional
            Number of real steps of each sequence, all T if left out. The state of an empty sequence is zero.
        rng : numpy Generator, optional
            Draws the masks of dropout and zoneout. Without it nothing is dropped, and zoneout takes its
            expectation, as in inference.
        grads : Parameters, optional
            Overwritten with the gradients. By default they are new arrays.
        part_of : (int, int), optional
            The numbers of examples and labels of the batch that this one is a part of. Losses are then
            averaged over that batch, and gradients are added into ``grads``, so that the losses and gradients
            of the parts add up to those of the batch.
        input_gradients : bool
            Whether to return the gradients of the inputs as well.

        Returns
        -------
        loss : float, or on a GPU an array () whose computation may still be running
            In nats.
        grads : Parameters
        inputs : ClassificationGradients
            Only with ``input_gradients``. See :mod:`rnnlab.models.input_gradients`.

        Raises
        ------
        IndexError
            If a label is out of range.
        ValueError, TypeError
            If a shape or a dtype is wrong.
        """
        self._check_losses("loss")
        check_rng("SequenceClassifier.loss", rng)
        x = self._inputs("loss", x)
        labels = self._labels("loss", labels, len(x))
        N, _ = averaging_size("SequenceClassifier.loss", len(x), len(x), part_of)
        grads = self._gradients_workspace(grads, part_of)
        ends = real_lengths("SequenceClassifier.loss", len(x), x.shape[1], lengths)
        weights = self._ops.asarray(self._weights(ends, x.shape[1]))
        reverse = self._reversed_rows(ends, x.shape[1])
        indices = self._ops.indices(labels)
        loss, dinputs = self._classified_loss(
            x, indices, weights, ends, max(1, N), grads, rng, input_gradients, reverse=reverse
        )
        loss = self._ops.scalar(loss)
        return (loss, grads, dinputs) if input_gradients else (loss, grads)

    def _classified_loss(
        self,
        x: Array,
        labels: Array,
        weights: Array,
        lengths: Array,
        N: int,
        grads: Parameters,
        rng: Random,
        input_gradients: bool = False,
        *,
        mask: Array | None = None,
        reverse: Array | None = None,
    ) -> tuple[float, ClassificationGradients | None]:
        """The loss of a batch of N sequences, and the gradients of the inputs or None.

        The gradient of every parameter is added into ``grads``. ``weights`` are the weights w of the states,
        (N, T) for each direction. All arrays except ``lengths`` are on the model's device.
        """
        params, self.last_terms, share = self.params, {}, len(x) / N
        h, ran = self.layers.forward(params, x, lengths, rng, reverse=reverse)
        r, dropped = dropout_forward(_weighted_sum(h, weights), self.output_dropout, rng=rng)
        scores, projected = affine_forward(r, params["W_class"], params["b_class"])
        losses = self._ops.softmax_cross_entropy(scores, labels, 1 / N, scores, self.label_smoothing)
        loss = losses.sum(dtype=np.float64) / N
        dr, _, _ = affine_backward(scores, projected, into=(grads["W_class"], grads["b_class"]))
        dh = _weighted_sum_backward(dropout_backward(dr, dropped), weights)
        if self.reconstruction:
            weight = self.reconstruction * share
            term, dterm = self._part_of("reconstruction").loss(
                params, h, lengths, weight=weight, grads=grads, mask=mask, reverse=reverse
            )
            loss += self._weighted("reconstruction", term, share)
            dh += dterm
        del h  # so that the backward can reuse its memory
        dhidden = self._ops.empty(dh.shape, self.dtype) if input_gradients else None
        dx = self.layers.backward(dh, ran, grads, total_dh=dhidden)
        return loss, ClassificationGradients(dx, dhidden) if input_gradients else None

    def padded(
        self, x: Array, labels: Array, lengths: Array | None = None, *, part_of: BatchSize | None = None
    ) -> Padded:
        """Pad a batch for :meth:`padded_loss`, which needs its arrays on the model's device.

        Parameters
        ----------
        x, labels, lengths, part_of
            As in :meth:`loss`.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        x = self._inputs("padded", x)
        labels = self._labels("padded", labels, len(x))
        N, _ = averaging_size("SequenceClassifier.padded", len(x), len(x), part_of)
        rows, T, D = x.shape
        arrays, ends = {"labels": labels}, real_lengths("SequenceClassifier.padded", rows, T, lengths)
        if lengths is not None:
            padded = self._ops.zeros((rows, rounded_up(T), D), x.dtype)
            padded[:, :T] = x
            x, T = padded, rounded_up(T)
            mask = real_steps(ends, T, x.dtype)
            x[self._ops.asarray(mask == 0)] = 0  # padding may hold anything, also NaN
            arrays["mask"] = mask
        arrays |= {"x": x, "weights": self._weights(ends, T)}
        if (reverse := self._reversed_rows(ends, T)) is not None:
            arrays["reverse"] = reverse
        return Padded(arrays, rows / max(1, N))

    def padded_loss(self, batch: Padded, *, rng: Random = None, grads: Parameters) -> Any:
        """The loss of a batch from :meth:`padded`. Its gradients are added into ``grads``.

        It does not synchronise with the device, and the work done depends on the shapes of the arrays alone.
        """
        self._check_losses("padded_loss")
        x, labels, weights = (batch.arrays[name] for name in ("x", "labels", "weights"))
        N, T, _ = x.shape
        whole = round(N / batch.share) if N else 1
        masks: dict[str, Any] = {name: batch.arrays.get(name) for name in ("mask", "reverse")}
        return self._classified_loss(x, labels, weights, np.full(N, T), whole, grads, rng, **masks)[0]

    def nll(self, x: Array, labels: Array, lengths: Array | None = None) -> tuple[float, int]:
        """The negative log-likelihood of a batch, as in inference, without gradients.

        Parameters
        ----------
        x, labels, lengths
            As in :meth:`loss`.

        Returns
        -------
        total : float
            Summed over the batch, in nats.
        sequences : int
            N.

        Raises
        ------
        IndexError, ValueError, TypeError
            As :meth:`loss`.
        """
        x = self._inputs("nll", x)
        labels, scores = self._labels("nll", labels, len(x)), self.scores(x, lengths)
        targets = self._ops.indices(labels)
        losses = self._ops.softmax_cross_entropy(scores, targets, 1.0, scores)
        return float(losses.sum(dtype=np.float64)), len(labels)

    # ------------------------------------------------------------------ inference

    def scores(self, x: Array, lengths: Array | None = None) -> Array:
        """The scores before the softmax, (N, C), of sequences (N, T, D)."""
        h, ends = self._states("scores", x, lengths)
        r = _weighted_sum(h, self._ops.asarray(self._weights(ends, h.shape[1])))
        return affine_forward(r, self.params["W_class"], self.params["b_class"])[0]

    def hidden_states(self, x: Array, lengths: Array | None = None) -> Array:
        """The hidden states of the last layer, (N, T, H) or (N, T, 2H), as in inference.

        After the end of a sequence its last state is repeated.
        """
        return self._ops.asnumpy(self._states("hidden_states", x, lengths)[0])

    def predict(self, x: Array, lengths: Array | None = None) -> Array:
        """The most likely class of each sequence, (N,) integers.

        Raises
        ------
        ValueError, TypeError
            As :meth:`loss`; ValueError also if a score is NaN.
        """
        return most_likely("SequenceClassifier.predict", self.scores(x, lengths))

    def _states(self, function: str, x: Array, lengths: Array | None) -> tuple[Array, np.ndarray]:
        """The states of the last layer, (N, T, H) or (N, T, 2H), as in inference, and the lengths (N,)."""
        x = self._inputs(function, x)
        ends = real_lengths(f"SequenceClassifier.{function}", len(x), x.shape[1], lengths)
        reverse = self._reversed_rows(ends, x.shape[1])
        return self.layers.forward(self.params, x, lengths, reverse=reverse)[0], ends

    def _weights(self, lengths: np.ndarray, T: int) -> np.ndarray:
        """The weights w of the states in the classified vector r, (N, T) for each direction."""
        ends, steps = lengths[:, None], np.arange(T)
        if self.readout == "mean":
            weights = [(steps < ends) / np.maximum(ends, 1)] * len(self.layers.directions)
        else:  # the backward direction ends at the first step
            last = {"forward": ends - 1, "backward": np.where(ends > 0, 0, -1)}
            weights = [steps == last[direction] for direction in self.layers.directions]
        return np.stack(weights).astype(self.dtype)

    def _reversed_rows(self, lengths: np.ndarray, T: int) -> np.ndarray | None:
        """What layers in both directions need to reverse the sequences, None for one direction."""
        return reversed_rows(lengths, T) if len(self.layers.directions) == 2 else None

    def _inputs(self, function: str, x: Array) -> Array:
        x = self._floats(f"SequenceClassifier.{function}: x", x)
        if x.ndim != 3 or x.shape[2] != self.input_dim or not x.shape[1]:
            raise InputError(
                f"SequenceClassifier.{function}: x has shape {x.shape}, "
                f"expected (N, T, D) with T of at least 1 and D = {self.input_dim}"
            )
        return x

    def _labels(self, function: str, labels: Array, rows: int) -> Array:
        function = f"SequenceClassifier.{function}"
        labels = as_array(f"{function}: labels", labels)
        if labels.shape != (rows,):
            raise InputError(f"{function}: labels has shape {labels.shape}, expected (N,) = {(rows,)}")
        return as_tokens(function, "labels", labels, self.num_classes, of="classes")


def most_likely(function: str, scores: Array) -> np.ndarray:
    """The class with the highest score in each row, (N,).

    Raises
    ------
    ValueError
        If a score is NaN.
    """
    scores = ops_for(scores).asnumpy(scores)
    wrong = np.isnan(scores).any(axis=1)
    if wrong.any():
        raise InputError(f"{function}: the scores of sequence {wrong.argmax()} hold NaN")
    return scores.argmax(axis=1)


def _weighted_sum(h: Array, weights: Array) -> Array:
    """The weighted sum r of the states: (N, T, H) to (N, H), or (N, T, 2H) to (N, 2H)."""
    ops, H = ops_for(h), h.shape[2] // len(weights)
    sums = [
        ops.matmul(each[:, None, :], h[:, :, k * H : (k + 1) * H])[:, 0] for k, each in enumerate(weights)
    ]
    return sums[0] if len(sums) == 1 else ops.concatenate(sums, axis=1)


def _weighted_sum_backward(dr: Array, weights: Array) -> Array:
    """The gradient with respect to the states, as :func:`_weighted_sum` takes them."""
    directions, N, T = weights.shape
    dh = ops_for(dr).empty((N, T, directions, dr.shape[1] // directions), dr.dtype)
    for k, each in enumerate(weights):
        dh[:, :, k] = each[:, :, None]
    dh = dh.reshape(N, T, dr.shape[1])
    dh *= dr[:, None, :]
    return dh
