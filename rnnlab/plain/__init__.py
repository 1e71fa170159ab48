"""A plain NumPy version of every layer, written from its equations, for reading.

Each file states the equations of one layer, with their source, and computes them with NumPy and loops over
time. Read a layer here to understand it. Most functions have a namesake in :mod:`rnnlab.layers`, with the
same results and further options; the tests compare the two. A reading order:

    1. affine, activation, embedding, softmax        from word vectors to a loss
    2. padding, rnn, lstm, simplified_gru, gru       recurrent cells
    3. attention, target_attention, attentive        a memory, the decoder's own past, a cell that attends
    4. lrcn, beam                                    a captioning decoder, and the search for a caption
    5. dropout, regularisation, arnet                dropout, zoneout, reconstruction of the previous state
    6. review, discriminative                        LSTMs between encoder and decoder, and a loss for them

All layers follow one pattern. ``out, cache = f_forward(x, ...)`` computes the layer. Given ``dout``, the
gradient of the loss with respect to ``out``, ``f_backward(dout, cache)`` returns the gradients with respect
to the arguments of the forward, in their order: ``dx`` for ``x``. A cache is a tuple of the arrays that the
backward needs.

Sizes: N sequences, T steps, D numbers in an input, H in a hidden state, L slots of C numbers in a memory, A
attention units, V words. Matrix products are written by juxtaposition; ``*`` multiplies elementwise.
"""
