"""The steps of a chunk of each cell on NumPy."""

from __future__ import annotations

from rnnlab.ops.numpy import arrays, cells, products
from rnnlab.ops.step_by_step import step_by_step

(
    rnn_steps_forward,
    rnn_steps_backward,
    lstm_steps_forward,
    lstm_steps_backward,
    gru_steps_forward,
    gru_steps_backward,
    simplified_gru_steps_forward,
    simplified_gru_steps_backward,
) = step_by_step(arrays, products, cells)
