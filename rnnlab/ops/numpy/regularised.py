"""Recurrent steps with dropout and zoneout on NumPy."""

from __future__ import annotations

from rnnlab.ops.numpy import cells, masks
from rnnlab.ops.step_masks import regularised_steps

(
    rnn_regularised_forward,
    rnn_regularised_backward,
    lstm_regularised_forward,
    lstm_regularised_backward,
    gru_candidate_regularised_forward,
    gru_candidate_regularised_backward,
    simplified_gru_regularised_forward,
    simplified_gru_regularised_backward,
) = regularised_steps(cells, masks)
