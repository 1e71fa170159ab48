"""Kernels in forked processes and in several Python threads at once."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

ROOT = Path(__file__).parents[3]
BODY = """
import multiprocessing, threading
import numpy as np
import rnnlab.ops
from rnnlab.ops import numba as ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import kernel, products
from rnnlab.ops.arguments import PRIMITIVES
from tests.ops.declared import call, made

LARGE = {{"n": 300, "H": 200, "P": 400_000, "M": 300, "V": 700, "W": 128}}
NAMES = ["lstm_forward", "lstm_backward", "gru_gates_forward", "rnn_forward", "softmax_cross_entropy",
         "embedding_gradient", "adam", "momentum", "zoneout_forward", "dropout"]


def check(seed):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((300, 200), np.float32), rng.standard_normal((200, 300), np.float32)
    for weight in (w, ops.prepacked(w)):
        out = np.empty((300, 300), np.float32)
        ops.matmul_into(x, weight, out)
        np.testing.assert_allclose(out, x @ w, rtol=1e-3, atol=1e-3)
    for name in NAMES:
        results = []
        for module in (ops, numpy_ops):
            arrays = made(name, np.random.default_rng(seed), np.float32, LARGE)
            results.append([call(module, name, arrays), *arrays.values()])
        for actual, expected in zip(*results, strict=True):
            if expected is not None:
                np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5, err_msg=name)


def in_a_fork(seed):
    assert kernel.threads() == 1
    check(seed)
    return True


rnnlab.ops.ops_for(np.zeros(1))
check(0)
assert kernel.threads() == 2
assert kernel.shared_by(1 << 20, 1 << 18) == 2
{rest}
"""
FORK = """
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map_async(in_a_fork, range(4)).get(timeout=240) == [True] * 4
assert kernel.threads() == 2
check(5)
"""
THREADS = """
failures = []


def work(seed):
    try:
        for trial in range(3):
            check(10 * seed + trial)
    except BaseException as error:
        failures.append(error)


workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
if failures:
    raise failures[0]
"""


def run(rest):
    environment = os.environ | {"RNNLAB_NUM_THREADS": "2", "RNNLAB_OPS": "fused"}
    done = subprocess.run(
        [sys.executable, "-c", BODY.format(rest=rest)],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_process_works_in_one_thread():
    run(FORK)


@pytest.mark.slow
def test_several_python_threads_at_once():
    run(THREADS)
