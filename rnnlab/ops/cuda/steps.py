"""The steps of a chunk of each cell on CuPy: step by step, and those of an LSTM also in one launch."""

from __future__ import annotations

from rnnlab.ops.cuda import arrays, cells, products
from rnnlab.ops.cuda.persistent import lstm_in_one_launch
from rnnlab.ops.step_by_step import step_by_step

(
    rnn_steps_forward,
    rnn_steps_backward,
    *_lstm,
    gru_steps_forward,
    gru_steps_backward,
    simplified_gru_steps_forward,
    simplified_gru_steps_backward,
) = step_by_step(arrays, products, cells)
lstm_steps_forward, lstm_steps_backward = lstm_in_one_launch(*_lstm)
