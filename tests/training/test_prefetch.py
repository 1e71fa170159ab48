from __future__ import annotations

import threading
from contextlib import closing

import pytest

from rnnlab.training.prefetch import prefetched


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.parametrize("ahead", [0, 1, 2, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_all_in_order(ahead, count):
    assert list(prefetched(lambda n: n * n, range(count), ahead)) == [n * n for n in range(count)]


@pytest.mark.parametrize("ahead", [1, 3])
def test_so_many_are_prepared_ahead_and_no_more(ahead):
    prepared = [threading.Event() for _ in range(9)]
    with closing(prefetched(lambda n: prepared[n].set(), range(9), ahead)) as results:
        for used, _ in enumerate(results):
            for event in prepared[: used + 1 + ahead]:
                assert event.wait(timeout=60)
            assert not any(event.is_set() for event in prepared[used + 1 + ahead :])


def test_one_other_thread_prepares():
    threads = set(prefetched(lambda _: threading.current_thread(), range(9), 2))
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert set(prefetched(lambda _: threading.current_thread(), range(9), 0)) == {threading.current_thread()}


@pytest.mark.parametrize("ahead", [0, 1, 2, 100])
def test_an_error_comes_where_it_happened(ahead):
    found = []
    with pytest.raises(ZeroDivisionError):
        found.extend(prefetched(lambda n: 1 / (n - 3), range(9), ahead))
    assert found == [1 / (n - 3) for n in range(3)]


@pytest.mark.parametrize("ahead", [0, 2])
def test_an_early_end_leaves_the_rest(ahead):
    prepared = []
    with closing(prefetched(prepared.append, range(1000), ahead)) as results:
        next(results)
    assert len(prepared) <= 2 + ahead


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_of_who_asks(error):
    with pytest.raises(error), closing(prefetched(str, range(9), 2)) as results:  # noqa: PT012
        next(results)
        raise error
