"""Padding: sequences of different lengths in one array.

After the last real step of a sequence its state is carried through unchanged. With m_t = 1 for a real step
and 0 for padding, every recurrent loop of this package computes

    h_t = m_t * step(x_t, h_{t-1}) + (1 - m_t) * h_{t-1}

and its backward sends m_t dh_t through the step and (1 - m_t) dh_t past it. Without padding m_t = 1.
"""

import numpy as np


def real_steps(lengths, N, T):
    """m for each step, (T, N, 1), from lengths (N,); None means that all T steps are real."""
    lengths = np.full(N, T) if lengths is None else np.asarray(lengths)
    return (np.arange(T)[:, None, None] < lengths[:, None]).astype(float)
