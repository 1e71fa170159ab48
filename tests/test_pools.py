"""A function of many items, in several processes."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from rnnlab.pools import map_in_processes

TWO = {"jobs": 2, "method": "spawn"}
kills = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no signals")


def square(number):
    return number**2


def killed_once(item):
    """The square of a number; the first time, the process of the number 2 is killed."""
    number, folder = item
    if number == 2 and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 3:
        time.sleep(0.1)
    return number**2


def killed_at_2(number):
    """The square of a number; the process of the number 2 is killed, each time."""
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def of_ctrl_c(_):
    signal.raise_signal(signal.SIGINT)
    return os.environ.get("STARTED")


def touched_late(item):
    """0 for the number 0; otherwise a second passes, and then a file is made."""
    number, folder = item
    if number:
        (folder / "begun").touch()
        time.sleep(1)
        (folder / "ended").touch()
    return number


def start():
    os.environ["STARTED"] = "yes"


def test_results_are_in_the_order_of_the_items():
    assert list(map_in_processes(square, range(5), **TWO)) == [0, 1, 4, 9, 16]
    assert list(map_in_processes(square, [], **TWO)) == []


def test_processes_ignore_ctrl_c_and_call_start():
    assert list(map_in_processes(of_ctrl_c, [1, 2], **TWO, start=start)) == ["yes", "yes"]
    assert list(map_in_processes(of_ctrl_c, [1], **TWO)) == [None]


@kills
def test_after_a_process_is_killed_the_rest_is_computed_one_by_one(tmp_path):
    results = map_in_processes(killed_once, [(number, tmp_path) for number in range(1, 6)], **TWO)
    with pytest.warns(RuntimeWarning, match="a process was killed, perhaps for lack of memory: the rest"):
        assert list(results) == [1, 4, 9, 16, 25]


@kills
def test_an_item_whose_process_is_killed_twice():
    with pytest.warns(RuntimeWarning, match="killed"):
        assert list(map_in_processes(killed_at_2, [1, 2, 3], **TWO, killed=str)) == [1, "2", 9]
    with (
        pytest.warns(RuntimeWarning, match="killed"),
        pytest.raises(OSError, match="killed twice at the same work, perhaps for lack of memory"),
    ):
        list(map_in_processes(killed_at_2, [1, 2, 3], **TWO))


def test_a_process_is_killed_before_all_items_are_submitted(monkeypatch):
    class Breaking(ThreadPoolExecutor):
        def submit(self, function, item):
            if self._max_workers == 2 and item == 2:
                raise BrokenProcessPool
            return super().submit(function, item)

    monkeypatch.setattr("rnnlab.pools._pool", lambda jobs, method, start: Breaking(jobs))
    with pytest.warns(RuntimeWarning, match="the rest is done one by one"):
        assert list(map_in_processes(square, [1, 2, 3], **TWO)) == [1, 4, 9]


@pytest.mark.slow
@pytest.mark.parametrize("terminate", [False, True])
def test_no_more_results_are_wanted(terminate, tmp_path):
    items = [(number, tmp_path) for number in (0, 1)]
    results = map_in_processes(touched_late, items, **TWO, terminate=terminate)
    assert next(results) == 0
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    results.close()
    assert (tmp_path / "ended").exists() != terminate


def test_an_error_of_the_function_is_raised():
    with pytest.raises(TypeError):
        list(map_in_processes(square, [1, "two", 3], **TWO))
