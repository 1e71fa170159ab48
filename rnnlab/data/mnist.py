"""MNIST, and other data in its format: four IDX files, gzipped or not, as sequences of pixels.

    train-images-idx3-ubyte    train-labels-idx1-ubyte     60,000 images, some of which are the split ``val``
    t10k-images-idx3-ubyte     t10k-labels-idx1-ubyte      10,000 images, the split ``test``

An IDX file is a magic number (two bytes of zero, the type, the number of dimensions), the dimensions as
big-endian 32-bit integers, and the data (LeCun et al. 1998).
"""

from __future__ import annotations

import os
import struct
from math import prod
from pathlib import Path

import numpy as np

from rnnlab.data.pixels import Labelled, PixelData
from rnnlab.errors import InputError
from rnnlab.reading import PathLike, mismatch, read_bytes

NUM_CLASSES = 10

_UNSIGNED_BYTE = 0x08


def read_idx(path: PathLike, dimensions: int) -> np.ndarray:
    """The bytes of an IDX file, gzipped or not, in their shape.

    Parameters
    ----------
    path : path
    dimensions : int
        The expected number of dimensions.

    Returns
    -------
    array of uint8

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is a damaged gzip file, is not an IDX file of bytes, has another number of dimensions, or is
        shorter or longer than its header says. The message names file, field, found and expected.
    """
    content, path = read_bytes(path, "an IDX file"), os.fspath(path)
    magic, header = _UNSIGNED_BYTE << 8 | dimensions, 4 + 4 * dimensions
    if len(content) < header:
        raise mismatch(f"{path}: header", f"{len(content)} bytes", f"{header} bytes")
    found, *shape = struct.unpack(f">{1 + dimensions}I", content[:header])
    if found != magic:
        expected = f"0x{magic:08x}, unsigned bytes in {dimensions} dimension{'s' * (dimensions > 1)}"
        raise mismatch(f"{path}: magic number", f"0x{found:08x}", expected)
    if len(content) - header != prod(shape):
        expected = f"{' x '.join(f'{size:,}' for size in shape)} = {prod(shape):,} bytes, as the header says"
        raise mismatch(f"{path}: data", f"{len(content) - header:,} bytes", expected)
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def open_mnist(
    directory: PathLike,
    *,
    num_val: int = 5000,
    val_seed: int | None = None,
    permute_seed: int | None = None,
    pool: int = 1,
    max_train: int | None = None,
) -> PixelData:
    """The images of a folder with the four files of MNIST.

    Parameters
    ----------
    directory : path
    num_val : int
        The number of training images that are moved to the split ``val``.
    val_seed : int, optional
        The seed with which they are drawn. By default they are the last ones.
    permute_seed, pool, max_train : int, optional
        As in :class:`PixelData`.

    Raises
    ------
    FileNotFoundError
        If there is no folder, or one of the files is missing.
    OSError, ValueError
        As :func:`read_idx`; if there are not as many labels as images, or one is not from 0 to 9; if
        ``num_val`` is not less than the number of training images; if ``pool`` does not divide the sizes.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: found no such folder, expected a folder with the files of MNIST")
    images, labels = _read_labelled(folder, "train")
    N = len(images)
    if not 1 <= num_val < N:
        raise InputError(
            f"num_val is {num_val:,}, expected at least 1 and less than the {N:,} images of {folder}"
        )
    order = np.arange(N) if val_seed is None else np.random.default_rng(val_seed).permutation(N)
    train, val = np.sort(order[:-num_val]), np.sort(order[-num_val:])
    splits = {"train": (images[train], labels[train]), "val": (images[val], labels[val])}
    splits["test"] = _read_labelled(folder, "t10k")
    return PixelData(
        splits,
        name=folder.resolve().name,
        num_classes=NUM_CLASSES,
        permute_seed=permute_seed,
        pool=pool,
        max_train=max_train,
    )


def _read_labelled(folder: Path, stem: str) -> Labelled:
    of_images, of_labels = (
        _find(folder, f"{stem}-{kind}") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    images, labels = read_idx(of_images, 3), read_idx(of_labels, 1)
    if len(labels) != len(images):
        expected = f"{len(images):,}, one for each image of {of_images.name}"
        raise mismatch(f"{of_labels}: number of labels", f"{len(labels):,}", expected)
    if labels.max(initial=0) >= NUM_CLASSES:
        row = int(np.argmax(labels >= NUM_CLASSES))
        raise mismatch(f"{of_labels}: label {row}", labels[row], f"a class from 0 to {NUM_CLASSES - 1}")
    return images, labels


def _find(folder: Path, name: str) -> Path:
    """The file of this name, gzipped or not; the gzipped one if there are both."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder}: found neither {name}.gz nor {name}, expected one of them")
