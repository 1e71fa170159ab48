import os
import subprocess
import sys
from pathlib import Path

import pytest

from rnnlab.ops import threads
from rnnlab.ops.threads import import_numba, num_threads


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("RNNLAB_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_all_processors_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: {0, 3, 5}, raising=False)
    assert num_threads() == 3


@pytest.mark.parametrize(
    ("value", "expected"), [("3", 3), ("4,2", 4), (" 5 ", 5), ("99999999999999999999", 1024)]
)
def test_openmp_s_own_variable(value, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert num_threads() == expected


def test_our_variable_comes_first(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("RNNLAB_NUM_THREADS", "2")
    assert num_threads() == 2


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "1025", "99999999999999999999"])
def test_what_is_no_number_of_threads(value, monkeypatch):
    monkeypatch.setenv("RNNLAB_NUM_THREADS", value)
    with pytest.raises(
        ValueError, match=f"RNNLAB_NUM_THREADS is '{value}', expected an integer from 1 to 1,024"
    ):
        num_threads()


CODE = """
import os
{before}
import numpy as np
import rnnlab.ops
ops = rnnlab.ops.ops_for(np.zeros(1))
import numba, threadpoolctl
from rnnlab.ops.numba import kernel
assert kernel.threads() == {threads}
assert "NUMBA_NUM_THREADS" not in os.environ
own = numba.get_num_threads()
ops.clip_values(np.zeros(1_000_000, np.float32), 1.0)
assert numba.get_num_threads() == own, numba.get_num_threads()
assert numba.threading_layer() == "omp"
assert "threads: {threads}" in rnnlab.ops.describe()
for pool in threadpoolctl.threadpool_info():
    assert pool["num_threads"] == {threads}, pool
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("before", ["", "import numba"], ids=["numba after", "numba before"])
def test_one_number_for_all_libraries(number, before):
    pytest.importorskip("numba.np.ufunc.omppool", reason="numba has no OpenMP", exc_type=ImportError)
    pytest.importorskip("threadpoolctl")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment["RNNLAB_NUM_THREADS"] = str(number)
    code = CODE.format(before=before, threads=number)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


def test_a_numba_that_is_too_old(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba, "__version__", "0.61.2")
    with pytest.raises(ImportError, match=r"numba 0\.61\.2 is installed, expected at least 0\.62"):
        import_numba()


def test_the_package_asks_for_the_oldest_numba_that_works():
    requirements = (Path(__file__).parents[2] / "setup.cfg").read_text()
    oldest = ".".join(map(str, threads._OLDEST_NUMBA))
    assert f"\n    numba>={oldest}\n" in requirements
