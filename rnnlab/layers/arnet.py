"""ARNet: an LSTM that reads hidden states and reconstructs each state's predecessor (X. Chen et al. 2018).

    h'_t, c'_t = LSTM(h_t, h'_{t-1}, c'_{t-1})          eq. 5, (N, R), from zeros
    e_t  = h'_t W + b_out - h_{t-1}                     eq. 6, the reconstruction minus its target, (N, H)
    loss = 1/N sum_n sum_t |e_t|^2                      eq. 7, over real steps

h_0 is a target if it is given, such as a projection of an image. An initial state of zeros is not a target.

Backward, with de_t = 2/N e_t dloss: de_t W^T is the gradient of the LSTM's output h'_t, and -de_t that of the
target h_{t-1}. Detached targets get no gradient, so that the loss does not make the states easier to
reconstruct.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rnnlab.layers.checks import as_float_mask, as_scalar, check_cache, check_shapes, ops_of
from rnnlab.layers.parameters import gradients_of, select_params
from rnnlab.layers.recurrent.loop import RecurrentCache
from rnnlab.layers.recurrent.lstm import lstm_backward, lstm_forward
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.ops import ops_for
from rnnlab.options import Count, check_option
from rnnlab.types import Array, Shapes

_AXES = {"Wx": "H 4R", "Wh": "R 4R", "b": "4R", "W": "R H", "b_out": "H"}


class ARNetCache(NamedTuple):
    """The saved arrays, packed as in :mod:`rnnlab.layers.recurrent.packing`."""

    errors: Array  # (E, H) of the last E packed rows; without h0 step 1 has none
    params: dict[str, Array]
    h0_given: bool  # whether h0 was given; the backward then returns its gradient
    lstm: RecurrentCache


def arnet_shapes(hidden_dim: int, reconstructor_dim: int) -> Shapes:
    """The shapes of all parameters by their names: Wx, Wh, b, W and b_out.

    Raises
    ------
    ValueError
        If a size is not an integer of at least 1.
    """
    check_option("arnet_shapes", "hidden_dim", Count, hidden_dim)
    check_option("arnet_shapes", "reconstructor_dim", Count, reconstructor_dim)
    sizes = {"H": hidden_dim, "R": reconstructor_dim, "4R": 4 * reconstructor_dim}
    return {name: tuple(sizes[axis] for axis in axes.split()) for name, axes in _AXES.items()}


def arnet_forward(
    h: Array,
    h0: Array | None,
    params: Mapping[str, Array],
    *,
    lengths: Array | None = None,
    mask: Array | None = None,
    loss_mask: Array | None = None,
) -> tuple[float, ARNetCache]:
    """The reconstruction loss of a batch of sequences of hidden states.

    Parameters
    ----------
    h : (N, T, H)
        The state after each step.
    h0 : (N, H) or None
        The state before the first step. None if it is zero: the LSTM then reads step 1, but step 1 has no
        target.
    params : dict of str to array
        The parameters of :func:`arnet_shapes`. Others are ignored.
    lengths : (N,) integers, optional
        Number of real steps of each sequence, all T if left out. Padding of h is not read.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.
    loss_mask : (N, T), optional
        An array of the library of h: 1 for the steps whose errors count, 0 for others. All real steps are
        read, and must be finite.

    Returns
    -------
    loss : float
        Summed over units and real steps, averaged over the N sequences, empty ones included. For CuPy arrays,
        an array () on the device; reading it waits for the device.
    cache : ARNetCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong, or a parameter is missing.
    """
    function = "arnet_forward"
    own = select_params(function, params, _AXES)
    ops, (Wx, Wh, b, W, b_out) = ops_of(function, h=h, **own), own.values()
    states = {"h": (h, "N T H")} | ({} if h0 is None else {"h0": (h0, "N H")})
    checked = {name: (own[name], _AXES[name]) for name in ("Wh", *own)}  # Wh first: it defines R
    check_shapes(function, **states, **checked)
    zeros = ops.zeros((len(h), len(Wh)), h.dtype)
    _, lstm = lstm_forward(h, zeros, Wx, Wh, b, lengths=lengths, mask=mask)
    packing, num_first = lstm.packing, _num_first(lstm)
    num_skipped = num_first if h0 is None else 0  # packed rows without a target
    errors = ops.affine(lstm.h[len(h) + num_skipped :], W, b_out)
    targets = ops.empty(errors.shape, h.dtype)
    ops.take(as_rows(h), packing.source[num_first:] - 1, targets[num_first - num_skipped :])
    if h0 is not None:
        ops.take(h0, packing.order[:num_first], targets[:num_first])
    errors -= targets
    if loss_mask is not None:
        counts = ops.empty((len(errors), 1), h.dtype)
        loss_mask = as_float_mask(function, "loss_mask", loss_mask, h.shape[:2], h)
        ops.take(loss_mask.reshape(-1, 1), packing.source[num_skipped:], counts)
        errors *= counts
    loss = ops.sum_of_squares(errors.reshape(-1)) / max(len(h), 1)
    return loss, ARNetCache(errors, own, h0 is not None, lstm)


def arnet_backward(
    dloss: float,
    cache: ARNetCache,
    *,
    detach_target: bool = False,
    into: Mapping[str, Array] | None = None,
) -> tuple[Array, Array | None, dict[str, Array]]:
    """Backward of :func:`arnet_forward`.

    Parameters
    ----------
    dloss : float
        Gradient of the total loss with respect to this loss, which is its weight.
    detach_target : bool
        Whether targets are treated as constants.
    into : dict of str to array, optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays. Others are
        not changed.

    Returns
    -------
    dh : (N, T, H)
    dh0 : (N, H), or None without h0
    dparams : dict of str to array

    Raises
    ------
    ValueError, TypeError
        If an array of ``into`` is invalid, or the cache is from another function.
    """
    check_cache("arnet_backward", cache, ARNetCache)
    errors, params, h0_given, lstm = cache
    ops, packing, N, num_first = ops_for(errors), lstm.packing, len(lstm.x), _num_first(lstm)
    dparams = gradients_of("arnet_backward", params, errors, into, h=lstm.x)
    (*_, W, _), (dWx, dWh, db, dW, db_out) = params.values(), dparams.values()
    num_skipped = 0 if h0_given else num_first
    de = errors * (2 / max(N, 1) * as_scalar("arnet_backward", "dloss", dloss))
    ops.add_affine_gradients(lstm.h[N + num_skipped :], de, dW, db_out)
    dread = packing.unpacked(W.shape[0], errors)  # gradient of h', (N T, R)
    dread[packing.source[:num_skipped]] = 0
    ops.put(ops.matmul(de, W.T), packing.source[num_skipped:], dread)
    dread = dread.reshape(*packing.shape, W.shape[0])
    dh, *_ = lstm_backward(dread, lstm, into=(dWx, dWh, db))
    if not detach_target:
        as_rows(dh)[packing.source[num_first:] - 1] -= de[num_first - num_skipped :]
    if not h0_given:
        return dh, None, dparams
    dh0 = ops.zeros((N, errors.shape[1]), errors.dtype)
    if not detach_target:
        dh0[packing.order[:num_first]] -= de[:num_first]
    return dh, dh0, dparams


def _num_first(lstm: RecurrentCache) -> int:
    """The number of packed rows of step 1: one for each sequence that is not empty."""
    return (*lstm.packing.offsets, 0)[1]
