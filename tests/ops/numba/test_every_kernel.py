"""All kernels together: numeric gradients, and any number of threads.

The processes that differ in their numbers of threads share one cache.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import rnnlab.ops
from rnnlab.gradcheck import run as gradcheck
from rnnlab.gradcheck.layer_cases import layer_cases
from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops

ROOT = Path(__file__).parents[3]
SCRIPT = ("-m", "tests.ops.numba.every_kernel")


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=3600,
        cwd=ROOT,
    )
    assert done.returncode == 0, f"{environment}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_every_kernel_gives_the_same_bits_on_any_number_of_threads():
    one, *others = (run(*SCRIPT, RNNLAB_NUM_THREADS=threads) for threads in ("1", "8", "4", "3", "2"))
    assert len(one.splitlines()) > 400
    for other in others:
        assert other == one


@pytest.mark.long
def test_products_are_right_whatever_number_of_threads_has_compiled_them(tmp_path):
    for threads in ("8", "4", "1", "3", "8"):
        run(*SCRIPT, "products", RNNLAB_NUM_THREADS=threads, NUMBA_CACHE_DIR=str(tmp_path))


@pytest.mark.long
def test_every_kernel_is_right_whatever_number_of_threads_has_compiled_it(tmp_path):
    compiled, *_, loaded = (
        run(*SCRIPT, RNNLAB_NUM_THREADS=threads, NUMBA_CACHE_DIR=str(tmp_path))
        for threads in ("8", "4", "1", "3", "8")
    )
    assert compiled == loaded


@pytest.mark.long
def test_a_kernel_computes_the_same_bits_in_the_process_that_compiles_it_and_in_others(tmp_path):
    """A function that LLVM does not inline into the guard is another one in the cache."""
    environment = {"RNNLAB_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, loaded = (run(*SCRIPT, "serial", **environment) for _ in range(2))
    assert compiled == loaded


CONSTANTS = """
import numbers, sys
import numpy as np
{before}
import rnnlab.ops.numba
from rnnlab.ops.numba import kernel
for name, module in sorted(sys.modules.items()):
    if name.startswith("rnnlab.ops.n"):
        for key, value in sorted(vars(module).items()):
            if isinstance(value, (numbers.Number, np.generic)) and not isinstance(value, bool):
                print(name, key, value)
print("cache", kernel._digest())
"""
FEWER_FEATURES = """
from llvmlite import binding
features = binding.get_host_cpu_features()
binding.get_host_cpu_features = lambda: type(features)(sse2=True)
"""


def constants(before="", **environment):
    lines = run("-c", CONSTANTS.format(before=before), **environment).splitlines()
    return dict(line.rsplit(" ", 1) for line in lines)


@pytest.mark.slow
def test_no_constant_of_a_kernel_depends_on_the_process():
    """Except the number of threads, which no kernel reads, and what the name in the cache includes."""
    one, eight = (constants(RNNLAB_NUM_THREADS=threads) for threads in ("1", "8"))
    differing = {name for name in one if one[name] != eight[name]}
    assert differing <= {"rnnlab.ops.numba.kernel _threads"}
    other = constants(FEWER_FEATURES, RNNLAB_NUM_THREADS="1")
    differing = {name.split()[-1] for name in one if one[name] != other[name]}
    assert differing - {"VECTOR", "REGISTERS", "ROWS", "cache"} == set()
    assert ("cache" in differing) == bool(differing & {"VECTOR", "ROWS"})


def test_no_kernel_reads_the_number_of_threads():
    from rnnlab.ops.numba import gemm, kernel

    assert len(kernel._KERNELS) > 40
    assert gemm.row_parts_of.py_func.__code__.co_names == ("min",)
    for each in kernel._KERNELS:
        assert "_threads" not in each.function.__code__.co_names
    for value in vars(gemm).values():
        code = getattr(getattr(value, "py_func", None), "__code__", None)
        assert code is None or "_threads" not in code.co_names


@pytest.mark.slow
@pytest.mark.parametrize("ops", [numpy_ops, numba_ops], ids=["numpy", "fused"])
def test_every_layer_against_numeric_gradients(ops, monkeypatch):
    monkeypatch.setattr(rnnlab.ops, "_for_numpy", lambda: rnnlab.ops._Choice(ops, ""))
    rng = np.random.default_rng(0)
    rows = [gradcheck.check_case(case, tolerance=1e-7, rng=rng) for case in layer_cases(rng)]
    assert len(rows) > 20
    assert [row for row in rows if not row.error <= 1e-7] == []
