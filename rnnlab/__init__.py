"""rnnlab: recurrent networks for sequence generation, every gradient written by hand.

Read it in this order; each floor uses only the floors above it in this list.

1. :mod:`rnnlab.ops`         array primitives; the only place that can tell NumPy from CuPy
2. :mod:`rnnlab.layers`      forward/backward pairs, one idea a file: the heart of the library
3. :mod:`rnnlab.decoding`    greedy, sampling and beam search over a model's step function
4. :mod:`rnnlab.models`      encoders, decoders and outputs composed into models
5. :mod:`rnnlab.data`        files to batches;  :mod:`rnnlab.training`  solver, optimisers, checkpoints;
   :mod:`rnnlab.metrics`     scores
6. :mod:`rnnlab.cli`         the ``rnnlab`` command

:mod:`rnnlab.parameters` (named views of one flat buffer) and :mod:`rnnlab.gradcheck.numeric` (is that backward
right?) stand on their own. :mod:`rnnlab.cs231n` has the course's module names.
"""

__version__ = "0.1.0"
