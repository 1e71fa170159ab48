"""Recurrent layers: one loop over time, and the cells that it runs.

Read :mod:`~rnnlab.layers.recurrent.cell` for what a cell is, one of :mod:`~rnnlab.layers.recurrent.lstm` and
its siblings for its equations, and :mod:`~rnnlab.layers.recurrent.loop` for the loop.
"""

from rnnlab.layers.recurrent.cell import register_cell
from rnnlab.layers.recurrent.gru import GRU
from rnnlab.layers.recurrent.lstm import LSTM
from rnnlab.layers.recurrent.rnn import RNN
from rnnlab.layers.recurrent.simplified_gru import SimplifiedGRU

register_cell("rnn", RNN())
register_cell("lstm", LSTM())
register_cell("gru", GRU())
register_cell("simplified_gru", SimplifiedGRU())
