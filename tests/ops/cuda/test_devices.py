"""The line about the GPU."""

import sys

import pytest

from rnnlab import ops


def test_the_gpu_is_described(simulated):
    assert ops.describe_gpu() == "simulated, 16.0 GiB, CuPy 14.0.0"


def test_without_a_gpu(simulated, monkeypatch):
    def no_driver():
        raise simulated.cuda.runtime.CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    monkeypatch.setattr(simulated.cuda.runtime, "getDeviceCount", no_driver)
    reason = "CuPy finds no GPU, see nvidia-smi: cudaErrorNoDevice: no CUDA-capable device is detected"
    assert ops.describe_gpu() == f"none, {reason}"
    with pytest.raises(ImportError, match=f"device is 'gpu', but {reason}"):
        ops.ops_on("gpu")
    monkeypatch.setattr(simulated.cuda.runtime, "getDeviceCount", lambda: 0)
    assert ops.describe_gpu() == "none, CuPy finds no GPU"


def test_without_cupy(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'cupy'", name="cupy")

    monkeypatch.setattr(ops.importlib, "import_module", missing)
    assert ops.describe_gpu().startswith('none, CuPy is not installed: pip install "rnnlab[cuda12]"')


def test_with_a_cupy_that_does_not_load(monkeypatch):
    monkeypatch.setitem(sys.modules, "rnnlab.ops.cuda.devices", None)
    assert "\n" not in ops.describe_gpu()
    assert ops.describe_gpu().startswith("none, ")


def test_a_gpu_is_described_by_its_number(simulated, monkeypatch):
    asked = []
    found = simulated.cuda.runtime.getDeviceProperties
    monkeypatch.setattr(
        simulated.cuda.runtime, "getDeviceProperties", lambda number: asked.append(number) or found(number)
    )
    assert ops.describe_on("gpu:3")[0] == ops.describe_gpu()
    assert asked == [3, simulated.cuda.runtime.getDevice()]


def test_counting_selects_no_gpu(simulated, monkeypatch):
    monkeypatch.setattr(simulated.cuda.runtime, "getDeviceCount", lambda: 4)
    monkeypatch.setattr(simulated.cuda, "Device", None)
    assert ops.num_gpus() == 4
