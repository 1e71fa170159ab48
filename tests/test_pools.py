"""A function of many items, in several processes."""

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from rnnlab.pools import map_in_processes

HERE = os.getpid()


def square(number):
    return number**2


def killed_at_2(item):
    """The square of a number, but in another process the second one kills it."""
    number, parent = item
    if number == 2 and os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3:
        time.sleep(0.1)
    return number**2


def pool():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_results_are_in_the_order_of_the_items():
    assert list(map_in_processes(pool(), square, range(5))) == [0, 1, 4, 9, 16]
    assert list(map_in_processes(pool(), square, [])) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no signals")
def test_after_a_process_is_killed_the_rest_is_computed_here():
    items = [(number, os.getpid()) for number in range(1, 6)]
    results = map_in_processes(pool(), killed_at_2, items)
    with pytest.warns(RuntimeWarning, match="a process was killed, perhaps for lack of memory: the rest"):
        assert list(results) == [1, 4, 9, 16, 25]


def test_an_error_of_the_function_is_raised_and_the_rest_is_cancelled():
    started = pool()
    with pytest.raises(TypeError):
        list(map_in_processes(started, square, [1, "two", 3]))
    with pytest.raises(RuntimeError, match="shutdown"):
        started.submit(square, 1)
