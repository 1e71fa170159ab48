"""Access to features block by block: statistics, and a shuffle in which each batch needs few blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.errors import InputError

Features = Any  # an ndarray, or an object with shape, dtype, len() and indexing by an array of integers

BLOCK_BYTES = 1 << 20  # approximate size of a block as float32, large enough for fast reads


def block_shuffle(blocks: np.ndarray, rng: np.random.Generator, window: int) -> np.ndarray:
    """Shuffle examples such that consecutive examples are in few blocks.

    With B distinct blocks, G = ceil(B / window) groups, a uniformly random permutation r of the blocks, and
    u_n uniform in [0, 1), the examples are sorted by the key (b_n is the block of example n)

        (floor(r(b_n) G / B), u_n)

    The blocks are divided at random into groups of at most ``window``, and the examples are shuffled inside
    their group. With one group every order is equally likely. With more, a batch has examples of one group
    (or of two consecutive ones). If σ² is the variance between blocks of the mean of a quantity that is
    averaged over a batch, the variance of the average grows by about

        σ² / W · (B - W) / (B - 1),    W = B / G

    which is small if the rows of the file are in random order. If they are sorted by content, shuffle them
    when the file is written, or use a larger window.

    Parameters
    ----------
    blocks : (N,) int
        The block of each example.
    rng : Generator
    window : int
        The number of blocks in a group, at least 1: the number of blocks in memory.

    Returns
    -------
    (N,) int
        A permutation of the examples.
    """
    distinct = np.flatnonzero(np.bincount(blocks))
    groups = -(-len(distinct) // window)
    group_of = np.zeros(blocks.max(initial=0) + 1, np.int64)
    group_of[rng.permutation(distinct)] = np.arange(len(distinct)) * groups // max(1, len(distinct))
    order = rng.permutation(len(blocks))
    return order[np.argsort(group_of[blocks[order]], kind="stable")]


def feature_statistics(features: Features) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (D,) float32 over all axes but the last.

    A feature whose standard deviation is at most 1e-6 max(1, |mean|) counts as constant: 1 is returned.

    The features (num_images, ..., D), in memory or lazy, are read block by block, and the sums of squares
    of the blocks are combined in float64 (Chan, Golub and LeVeque 1979).

    Raises
    ------
    ValueError
        If there are no rows.
    """
    if not len(features):
        raise InputError(
            f"feature_statistics: found features of shape {features.shape}, expected at least one row"
        )
    count, mean, squares = 0, np.zeros(features.shape[-1]), np.zeros(features.shape[-1])
    for images in _images_by_block(features):
        values = features[images].astype(np.float64).reshape(-1, len(mean))
        block_mean = values.mean(axis=0)
        delta, total = block_mean - mean, count + len(values)
        squares += ((values - block_mean) ** 2).sum(axis=0) + delta**2 * (count * len(values) / total)
        mean += delta * (len(values) / total)
        count = total
    std = np.sqrt(squares / count)
    std[std <= 1e-6 * np.maximum(1, np.abs(mean))] = 1
    return mean.astype(np.float32), std.astype(np.float32)


def _images_by_block(features: Features) -> list[np.ndarray]:
    if isinstance(features, np.ndarray):
        blocks = np.arange(len(features)) // max(1, BLOCK_BYTES // max(1, features[0].nbytes))
    else:
        blocks = features.blocks
    images = np.argsort(blocks, kind="stable")
    return np.split(images, np.flatnonzero(np.diff(blocks[images])) + 1)
