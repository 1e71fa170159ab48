"""The steps of a chunk of an LSTM on CuPy, in one launch or step by step."""

from __future__ import annotations

from rnnlab.ops.cuda import cells, products
from rnnlab.ops.cuda.persistent import lstm_in_one_launch
from rnnlab.ops.lstm_steps import lstm_step_by_step

lstm_steps_forward, lstm_steps_backward = lstm_in_one_launch(*lstm_step_by_step(products, cells))
