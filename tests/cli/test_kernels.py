"""``rnnlab kernels``: the description and the compilation."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rnnlab import cli, ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.precision import products_in
from rnnlab.ops.threads import default_jobs


def test_kernels_are_shown_and_compiled(capsys, monkeypatch):
    calls = []
    monkeypatch.setattr(ops, "warm_up", lambda *given: calls.append(given) or [33, 0, None][len(calls) - 1])
    assert cli.main(["kernels"]) == 0
    assert not calls
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        f"CPU: {ops.describe()}",
        f"CPU: {ops.describe_products()}",
        f"GPU: {ops.describe_gpu()}",
    ]
    for said in (
        "Compiled 33 kernels in 0 s.",
        "All kernels are in the cache.",
        "NumPy computes: there are no kernels to compile.",
    ):
        assert cli.main(["kernels", "--warm-up"]) == 0
        assert capsys.readouterr().out.splitlines() == [*shown, said]
    assert {jobs for jobs, _ in calls} == {default_jobs()}


def test_the_number_of_processes(capsys, monkeypatch):
    monkeypatch.setattr(ops, "warm_up", lambda jobs, progress: len([*progress(range(jobs), total=jobs)]))
    assert cli.main(["kernels", "--warm-up", "--jobs", "3"]) == 0
    assert "Compiled 3 kernels in" in capsys.readouterr().out
    assert cli.main(["kernels", "--jobs", "3"]) == 2
    assert "--jobs is given, which needs --warm-up" in capsys.readouterr().err


def heed_ctrl_c():
    """A shell starts programs in the background with the signal ignored, and their processes inherit this."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_ctrl_c_ends_the_processes(tmp_path):
    pytest.importorskip("numba")
    command = [sys.executable, "-m", "rnnlab", "kernels", "--warm-up", "--jobs", "2"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c
    ) as process:
        try:
            while process.poll() is None and not any(tmp_path.rglob("*.nbi")):
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert error.endswith("rnnlab kernels: interrupted\n")
    assert process.returncode == 130


@pytest.mark.parametrize("matmul", ["float32", "tf32x3"])
def test_the_products_of_a_gpu_are_shown(simulated, capsys, matmul):
    with products_in(matmul):
        assert cli.main(["kernels"]) == 0
        expected = [f"GPU: {line}" for line in ops.describe_on("gpu:0")]
    assert capsys.readouterr().out.splitlines()[2:] == expected


@pytest.mark.parametrize("matmul", ["tf32", "tf32x3"])
def test_the_precision_of_products_is_shown(capsys, matmul):
    with products_in(matmul):
        assert cli.main(["kernels"]) == 0
    line = f"CPU: products of float32: full precision ({matmul!r} is asked for, which is for a GPU)"
    assert line in capsys.readouterr().out.splitlines()


def test_how_bfloat16_is_multiplied_is_shown(capsys, monkeypatch):
    numba_ops = pytest.importorskip("rnnlab.ops.numba")
    kernels = numba_ops.products.bfloat16

    def shown(module, matmul="bfloat16"):
        monkeypatch.setattr(ops, "_for_numpy", lambda: ops._Choice(module, ""))
        with products_in(matmul):
            assert cli.main(["kernels"]) == 0
        return capsys.readouterr().out.splitlines()[1].removeprefix("CPU: ")

    assert shown(numpy_ops) == "products of float32: bfloat16 factors, by NumPy"
    monkeypatch.setattr(kernels, "declined", lambda: "")
    by = f"by {kernels.INSTRUCTIONS}"
    assert shown(numba_ops) == f"products of float32: bfloat16 factors, {by}"
    monkeypatch.setattr(kernels, "declined", lambda: "this processor has neither")
    assert shown(numba_ops) == (
        "products of float32: full precision ('bfloat16' is asked for, but this processor has neither)"
    )
    assert shown(numba_ops, "float32") == "products of float32: full precision"
    monkeypatch.setattr(kernels, "declined", lambda: "")
    assert (
        shown(numba_ops, "float32") == f"products of float32: full precision (RNNLAB_MATMUL=bfloat16: {by})"
    )
