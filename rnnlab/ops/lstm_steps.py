"""The steps of a chunk one after another, out of a module's own primitives for one step."""

from __future__ import annotations

from collections.abc import Callable

from rnnlab.types import Array

__all__ = ["Slices", "lstm_step_by_step", "of_sum"]
Slices = tuple[tuple[slice, slice, slice], ...]


def lstm_step_by_step(
    matmul_into: Callable[..., None],
    matmul_add: Callable[..., None],
    lstm_forward: Callable[..., None],
    lstm_backward_of_sum: Callable[..., None],
) -> tuple[Callable[..., None], Callable[..., None]]:
    """``lstm_steps_forward`` and ``lstm_steps_backward`` on these; the last is from :func:`of_sum`."""

    def lstm_steps_forward(gates: Array, Wh: Array, h: Array, c: Array, tanh_c: Array, steps: Slices) -> None:
        """The recurrence of an LSTM over consecutive steps of packed sequences.

        Parameters
        ----------
        gates : (M, 4H)
            x Wx + b of all rows; those of the steps leave as the activations i, f, o, g.
        Wh : (H, 4H)
            From :func:`prepacked`.
        h, c : (N + M, H)
            The states; those after each step are written.
        tanh_c : (M, H)
            Written.
        steps : (rows, before, after) of each step
            Its rows in packed arrays, and its states before and after it.
        """
        for rows, before, after in steps:
            matmul_add(h[before], Wh, gates[rows])
            lstm_forward(gates[rows], c[before], c[after], tanh_c[rows], h[after])

    def lstm_steps_backward(
        dh: Array,
        dstate: Array,
        dcell: Array,
        gates: Array,
        c: Array,
        tanh_c: Array,
        da: Array,
        to_h: Array,
        steps: Slices,
    ) -> None:
        """Backward of :func:`lstm_steps_forward`.

        Parameters
        ----------
        dh : (m, H)
            The gradient of the states after these steps, their m rows only.
        dstate, dcell : (N, H)
            The gradients of h and c that reach the last step from behind; they leave as those that reach the
            states before the first step.
        gates, c, tanh_c
            As the forward left them.
        da : (m, 4H)
            The gradient of x Wx + b, written.
        to_h : (4H, H)
            Wh^T from :func:`prepacked`.
        steps
            As in the forward.
        """
        first = steps[0][0].start if steps else 0
        for rows, before, _ in reversed(steps):
            here = slice(rows.start - first, rows.stop - first)
            alive = rows.stop - rows.start
            dnow, dc, da_now = dstate[:alive], dcell[:alive], da[here]
            lstm_backward_of_sum(dnow, dh[here], dc, gates[rows], c[before], tanh_c[rows], da_now)
            matmul_into(da_now, to_h, dnow)

    return lstm_steps_forward, lstm_steps_backward


def of_sum(lstm_backward: Callable[..., None]) -> Callable[..., None]:
    """``lstm_backward`` of a gradient dh that comes in two parts, of which the first may be overwritten."""

    def lstm_backward_of_sum(dh: Array, further: Array, *others: Array) -> None:
        dh += further
        lstm_backward(dh, *others)

    return lstm_backward_of_sum
