"""The steps of a chunk of an LSTM by compiled kernels."""

from __future__ import annotations

from rnnlab.ops.lstm_steps import lstm_step_by_step
from rnnlab.ops.numba import cells, products

lstm_steps_forward, lstm_steps_backward = lstm_step_by_step(products, cells)
