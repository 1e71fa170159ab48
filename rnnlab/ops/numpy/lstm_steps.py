"""The steps of a chunk of an LSTM on NumPy."""

from __future__ import annotations

from rnnlab.ops.lstm_steps import lstm_step_by_step
from rnnlab.ops.numpy import cells, products

lstm_steps_forward, lstm_steps_backward = lstm_step_by_step(products, cells)
