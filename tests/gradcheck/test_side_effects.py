from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
from collections import deque
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from rnnlab.gradcheck.side_effects import arrays_in, check_threads, check_untouched


class Inner(NamedTuple):
    product: np.ndarray


class Slots:
    """An object without a dictionary, one of whose slots is empty."""

    __slots__ = ("array", "empty")

    def __init__(self, array):
        self.array = array

    def method(self):
        return self.array


class MoreSlots(Slots):
    """Slots of its own and inherited ones."""

    __slots__ = "other"

    def __init__(self, array):
        super().__init__(array)
        self.other = array + 1


@dataclasses.dataclass
class Workspace:
    name: str
    scratch: np.ndarray


class Cache(NamedTuple):
    x: np.ndarray
    parts: tuple
    inner: Inner
    params: dict
    workspace: Workspace
    cell: SimpleNamespace
    slots: MoreSlots
    step: functools.partial
    note: str = "not an array"


def forward(x, w):
    captured = x + 5
    cell = SimpleNamespace(masks=[x > 0], function=lambda: captured, method=Slots(x + 6).method)
    cell.itself = cell  # a cycle
    cache = Cache(
        x.copy(), (w.copy(), [x + w]), Inner(x * w), {"Wx": x + 2}, Workspace("of a step", x + 3), cell,
        MoreSlots(x + 4), functools.partial(np.add, x + 7, out=x + 8),
    )  # fmt: skip
    return x * w, cache


def backward(dout, cache):
    return dout * cache.parts[0], dout * cache.x


@pytest.fixture
def inputs(rng):
    return {"x": rng.standard_normal(3), "w": rng.standard_normal(3)}


def test_all_arrays_of_a_cache_are_found(inputs):
    assert [path for path, _ in arrays_in(forward(**inputs)[1])] == [
        "x",
        "parts[0]",
        "parts[1][0]",
        "inner.product",
        "params['Wx']",
        "workspace.scratch",
        "cell.masks[0]",
        "cell.function.__closure__[0]",
        "cell.method.__self__.array",
        "slots.other",
        "slots.array",
        "step.args[0]",
        "step.keywords['out']",
    ]


def test_an_array_is_found_once():
    array = np.ones(2)
    assert [path for path, _ in arrays_in([array, {"again": array}])] == ["[0]"]
    assert [path for path, _ in arrays_in(array)] == [""]


def test_untouched(inputs):
    assert check_untouched(forward, backward, inputs, np.ones(3)) == []
    assert check_untouched(forward, backward, inputs, (np.ones(3),)) == []


def test_a_forward_that_writes_into_its_input(inputs):
    def careless(x, w):
        w *= 2
        return forward(x, w)

    assert check_untouched(careless, backward, inputs, np.ones(3)) == ["input w"]


@pytest.mark.parametrize("number", range(13))
def test_a_backward_that_writes_into_its_cache(number, inputs):
    def careless(dout, cache):
        array = list(arrays_in(cache))[number][1]
        np.logical_not(array, out=array) if array.dtype == bool else np.multiply(array, 2, out=array)
        return backward(dout, cache)

    path = [path for path, _ in arrays_in(forward(**inputs)[1])][number]
    assert check_untouched(forward, careless, inputs, np.ones(3)) == [f"cache {path}"]


def test_a_backward_that_writes_into_dout_or_into_an_input(inputs):
    def into_dout(dout, cache):
        dout += 1

    def into_input(dout, cache):
        inputs["w"] += 1

    assert check_untouched(forward, into_dout, inputs, (np.ones(3),)) == ["dout 0"]
    assert check_untouched(forward, into_input, inputs, np.ones(3)) == ["input w"]


def test_a_backward_that_replaces_or_adds_an_array(inputs):
    def replacing(dout, cache):
        cache.workspace.scratch = np.zeros(3)
        cache.parts[1].append(np.zeros(1))
        cache.params.clear()

    assert check_untouched(forward, replacing, inputs, np.ones(3)) == [
        "cache params['Wx']",
        "cache workspace.scratch",
        "cache parts[1][1]",
    ]


def test_a_cache_that_is_an_array(rng):
    def careless(dout, cache):
        cache += dout

    assert check_untouched(lambda x: (x, x.copy()), careless, {"x": np.ones(3)}, np.ones(3)) == ["cache"]


def test_nan_that_stays_nan_is_untouched():
    assert check_untouched(forward, backward, {"x": np.array([np.nan]), "w": np.ones(1)}, np.ones(1)) == []


def test_a_cache_on_a_device(simulated):
    def double(x):
        return x * 2, [x.copy()]

    def careless(dout, cache):
        cache[0] += dout
        return dout * 2

    x = simulated.ones(3)
    assert check_untouched(double, careless, {"x": x}, simulated.ones(3)) == ["cache [0]"]
    assert check_untouched(double, lambda dout, cache: dout * 2, {"x": x}, simulated.ones(3)) == []


def test_one_cache_for_several_threads(inputs):
    assert check_threads(forward, backward, inputs, np.ones(3)) == []
    assert check_threads(forward, lambda dout, cache: dout.copy(), inputs, (np.ones(3),)) == []


def test_gradients_that_are_added_to_an_array_of_all_calls(inputs):
    def careless(dout, cache):
        cache.x[...] += dout
        return cache.x

    assert check_threads(forward, careless, inputs, np.ones(3), num_threads=1) == ["gradient"]


def test_threads_that_share_a_workspace(inputs):
    """Each thread writes its own numbers, and waits until another one has written too."""
    barrier, numbers = threading.Barrier(2), itertools.count()

    def careless(dout, cache):
        cache.workspace.scratch[...] = next(numbers)
        if threading.current_thread() is not threading.main_thread():
            barrier.wait(timeout=10)
        return dout * cache.x, dout * cache.workspace.scratch

    assert check_threads(forward, careless, inputs, np.ones(3), num_threads=2, repetitions=1) == [
        "gradient [1]"
    ]


def test_what_a_thread_raises_is_raised(inputs):
    def failing(dout, cache):
        if threading.current_thread() is not threading.main_thread():
            raise ArithmeticError("in a thread")

    with pytest.raises(ArithmeticError, match="in a thread"):
        check_threads(forward, failing, inputs, np.ones(3))


def test_arrays_in_queues_and_arrays_of_objects_are_found():
    first, second = np.zeros(2), np.ones(3)
    objects = np.empty(1, object)
    objects[0] = second
    found = [array for _, array in arrays_in((deque([first]), objects))]
    assert [array is expected for array, expected in zip(found, (first, second), strict=True)] == [True, True]


def test_arrays_in_the_defaults_of_a_function_are_found():
    first, second = np.zeros(2), np.ones(2)

    def function(x=first, *, y=second):
        return x + y

    assert [path for path, _ in arrays_in(function)] == ["__defaults__[0]", "__kwdefaults__['y']"]
