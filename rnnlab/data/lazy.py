"""Features larger than memory, read from HDF5 on demand, one block of rows at a time.

The rows of the file are divided into blocks of complete chunks. A requested block is read, decoded and
cached; it replaces the least recently used blocks of all lazy features of the process, which share one cache.
Rows can be read in any order, but a block is read only once if consecutive rows are in few blocks: see
:meth:`LazyFeatures.epoch_order`.
"""

from __future__ import annotations

import math
import threading
import weakref
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from rnnlab.data.block_cache import SHARED, BlockCache
from rnnlab.data.blocks import BLOCK_BYTES, Features, block_shuffle
from rnnlab.data.hdf5 import affine_of, decode_values, get_dataset, read_dataset
from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.hdf5_objects import open_hdf5, read_values, where
from rnnlab.reading import PathLike, mismatch

_LEAST_BLOCKS = 32  # minimum blocks in the window, if the size of chunks permits


def features_in(path: PathLike, rows: np.ndarray | None = None, *, lazy: bool) -> Features:
    """The dataset ``features`` of an HDF5 file, or some of its rows: lazy, or as an array."""
    if lazy:
        return LazyFeatures(path, rows=rows)
    with open_hdf5(path) as file:
        features = read_dataset(file, "features")
    return features if rows is None else features[rows]


class LazyFeatures:
    """The features of images in an HDF5 file, indexed like an array (num_images, ..., D) of float32.

    ``features[indices]`` is a new array; ``indices`` is an integer, a slice, an array of integers in any
    order and with repeats, or a boolean mask. float16 is decoded, as are integers with attributes ``offset``
    and ``scale``. It is safe for threads. As a context manager it closes its file at the end of the block;
    otherwise the file is closed with the last reference to it.

    Parameters
    ----------
    path : path
    dataset : str
        The name of the dataset in the file.
    rows : (num_images,) int, optional
        The row of the file of each image, in any order. By default all rows in their order.
    cache_bytes : int, optional
        The size of a cache of its own, which holds float32. By default the features share the cache of
        ``CACHE_BYTES`` with all others of the process.
    mean, std : (D,) float32, optional
        Features are returned as (features - mean) / std. Both or neither.

    Attributes
    ----------
    shape, dtype, ndim
        As in an array.
    blocks : (num_images,) int
        The block of the file that each image is in.
    window : int
        The number of blocks that :meth:`epoch_order` mixes: as many as fit into the features' own cache, or
        into half of the shared cache. The other half is for features that are read at the same time.

    Raises
    ------
    OSError, KeyError, ValueError
        If the file is missing, truncated or not HDF5; if it has no such dataset; if the dataset has another
        dtype or number of dimensions, or, when it is read, NaN or infinity; if ``rows``, ``mean`` or ``std``
        do not fit it; if one block is larger than the cache.
    """

    dtype = np.dtype(np.float32)
    __array_ufunc__ = None  # features - mean is a TypeError instead of a slow copy

    def __init__(
        self,
        path: PathLike,
        dataset: str = "features",
        rows: np.ndarray | None = None,
        cache_bytes: int | None = None,
        *,
        mean: np.ndarray | None = None,
        std: np.ndarray | None = None,
    ) -> None:
        with ExitStack() as stack:
            self._dataset = get_dataset(stack.enter_context(open_hdf5(path)), dataset)
            self._where = where(self._dataset)
            self._affine = affine_of(self._dataset)
            self._check_dataset()
            self._rows = self._checked_rows(rows)
            self._scaling = self._checked_scaling(mean, std)
            self._cache = SHARED if cache_bytes is None else BlockCache(cache_bytes)
            self._block_rows, self.window = self._choose_blocks(is_shared=cache_bytes is None)
            self._owner = object()  # identifies this object's blocks in the cache
            stack.callback(self._cache.drop, self._owner)
            self._close = weakref.finalize(self, stack.pop_all().close)
        self._source = (path, dataset, self._rows, cache_bytes)
        self.shape: tuple[int, ...] = (len(self._rows), *self._dataset.shape[1:])
        self.ndim = len(self.shape)
        self.blocks = self._rows // self._block_rows
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, indices: Any) -> np.ndarray:
        if isinstance(indices, tuple):  # features[..., 0] would be the first image
            raise OutOfRangeError(
                f"{self._where}: found the index {indices!r:.60}, expected one of images alone"
            )
        try:
            rows = self._rows[indices]
        except IndexError as error:
            raise OutOfRangeError(f"{self._where}: {error}") from None
        with self._lock:
            if not self._close.alive:
                raise InputError(f"{self._where}: found the features closed, expected them open")
            found = self._gather(np.ravel(rows))
        return found.reshape(*np.shape(rows), *self.shape[1:])

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise InputTypeError(f"{self._where}: lazy features are not an array; features[:] reads all of them")

    def standardised(self, mean: np.ndarray, std: np.ndarray) -> LazyFeatures:
        """The same features, (features - ``mean``) / ``std``, both (D,), from a separately opened file."""
        if self._scaling is not None:
            own_mean, own_std = self._scaling
            mean, std = own_mean + own_std * mean, own_std * std
        return LazyFeatures(*self._source, mean=mean, std=std)

    def epoch_order(self, image_idxs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A random order of the examples of the images ``image_idxs`` (N,) that reads every block about once.

        It is the order of :func:`rnnlab.data.blocks.block_shuffle` with this ``window``, so it depends on the
        size of the cache as well as on the generator. If all blocks fit into the window, every order is
        equally likely.
        """
        return block_shuffle(self.blocks[image_idxs], rng, self.window)

    def close(self) -> None:
        """Close the file and drop its blocks from the cache."""
        with self._lock:
            self._close()

    def __enter__(self) -> LazyFeatures:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LazyFeatures({self._where}: {self.shape}, window of {self.window} blocks)"

    def _check_dataset(self) -> None:
        shape, dtype = self._dataset.shape, self._dataset.dtype
        if dtype.kind != "f" and not (dtype.kind in "iu" and self._affine[0] is not None):
            expected = "a floating-point dtype, or integers with the attributes offset and scale"
            raise mismatch(self._where, f"dtype {dtype}", expected)
        if len(shape) < 2 or 0 in shape[1:]:
            expected = "(num_images, ..., D), each but the first at least 1"
            raise mismatch(self._where, f"shape {shape}", expected)

    def _checked_rows(self, rows: np.ndarray | None) -> np.ndarray:
        count = len(self._dataset)
        if rows is None:
            return np.arange(count)
        rows = np.asarray(rows)
        if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.size):
            raise mismatch(f"{self._where}: rows", f"{rows.dtype} {rows.shape}", "integers (num_images,)")
        if rows.size and not (rows.min() >= 0 and rows.max() < count):
            found = f"rows from {rows.min()} to {rows.max()}"
            raise mismatch(f"{self._where}: rows", found, f"at least 0 and less than the {count} of the file")
        return rows.astype(np.int64)

    def _checked_scaling(
        self, mean: np.ndarray | None, std: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        if mean is None and std is None:
            return None
        scaling = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        for name, value in zip(("mean", "std"), scaling, strict=True):
            if value.shape != self._dataset.shape[-1:]:
                raise mismatch(f"{self._where}: {name}", f"shape {value.shape}", self._dataset.shape[-1:])
            if not np.isfinite(value).all() or (name == "std" and value.min() <= 0):
                raise mismatch(f"{self._where}: {name}", value, "finite numbers, std above 0")
        return scaling

    def _choose_blocks(self, *, is_shared: bool) -> tuple[int, int]:
        """The rows in a block, and the number of blocks in the window."""
        count, cache_bytes = max(1, len(self._dataset)), self._cache.most_bytes
        window_bytes = cache_bytes // 2 if is_shared else cache_bytes
        row_bytes = self.dtype.itemsize * math.prod(self._dataset.shape[1:])
        chunk = min(self._dataset.chunks[0], count) if self._dataset.chunks else 1
        wanted = min(BLOCK_BYTES, window_bytes // _LEAST_BLOCKS) // row_bytes
        block_rows = max(chunk, wanted // chunk * chunk)
        block_bytes = block_rows * row_bytes
        if cache_bytes < block_bytes:
            expected = f"at least the {block_bytes} bytes of a block of {block_rows} rows"
            raise mismatch(f"{self._where}: cache_bytes", cache_bytes, expected)
        return block_rows, max(1, min(window_bytes // block_bytes, -(-count // block_rows)))

    def _gather(self, rows: np.ndarray) -> np.ndarray:
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        blocks, places = np.divmod(rows, self._block_rows)
        needed, first, counts = np.unique(blocks, return_index=True, return_counts=True)
        by_block = np.split(np.argsort(blocks, kind="stable"), np.cumsum(counts[:-1]))
        # In the order of the request, so that the cache keeps the blocks of the last rows if not all fit.
        for k in np.argsort(first):
            found[by_block[k]] = self._block(int(needed[k]))[places[by_block[k]]]
        return found

    def _block(self, number: int) -> np.ndarray:
        block = self._cache.get(self._owner, number)
        if block is None:
            block = self._read_block(number * self._block_rows)
            self._cache.add(self._owner, number, block)
        return block

    def _read_block(self, start: int) -> np.ndarray:
        raw = read_values(self._dataset, slice(start, start + self._block_rows))
        with np.errstate(over="ignore"):  # numbers too large for float32 become infinity, which is refused
            block = decode_values(raw, *self._affine).astype(self.dtype, copy=False)
        finite = np.isfinite(block)
        if not finite.all():
            row = start + int(np.argwhere(~finite)[0, 0])
            raise mismatch(self._where, f"NaN or infinity in row {row}", "finite numbers")
        if self._scaling is not None:
            block -= self._scaling[0]
            block /= self._scaling[1]
        return block
