"""Kernels compiled by g++: their results and the errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

CODE = Path(__file__).with_name("sample.cu").read_text()
NULL = np.uint64(0)
REALS = {"float32": "float", "float64": "double"}


def kernel(cupy: Any, name: str, dtype: str = "float64", **options: Any) -> Any:
    options["options"] = (f"-DREAL={REALS[dtype]}", "--std=c++17")
    return cupy.RawModule(code=CODE, **options).get_function(name)


@pytest.fixture(params=REALS)
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


def test_scale(device, dtype, rng):
    x = rng.standard_normal(1000).astype(dtype)
    keep = rng.random(1000) < 0.5
    y = device.empty(1000, dtype)
    arguments = device.asarray(x), y, np.int64(1000), np.dtype(dtype).type(2), np.int32(3)
    kernel(device, "scale", dtype)((3,), (64,), (*arguments, device.asarray(keep)))
    np.testing.assert_allclose(y.get(), np.where(keep, 2 * x**3, 0), rtol=1e-6)
    kernel(device, "scale", dtype)((3,), (64,), (*arguments, NULL))
    np.testing.assert_allclose(y.get(), 2 * x**3, rtol=1e-6)


def test_view_is_passed_by_its_own_start(device, dtype):
    x = device.arange(20, dtype=dtype)
    y = device.empty(5, dtype)
    index, offset = device.arange(5, dtype="int64"), device.ones(5, "int32")
    kernel(device, "gather", dtype)((1,), (32,), (x[10:], index, offset, y, np.uint64(5)))
    np.testing.assert_array_equal(y.get(), np.arange(11, 16))


@pytest.mark.parametrize("threads", [32, 128])
def test_softmax(device, dtype, rng, threads):
    x = rng.standard_normal((7, 150)).astype(dtype)
    y = device.empty_like(device.asarray(x))
    function = kernel(device, "softmax", dtype)
    function((7,), (threads,), (device.asarray(x), y, np.int32(150)), shared_mem=150 * x.itemsize)
    expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y.get(), expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_lanes_of_a_warp(device):
    results = [device.empty(64, "int32") for _ in range(5)]
    kernel(device, "lanes")((1,), (64,), results)
    ballots, down, from_three, some, halves = (result.get() for result in results)
    thread = np.arange(64)
    assert (ballots == sum(1 << lane for lane in range(0, 31, 3))).all()
    np.testing.assert_array_equal(down, np.where(thread % 32 < 28, thread + 4, thread))
    np.testing.assert_array_equal(from_three, thread // 32 * 32 + 3)
    assert (some != 0).all()
    np.testing.assert_array_equal(halves, np.where(thread % 32 < 16, thread ^ 1, -1))


def test_part_barrier(device, dtype, rng):
    w = rng.standard_normal(200).astype(dtype)
    on_device, counter = device.asarray(w), device.zeros(1, "uint32")
    function = kernel(device, "ring", dtype).kernel
    arguments = on_device, device.empty(200, dtype), np.int32(200), np.int32(4), counter
    function((4,), (32,), arguments, shared_mem=32 * w.itemsize, enable_cooperative_groups=True)
    for _ in range(4):
        w = np.roll(w, 1) + np.roll(w, -1)
    np.testing.assert_allclose(on_device.get(), w, rtol=1e-4 if dtype == "float32" else 1e-12)


GOOD = {"x": "x", "y": "y", "size": np.int64(8), "factor": np.float64(2), "power": np.int32(1), "keep": NULL}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("size", 8),
        ("size", np.int32(8)),
        ("factor", 2.0),
        ("factor", np.float32(2)),
        ("power", np.uint32(1)),
        ("x", np.zeros(8)),
        ("y", np.float64(1)),
        ("x", np.uint64(8)),
        ("keep", None),
        ("keep", np.int64(0)),
    ],
)
def test_wrong_argument(simulated, name, wrong):
    arrays = {"x": simulated.zeros(8), "y": simulated.zeros(8)}
    arguments = {**GOOD, **arrays, name: wrong}
    with pytest.raises(TypeError, match=rf"scale: parameter .*{name} got "):
        kernel(simulated, "scale")((1,), (32,), tuple(arguments.values()))


@pytest.mark.parametrize(("name", "dtype"), [("x", "float32"), ("keep", "int8"), ("y", "int64")])
def test_array_of_wrong_dtype(simulated, name, dtype):
    arrays = {"x": simulated.zeros(8), "y": simulated.zeros(8)}
    arguments = {**GOOD, **arrays, name: simulated.zeros(8, dtype)}
    with pytest.raises(TypeError, match=rf"scale: parameter .*{name} got ndarray of {dtype}"):
        kernel(simulated, "scale")((1,), (32,), tuple(arguments.values()))


def test_number_of_arguments(simulated):
    with pytest.raises(TypeError, match="leaves_early: got 0 arguments, expected 1"):
        kernel(simulated, "leaves_early")((1,), (32,), ())


def test_writing_outside(simulated):
    x = simulated.zeros(10)
    for name, arguments in (("writes_behind", (x[5:], np.int32(5))), ("writes_before", (x,))):
        with pytest.raises(AssertionError, match=f"{name}: the array of parameter x: .* its 80 bytes"):
            kernel(simulated, name)((1,), (1,), arguments)
    with pytest.raises(RuntimeError, match="writes_shared: wrote behind its 64 bytes"):
        kernel(simulated, "writes_shared")((1,), (1,), (np.int32(16),), shared_mem=64)
    kernel(simulated, "writes_shared")((1,), (1,), (np.int32(15),), shared_mem=64)


def test_deadlocks(simulated):
    function = kernel(simulated, "leaves_early")
    with pytest.raises(
        RuntimeError, match=r"deadlock in block \(0, 0, 0\): 40 threads wait at __syncthreads.*24 have"
    ):
        function((2,), (64,), (np.int32(40),))
    function((2,), (64,), (np.int32(64),))
    x = simulated.zeros(32, "int32")
    with pytest.raises(RuntimeError, match="deadlock in block .*: 7 threads wait at __shfl_xor_sync"):
        kernel(simulated, "shuffles_without_all")((1,), (32,), (x, np.int32(7)))
    counter = simulated.zeros(1, "uint32")
    function = kernel(simulated, "block_stays_away").kernel
    with pytest.raises(RuntimeError, match=r"block_stays_away: deadlock .*: 32 threads wait at part_barrier"):
        function((3,), (32,), (counter,), enable_cooperative_groups=True)


def test_barrier_in_a_plain_kernel(simulated):
    with pytest.raises(RuntimeError, match="waits: __syncthreads in a KERNEL: declare it BLOCK_KERNEL"):
        kernel(simulated, "waits")((1,), (32,), (simulated.zeros(1),))


def test_missing_barrier_shows(simulated):
    x = simulated.zeros(32)
    kernel(simulated, "races")((1,), (32,), (x,), shared_mem=8)
    assert simulated.isnan(x).any()


@pytest.mark.parametrize(("grid", "block"), [((0,), (32,)), ((1,), (0,)), ((1,), (1025,)), ((1,), (64, 32))])
def test_impossible_sizes(simulated, grid, block):
    with pytest.raises(simulated.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_VALUE"):
        kernel(simulated, "leaves_early")(grid, block, (np.int32(0),))


def test_shared_memory_has_to_be_asked_for(simulated):
    function = kernel(simulated, "leaves_early")
    invalid = pytest.raises(simulated.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_VALUE")
    with invalid:
        function((1,), (32,), (np.int32(0),), shared_mem=50_000)
    function.max_dynamic_shared_size_bytes = 50_000
    function((1,), (32,), (np.int32(0),), shared_mem=50_000)
    with invalid:
        function.max_dynamic_shared_size_bytes = 300_000


def test_cooperative_launch(simulated):
    arguments = simulated.zeros(1), simulated.zeros(1), np.int32(0), np.int32(0), simulated.zeros(1, "uint32")
    with pytest.raises(RuntimeError, match="ring is a GRID_KERNEL"):
        kernel(simulated, "ring")((1,), (32,), arguments)
    function = kernel(simulated, "ring").kernel
    with pytest.raises(simulated.cuda.driver.CUDADriverError, match="COOPERATIVE_LAUNCH_TOO_LARGE"):
        function((9,), (1024,), arguments, enable_cooperative_groups=True)
    with pytest.raises(RuntimeError, match="cudadevrt is not found"):
        kernel(simulated, "ring", enable_cooperative_groups=True)
    with pytest.raises(RuntimeError, match="cudadevrt is not found"):
        simulated.RawKernel(CODE, "ring", ("-DREAL=float",), enable_cooperative_groups=True)


def test_what_barriers_demand(simulated):
    code = """
BLOCK_KERNEL(two_barriers)(int n) { if ((int)threadIdx.x < n) __syncthreads(); else __syncthreads_or(1); }
BLOCK_KERNEL(two_masks)(int n) { __syncwarp((int)threadIdx.x < n ? 0xffffu : 0xffffffffu); }
BLOCK_KERNEL(not_in_mask)(int n) { __ballot_sync(0xfu, n); }
BLOCK_KERNEL(whole_grid)(int n) { part_barrier(nullptr, 1, 1); }
GRID_KERNEL(no_counter)(int n) { part_barrier(nullptr, 1, 1); }
GRID_KERNEL(later_round)(int n) { SHARED(unsigned, counter); *counter = 0; part_barrier(counter, 1, 2); }
"""
    module = simulated.RawModule(code=code)
    messages = {
        "two_barriers": "threads of one block are at __syncthreads",
        "two_masks": "deadlock in block .*: 16 threads wait at __syncwarp",
        "not_in_mask": "__ballot_sync: lane .* is not in its own mask 0000000f",
        "whole_grid": "part_barrier in a BLOCK_KERNEL",
        "no_counter": "part_barrier without a counter",
        "later_round": "part_barrier out of turn",
    }
    for name, message in messages.items():
        with pytest.raises(RuntimeError, match=f"{name}: {message}"):
            module.get_function(name).kernel(
                (1,),
                (32,),
                (np.int32(16),),
                shared_mem=4,
                enable_cooperative_groups=f"GRID_KERNEL({name})" in code,
            )


def test_typedef(simulated):
    code = "typedef unsigned long long Size;\nKERNEL(put)(Size* x, Size value) { x[INDEX] = value; }"
    x = simulated.zeros(64, "uint64")
    simulated.RawModule(code=code).get_function("put")((2,), (32,), (x, np.uint64(2**63)))
    assert x.tolist() == [2**63] * 64


def test_unknown_kernel_and_bad_source(simulated):
    with pytest.raises(simulated.cuda.driver.CUDADriverError, match="NOT_FOUND"):
        kernel(simulated, "nothing")
    with pytest.raises(simulated.cuda.compiler.CompileException, match="nonsense"):
        simulated.RawModule(code="KERNEL(f)(int n) { nonsense; }").get_function("f")
    with pytest.raises(simulated.cuda.compiler.CompileException, match="f: parameter 'half x'"):
        simulated.RawModule(code="KERNEL(f)(half x) { }").get_function("f")
    with pytest.raises(simulated.cuda.compiler.CompileException, match="f: a GRID_KERNEL"):
        simulated.RawModule(code="GRID_KERNEL(f)(int n) { __shared__ int s[4]; }").get_function("f")


def test_launches_are_counted(simulated):
    for _ in range(3):
        kernel(simulated, "leaves_early")((1,), (1,), (np.int32(0),))
    assert simulated.launches == {"leaves_early": 3}


def test_nvrtc_compiles_the_sample():
    nvrtc = pytest.importorskip("cupy").cuda.nvrtc
    for real in REALS.values():
        program = nvrtc.createProgram(CODE, "sample.cu", [], [])
        try:
            nvrtc.compileProgram(program, [f"-DREAL={real}", "--std=c++17", "--gpu-architecture=sm_90"])
        except nvrtc.NVRTCError:
            pytest.fail(nvrtc.getProgramLog(program))
        finally:
            nvrtc.destroyProgram(program)
