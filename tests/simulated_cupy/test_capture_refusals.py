"""Operations that CUDA or CuPy refuses, and operations that it allows, while a stream captures."""

from __future__ import annotations

import numpy as np
import pytest

from .test_capture import capturing, launched

TO_HOST = {
    "get": lambda cp, x: x.get(),
    "asnumpy": lambda cp, x: cp.asnumpy(x),
    "item": lambda cp, x: x[0, 0].item(),
    "tolist": lambda cp, x: x.tolist(),
    "float": lambda cp, x: float(x[0, 0]),
    "int": lambda cp, x: int(x[0, 0]),
    "if": lambda cp, x: bool(x.sum() > 0),
    "slice": lambda cp, x: x[: x[0].argmax()],
    "nonzero": lambda cp, x: x.nonzero(),
    "flatnonzero": lambda cp, x: cp.flatnonzero(x),
    "mask": lambda cp, x: x[x > 0],
    "host": lambda cp, x: cp.asarray(np.ones(3)),
    "list": lambda cp, x: cp.array([1, 2]),
    "index of a list": lambda cp, x: x[[0, 1]],
    "set": lambda cp, x: x.set(np.ones((3, 4))),
    "many small arrays": lambda cp, x: cp.concatenate([x] * 9),
    "many small arrays in a stack": lambda cp, x: cp.stack([x] * 9),
}


@pytest.mark.parametrize("function", TO_HOST.values(), ids=TO_HOST)
def test_copies_are_refused(device, stream, x, function):
    with capturing(stream) as graphs:
        with pytest.raises(RuntimeError, match="is capturing"):
            function(device, x)
        x += 1
    before = x.get()
    launched(stream, graphs[0])
    np.testing.assert_array_equal(x.get(), before + 1)


def test_some_joins_are_possible(device, stream, x):
    with capturing(stream) as graphs:
        few = device.concatenate([x] * 8)
        mixed = device.concatenate([x] * 8 + [x.astype("float32")])
    launched(stream, graphs[0])
    np.testing.assert_array_equal(few.get(), np.tile(x.get(), (8, 1)))
    assert mixed.shape == (27, 4)


PRODUCTS = {
    "matmul": lambda cp, x: cp.matmul(x, x),
    "operator": lambda cp, x: x @ x,
    "in place": lambda cp, x: cp.matmul(x, x, out=cp.empty_like(x)),
    "dot": lambda cp, x: cp.dot(x, x),
    "method": lambda cp, x: x.dot(x),
    "tensordot": lambda cp, x: cp.tensordot(x, x, 1),
}


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=PRODUCTS)
def test_cublas_is_refused(device, stream, function):
    x = device.ones((4, 4))
    with capturing(stream) as graphs, pytest.raises(NotImplementedError, match="cuBLAS"):
        function(device, x)
    launched(stream, graphs[0])


def recorded(cp, stream):
    event = cp.cuda.Event()
    event.record(stream)
    return event


def uncaptured(cp):
    other = cp.cuda.Stream(non_blocking=True)
    return recorded(cp, other)


ENDS = {
    "stream": lambda cp, stream: stream.synchronize(),
    "device": lambda cp, stream: cp.cuda.Device().synchronize(),
    "runtime": lambda cp, stream: cp.cuda.runtime.deviceSynchronize(),
    "event": lambda cp, stream: recorded(cp, stream).synchronize(),
    "event of another stream": lambda cp, stream: stream.wait_event(uncaptured(cp)),
}


def check_that_it_ends(cp, stream, function):
    x = cp.zeros(3)
    with stream:
        stream.begin_capture()
        with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaError"):
            function(cp, stream)
        with pytest.raises(RuntimeError):
            x += 1
        with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
            stream.end_capture()
        assert not stream.is_capturing()
        x += 2
        stream.synchronize()
    assert (x.get() == 2).all()


@pytest.mark.parametrize("function", ENDS.values(), ids=ENDS)
def test_what_ends_a_capture(simulated, function):
    check_that_it_ends(simulated, simulated.cuda.Stream(non_blocking=True), function)


def test_waiting_for_the_stream_ends_a_capture(device, stream):
    check_that_it_ends(device, stream, ENDS["stream"])


def test_a_query_ends_a_capture(simulated):
    stream = simulated.cuda.Stream(non_blocking=True)
    assert stream.done
    stream.begin_capture()
    assert not stream.done
    with pytest.raises(RuntimeError, match="invalidated the capture"):
        stream.is_capturing()
    with pytest.raises(simulated.cuda.runtime.CUDARuntimeError, match="Invalidated"):
        stream.end_capture()


def test_sorting_ends_a_capture(simulated, x):
    stream = simulated.cuda.Stream(non_blocking=True)
    error = simulated.cuda.runtime.CUDARuntimeError
    for function in (simulated.sort, simulated.argsort):
        stream.begin_capture()
        with stream, pytest.raises(error, match="CaptureUnsupported"):
            function(x)
        with pytest.raises(error, match="Invalidated"):
            stream.end_capture()


def test_begin_and_end(device, stream):
    with pytest.raises(RuntimeError, match="default"):
        device.cuda.Stream.null.begin_capture()
    with pytest.raises(device.cuda.runtime.CUDARuntimeError, match="cudaErrorIllegalState"):
        stream.end_capture()
    assert not stream.is_capturing()
    assert not device.cuda.Stream.null.is_capturing()
    with (
        capturing(stream) as graphs,
        pytest.raises(device.cuda.runtime.CUDARuntimeError, match="IllegalState"),
    ):
        stream.begin_capture()
    launched(stream, graphs[0])
    with pytest.raises(NotImplementedError, match="stream capture"):
        type(graphs[0])()


def test_what_is_not_simulated(simulated):
    with pytest.raises(NotImplementedError, match="null stream"):
        simulated.cuda.Stream().begin_capture()
    stream, other = (simulated.cuda.Stream(non_blocking=True) for _ in range(2))
    with capturing(stream) as graphs:
        event = recorded(simulated, stream)
        stream.wait_event(event)
        with pytest.raises(NotImplementedError, match="joins"):
            other.wait_event(event)
    with capturing(stream), pytest.raises(NotImplementedError, match="while a stream captures"):
        graphs[0].launch()


def test_another_stream_works_on(device, stream, x):
    other = device.cuda.Stream(non_blocking=True)
    with capturing(stream) as graphs:
        y = x * 2
        with other:
            there = device.asarray(np.ones(3))
            there += 1
            assert there.get().tolist() == [2, 2, 2]
            x.set(np.full((3, 4), 5.0))
            product = there @ there
            event = recorded(device, other)
            event.synchronize()
            other.synchronize()
            assert not other.is_capturing()
        assert float(product.get(stream=other)) == 12
        x += 1
    assert there.get().tolist() == [2, 2, 2]
    assert (x.get() == 5).all()
    launched(stream, graphs[0])
    assert (y.get() == 10).all()
    assert (x.get() == 6).all()
    assert there.get().tolist() == [2, 2, 2]
