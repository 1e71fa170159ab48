import threading

import numpy as np
import pytest

from rnnlab.data.block_cache import CACHE_BYTES, SHARED, BlockCache

FIRST, SECOND = object(), object()


def block(size, value=0):
    return np.full(size, value, np.uint8)


def numbers(cache, owner, count=10):
    """The blocks of an owner that are in the cache, which this does not change."""
    return [number for number in range(count) if (owner, number) in cache._blocks]


def test_the_least_recently_used_blocks_are_dropped():
    cache = BlockCache(10)
    for number in range(3):
        cache.add(FIRST, number, block(3, number))
    assert cache.get(FIRST, 0)[0] == 0
    cache.add(SECOND, 0, block(5, 7))
    assert (numbers(cache, FIRST), numbers(cache, SECOND)) == ([0], [0])
    assert cache.num_bytes == 8
    assert cache.get(FIRST, 1) is None
    assert cache.get(SECOND, 0)[0] == 7


def test_a_block_as_large_as_the_cache():
    cache = BlockCache(10)
    cache.add(FIRST, 0, block(4))
    cache.add(FIRST, 1, block(10))
    assert (numbers(cache, FIRST), cache.num_bytes) == ([1], 10)


def test_an_owner_is_dropped_alone():
    cache = BlockCache(10)
    for owner in (FIRST, SECOND):
        cache.add(owner, 0, block(2))
    cache.drop(FIRST)
    cache.drop(FIRST)
    assert (numbers(cache, FIRST), numbers(cache, SECOND), cache.num_bytes) == ([], [0], 2)


@pytest.mark.parametrize("evict", [True, False])
def test_the_garbage_collector_drops_another_owner_in_the_middle_of_a_method(evict):
    """It may run after any call, such as that which returns a block that is dropped."""
    cache = BlockCache(10)

    class Collected:
        @property
        def nbytes(self):
            cache.drop(SECOND)
            return 4

    cache.add(FIRST, 0, block(4))
    cache._blocks[FIRST, 0] = Collected()
    cache.add(SECOND, 0, block(3))
    cache.add(FIRST, 1, block(3))
    if evict:
        cache.add(FIRST, 2, block(5))
    else:
        cache.drop(FIRST)
    assert cache.num_bytes == sum(each.nbytes for each in cache._blocks.values()) == (8 if evict else 0)


def test_the_size_is_kept_by_threads():
    cache, most = BlockCache(50), []

    def work(seed):
        rng, owner = np.random.default_rng(seed), object()
        for _ in range(300):
            number = int(rng.integers(20))
            if cache.get(owner, number) is None:
                cache.add(owner, number, block(int(rng.integers(1, 20))))
            most.append(cache.num_bytes)
        cache.drop(owner)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 30 < max(most) <= 50
    assert cache.num_bytes == 0


def test_the_documented_number():
    assert SHARED.most_bytes == CACHE_BYTES == 512 << 20


@pytest.mark.parametrize("size", [0, 5])
def test_an_empty_cache_takes_a_block(size):
    cache = BlockCache(5)
    cache.add(FIRST, 3, block(size))
    assert cache.get(FIRST, 3).size == size
