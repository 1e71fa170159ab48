"""The stand-in's device. The stand-in leaves no trace after its removal."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import numpy as np
import pytest

from rnnlab import ops

from .install import installed


def test_memory_limit(simulated):
    pool = simulated.get_default_memory_pool()
    before = pool.used_bytes()
    x = simulated.zeros(100)
    assert pool.used_bytes() == before + 1024
    simulated.cuda.limit = before + 1536
    with pytest.raises(
        simulated.cuda.memory.OutOfMemoryError, match=r"allocating 1,024 bytes \(allocated so far: "
    ):
        x + 1
    view = x[:50]
    del x
    assert pool.used_bytes() == before + 1024
    del view
    assert pool.used_bytes() == before


def test_streams_and_events(device):
    start, end = device.cuda.Event(), device.cuda.Event()
    with device.cuda.Stream(non_blocking=True) as stream:
        assert device.cuda.get_current_stream() == stream
        start.record()
        device.zeros(10)
        end.record(stream)
    stream.synchronize()
    end.synchronize()
    assert device.cuda.get_current_stream() == device.cuda.Stream.null
    assert device.cuda.get_elapsed_time(start, end) >= 0


def test_device(device):
    pool = device.get_default_memory_pool()
    with device.cuda.Device(0) as here:
        assert here.id == 0
        pool.free_all_blocks()
        free, total = here.mem_info
        assert free <= total
        array = device.zeros(4 << 20)
        taken = array.nbytes
        assert here.mem_info[0] <= free - taken
        del array
        pool.free_all_blocks()
        assert here.mem_info[0] > free - taken
        assert here.attributes["MultiProcessorCount"] > 0
    assert device.zeros(1).device.id == 0
    assert device.cuda.runtime.getDeviceCount() > 0


def test_pinned_memory(device):
    memory = device.cuda.alloc_pinned_memory(24)
    host = np.frombuffer(memory, np.float64, 3)
    device.arange(3.0).get(out=host)
    assert host.tolist() == [0, 1, 2]


def test_nothing_is_left_behind():
    with installed():
        importlib.import_module("rnnlab.ops.cuda")  # which imports modules that do not use CuPy
    modules, cuda = dict(sys.modules), getattr(ops, "cuda", None)
    with installed() as cupy:
        assert importlib.import_module("cupy") is cupy
        assert importlib.import_module("rnnlab.ops.cuda") not in (None, cuda)
        assert importlib.import_module("rnnlab.ops.cuda.devices").cp is cupy
    assert sys.modules == modules
    assert getattr(ops, "cuda", None) is cuda


def test_what_was_there_comes_back(monkeypatch):
    modules = {name: ModuleType(name) for name in ("cupy", "rnnlab.ops.cuda", "rnnlab.ops.cuda.part")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(ops, "cuda", modules["rnnlab.ops.cuda"], raising=False)
    with installed() as cupy:
        assert sys.modules["cupy"] is cupy
        assert "rnnlab.ops.cuda" not in sys.modules
        assert "rnnlab.ops.cuda.part" not in sys.modules
        assert not hasattr(ops, "cuda")
    assert {name: sys.modules[name] for name in modules} == modules
    assert ops.cuda is modules["rnnlab.ops.cuda"]
