"""The steps of a chunk by compiled kernels against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops

from ..cases import TOLERANCE
from ..test_lstm_steps import H, M, N, run, steps
from .compare import every_dtype


@every_dtype
@pytest.mark.parametrize("prepack", [False, True], ids=["weight", "prepacked"])
def test_steps_of_a_chunk(prepack, dtype, normal):
    x, Wh, h0, c0, dh = normal(M, 4 * H), normal(H, 4 * H), normal(N, H), normal(N, H), normal(M, H)
    results = []
    for ops in (numba_ops, numpy_ops):
        forward, backward = (ops.prepacked(w) if prepack else w for w in (Wh, Wh.T))
        gates, h, c, tanh_c = run(ops.lstm_steps_forward, x, forward, h0, c0)
        dstate, dcell, da = np.zeros((N, H), dtype), np.zeros((N, H), dtype), np.empty((M, 4 * H), dtype)
        ops.lstm_steps_backward(dh, dstate, dcell, gates, c, tanh_c, da, backward, steps())
        results.append({"h": h, "c": c, "dstate": dstate, "dcell": dcell, "da": da})
    for name, array in results[0].items():
        np.testing.assert_allclose(array, results[1][name], **TOLERANCE[dtype], err_msg=name)
