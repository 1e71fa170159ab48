"""Photographs to features, by an image classifier in an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from rnnlab.data.photographs.encoding import ImageEncoding
from rnnlab.data.photographs.graphs import Graph
from rnnlab.data.photographs.preprocessing import PIXEL_SCALES, Preprocessing
from rnnlab.data.photographs.reading import read_photograph
from rnnlab.data.projection import Projection
from rnnlab.errors import InputError
from rnnlab.extras import Library
from rnnlab.ops.threads import num_threads
from rnnlab.reading import PathLike, mismatch

BATCH_SIZE = 32  # photographs
_DEFAULT_SIZE = 224  # pixels, for a network that takes inputs of any size
_RUNTIME = Library("onnxruntime", "vision", "the encoding of photographs")
_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


def choose_encoding(
    path: PathLike,
    *,
    grid: bool = False,
    layer: str | None = None,
    projection: Projection | None = None,
    dtype: Literal["float16", "float32"] = "float16",
    pixels: str | None = None,
    **preprocessing: Any,
) -> ImageEncoding:
    """The encoding by an ONNX file. Settings that are not given are derived from its graph.

    Parameters
    ----------
    path : path
    grid : bool
        Whether to read a grid of regions instead of one vector per photograph.
    layer : str, optional
        The name of the tensor to read. By default the last feature map (grid), or its pool.
    projection : Projection, optional
        A PCA.
    dtype : "float16" or "float32"
    pixels : str, optional
        A key of ``PIXEL_SCALES``. By default "imagenet"; "none" if the graph scales its input itself, or
        takes bytes.
    **preprocessing
        Fields of :class:`Preprocessing`. By default size and layout are those of the graph's input.

    Raises
    ------
    ImportError
        If the extra ``vision`` is not installed.
    OSError, ValueError
        If the file is missing or unusable, a layer is not found, or a setting does not fit the graph's input.
    """
    graph = Graph(path)
    if layer is None:
        layer = graph.layer(grid=grid)
    else:
        graph.check_layer(layer, grid=grid)
    if pixels is None:
        pixels = graph.pixels()
    if pixels not in PIXEL_SCALES:
        raise InputError(f"pixels is {pixels!r}, expected one of {', '.join(PIXEL_SCALES)}")
    mean, scale = PIXEL_SCALES[pixels]
    settings = {"mean": mean, "scale": scale, **_fitting_input(graph), **preprocessing}
    return ImageEncoding(
        os.path.abspath(path), graph.sha256, layer, grid, Preprocessing(**settings), dtype, projection
    )


class ImageEncoder:
    """An encoding with its network, ready to compute features.

    Parameters
    ----------
    encoding : ImageEncoding
    path : path, optional
        The ONNX file, if it has been moved.

    Attributes
    ----------
    encoding : ImageEncoding
    shape : tuple of int
        The shape of a photograph's features: (D,), or (regions, D) for a grid.

    Raises
    ------
    ImportError
        If the extra ``vision`` is not installed.
    OSError, ValueError
        If the file is missing or another one, or the layer or the PCA does not fit it.
    """

    def __init__(self, encoding: ImageEncoding, path: PathLike | None = None) -> None:
        self.encoding = encoding
        self._where = str(path or encoding.path)
        if path is None and not Path(encoding.path).is_file():
            raise FileNotFoundError(
                f"the features were made by {encoding.path}, which is no longer there: give the file with "
                f"--encoder (sha256 {encoding.sha256})"
            )
        graph = Graph(self._where, encoding.sha256)
        graph.check_layer(encoding.layer, grid=encoding.grid)
        self._session = _session(graph, encoding.layer)
        (taken,) = self._session.get_inputs()
        if taken.type not in _TYPES:
            raise mismatch(f"{self._where}: input {taken.name}", taken.type, " or ".join(_TYPES))
        self._input, self._type = taken.name, _TYPES[taken.type]
        self._fixed_size = graph.input_shape[0] if graph.input_shape else None  # size of a batch
        size = encoding.preprocessing.size
        self.shape = self.encode([Image.new("RGB", (size, size))]).shape[1:]

    def encode(self, images: Iterable[Image.Image]) -> np.ndarray:
        """The features (N, D) or (N, regions, D) of images, as float32."""
        return self.encode_values(np.stack([self.encoding.preprocessing.values(image) for image in images]))

    def encode_values(self, values: np.ndarray) -> np.ndarray:
        """The features of inputs of the network, as :meth:`Preprocessing.values` makes them."""
        if self._type is np.uint8:
            values = np.clip(np.rint(values), 0, 255)
        step = self._fixed_size or BATCH_SIZE
        features = np.concatenate(
            [self._run(values[start : start + step]) for start in range(0, len(values), step)]
        )
        if self.encoding.projection is not None:
            features = self._projected(features, self.encoding.projection)
        with np.errstate(over="ignore"):  # infinity is refused when features are read
            return features.astype(self.encoding.dtype, order="C").astype(np.float32)

    def encode_files(self, paths: Sequence[PathLike]) -> np.ndarray:
        """The features of photographs in files.

        Raises
        ------
        OSError
            If a file is missing or not an image.
        """
        parts = [paths[start : start + BATCH_SIZE] for start in range(0, len(paths), BATCH_SIZE)]
        # Only one photograph is in memory at a time, because large ones take hundreds of megabytes.
        return np.concatenate([self.encode(map(read_photograph, part)) for part in parts])

    def _run(self, values: np.ndarray) -> np.ndarray:
        """The layer's values for a batch. The batch is padded if the network needs a fixed batch size."""
        count = len(values)
        if self._fixed_size is not None:
            values = np.concatenate([values, np.repeat(values[-1:], self._fixed_size - count, axis=0)])
        try:
            (found,) = self._session.run(None, {self._input: values.astype(self._type)})
        except Exception as error:  # onnxruntime has its own exceptions
            refused = f"a batch {values.shape} that the network refuses ({error})"
            raise mismatch(f"{self._where}: input {self._input}", refused, "its shape") from None
        return self._as_features(found[:count])

    def _as_features(self, found: np.ndarray) -> np.ndarray:
        where, grid = f"{self._where}: layer {self.encoding.layer}", self.encoding.grid
        if found.dtype.kind != "f":
            raise mismatch(
                where, f"dtype {found.dtype}", "floating-point numbers: choose another with --layer"
            )
        shape = found.shape
        if found.ndim == 4:
            found = _channels_last(found)
        if grid and found.ndim == 3 and found.shape[1] > 1:
            return found.astype(np.float32)
        if not grid and (found.ndim == 2 or (found.ndim == 3 and found.shape[1] == 1)):
            return found.reshape(len(found), -1).astype(np.float32)
        expected = "(N, D, height, width) or (N, regions, D)" if grid else "(N, D) or (N, D, 1, 1)"
        other = "without --grid" if grid else "with --grid"
        raise mismatch(where, f"shape {shape}", f"{expected}: choose another with --layer, or repeat {other}")

    def _projected(self, features: np.ndarray, projection: Projection) -> np.ndarray:
        try:
            return projection.apply(features)
        except ValueError as error:
            raise InputError(f"{self._where}: layer {self.encoding.layer}: {error}") from None


def _session(graph: Graph, layer: str) -> Any:
    runtime = _RUNTIME.module()
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors only
    options.intra_op_num_threads = num_threads()
    try:
        return runtime.InferenceSession(graph.cut_at(layer), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has errors of its own
        raise mismatch(graph.path, f"a network that onnxruntime refuses ({error})", "a usable one") from None


def _fitting_input(graph: Graph) -> dict[str, Any]:
    """The size and the layout of the graph's input."""
    shape = graph.input_shape
    if len(shape) == 4 and shape[1] == 3:
        layout, sides = "nchw", shape[2:]
    elif len(shape) == 4 and shape[3] == 3:
        layout, sides = "nhwc", shape[1:3]
    elif len(shape) in (0, 4):
        return {}
    else:
        raise mismatch(
            f"{graph.path}: input {graph.input}",
            f"shape {shape}",
            "(N, 3, height, width) or (N, height, width, 3)",
        )
    if sides[0] != sides[1]:
        raise mismatch(f"{graph.path}: input {graph.input}", f"shape {shape}", "a square")
    return {"layout": layout, "size": sides[0] or _DEFAULT_SIZE}


def _channels_last(found: np.ndarray) -> np.ndarray:
    """A feature map (N, D, h, w), or (N, h, w, D) if only its axes 1 and 2 are equal, as (N, h * w, D)."""
    _, first, second, third = found.shape
    if not (first == second and second != third):
        found = found.transpose(0, 2, 3, 1)
    return found.reshape(len(found), -1, found.shape[-1])
