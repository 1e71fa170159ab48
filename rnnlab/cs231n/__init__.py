"""The module names of the cs231n course, so that its assignment notebooks run with one word changed.

    from cs231n.rnn_layers import *     becomes     from rnnlab.cs231n.rnn_layers import *

Nothing is implemented here: every module exports rnnlab's functions under the course's names and signatures.
"""
