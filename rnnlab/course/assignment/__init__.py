"""The package of the cs231n assignment on recurrent networks.

Fill in ``rnn_layers.py`` and ``classifiers/rnn.py``. The other modules are those of rnnlab.
"""
