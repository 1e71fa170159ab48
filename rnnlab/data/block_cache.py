"""The blocks of lazy features that are in memory, for all files together and up to a number of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

CACHE_BYTES = 512 << 20  # for all lazy features of a process together; documented in docs/data.md


class BlockCache:
    """Blocks by owner and number. To add one, the least recently used ones are dropped.

    It is safe for threads.

    Parameters
    ----------
    most_bytes : int

    Attributes
    ----------
    num_bytes : int
        The size of the blocks in the cache, at most ``most_bytes``.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.num_bytes = most_bytes, 0
        self._blocks: OrderedDict[tuple[object, int], np.ndarray] = OrderedDict()
        # The garbage collector may call drop() in the middle of any method, in the same thread. So num_bytes
        # is read only after the size to subtract is known, and drop() iterates over a copy of the keys.
        self._lock = threading.RLock()

    def get(self, owner: object, number: int) -> np.ndarray | None:
        """A block, which becomes the most recently used one; None if it is not in the cache."""
        with self._lock:
            block = self._blocks.get((owner, number))
            if block is not None:
                self._blocks.move_to_end((owner, number))
            return block

    def add(self, owner: object, number: int, block: np.ndarray) -> None:
        """Add a block of at most ``most_bytes`` that is not in the cache."""
        with self._lock:
            while self._blocks and self.num_bytes + block.nbytes > self.most_bytes:
                size = self._blocks.popitem(last=False)[1].nbytes
                self.num_bytes -= size
            self._blocks[owner, number] = block
            self.num_bytes += block.nbytes

    def drop(self, owner: object) -> None:
        """Drop all blocks of an owner."""
        with self._lock:
            for key in list(self._blocks):
                if key[0] is owner:
                    size = self._blocks.pop(key).nbytes
                    self.num_bytes -= size


SHARED = BlockCache(CACHE_BYTES)
