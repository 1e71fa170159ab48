"""The graph of an ONNX file: its input, its pooled vector, its grid, and the scale of its pixels.

A convolutional classifier ends in a pool over the positions of its last feature map. The output of the last
such pool is the pooled vector, and its input is the grid. For a classifier without such a pool, such as VGG
or a vision transformer, the pooled vector is the input of its last matrix product.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.errors import InputError
from rnnlab.extras import Library
from rnnlab.reading import PathLike, check_regular, file_hash, mismatch

_POOLS = ("GlobalAveragePool", "GlobalMaxPool")
_REDUCTIONS = ("ReduceMean", "ReduceMax")
_WINDOWS = ("AveragePool", "MaxPool")
_PRODUCTS = ("Gemm", "MatMul")
_SPATIAL = ({2, 3}, {1, 2})  # the axes of positions: channels first, channels last
_FORMAL = ("Cast", "Identity", "Transpose", "Reshape")  # nodes that do not change values
_ARITHMETIC = ("Sub", "Add", "Mul", "Div", "BatchNormalization")
_FLOATS = ("FLOAT", "FLOAT16", "DOUBLE")
ONNX = Library("onnx", "vision", "the encoding of photographs")
_LISTED = 12  # maximum number of candidates in a message


class Graph:
    """The graph of an ONNX file.

    Parameters
    ----------
    path : path
    sha256 : str, optional
        The expected :attr:`sha256`, which is compared before weights are read from other files.

    Attributes
    ----------
    path : str
    sha256 : str
        The hash of the file. If its weights are in other files, the hash of all files in the order of their
        names.
    input : str
        The name of its only input.
    input_shape : tuple of int or None
        The size of each axis, None where it is not fixed.

    Raises
    ------
    ImportError
        If onnx is not installed.
    OSError, ValueError
        If the file is missing, not ONNX or not the expected one, or does not have exactly one input.
    """

    def __init__(self, path: PathLike, sha256: str | None = None) -> None:
        onnx = ONNX.module()
        self.path = str(path)
        check_regular(path, "an ONNX file of an image classifier")
        try:
            self._model = onnx.load(path, load_external_data=False)
            outside = list(_external_tensors(self._model))
            external = _external_files(outside, Path(path).parent)
            self.sha256 = file_hash(path, *external)
            if sha256 not in (None, self.sha256):
                raise mismatch(
                    f"{path}: sha256", self.sha256, f"{sha256}, the encoder that made the features"
                )
            for tensor in outside:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(Path(path).parent))
                tensor.data_location = onnx.TensorProto.DEFAULT  # some versions of onnx leave it as it was
                del tensor.external_data[:]
            self._model = onnx.shape_inference.infer_shapes(self._model)
        except (OSError, ImportError, InputError):
            raise
        except Exception as error:  # protobuf and the checks of onnx have their own exceptions
            raise mismatch(self.path, f"content that onnx cannot read ({error})", "an ONNX file") from None
        graph = self._model.graph
        self._nodes = list(graph.node)
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in self._nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
        values = [*graph.input, *graph.value_info, *graph.output]
        self._types = {value.name: value.type.tensor_type for value in values}
        inputs = [value.name for value in graph.input if value.name not in self._constants]
        if len(inputs) != 1:
            raise mismatch(f"{path}: inputs", ", ".join(inputs) or "none", "one, a batch of images")
        (self.input,) = inputs
        self.input_shape = self._shape(self.input) or ()

    def layer(self, *, grid: bool) -> str:
        """The name of the grid, or of the pooled vector.

        Raises
        ------
        ValueError
            If it is not found. The message lists layers that ``--layer`` can name.
        """
        for node in reversed(self._nodes):
            if self._pools_positions(node):
                return node.input[0] if grid else node.output[0]
        if grid:
            raise self._not_found("grid of regions", (3, 4))
        for node in reversed(self._nodes):
            if node.op_type in _PRODUCTS and node.input[1] in self._constants:
                return node.input[0]
        raise self._not_found("pooled vector", (2, 4))

    def check_layer(self, name: str, *, grid: bool) -> None:
        """Raise ValueError, with a list of layers, if there is none of that name."""
        if name not in self._tensors():
            raise self._not_found(f"layer {name!r}", (3, 4) if grid else (2, 4))

    def pixels(self) -> str:
        """The key of PIXEL_SCALES for the input: "none" if the graph takes bytes, or scales them itself."""
        if self._types[self.input].elem_type == ONNX.module().TensorProto.UINT8:
            return "none"
        name = self.input
        while readers := [node for node in self._nodes if name in node.input]:
            node = readers[0]
            if node.op_type not in _FORMAL:
                break
            name = node.output[0]
        if not readers or node.op_type not in _ARITHMETIC:
            return "imagenet"
        constants = [self._constants[key] for key in node.input if key in self._constants]
        if node.op_type == "Sub" and constants and np.abs(self._array(constants[0])).max(initial=0) <= 1:
            return "unit"  # such as (x - 0.485) / 0.229
        return "none"

    def cut_at(self, layer: str) -> bytes:
        """The model with ``layer`` as its only output, serialised."""
        onnx = ONNX.module()
        cut = onnx.ModelProto()
        cut.CopyFrom(self._model)
        del cut.graph.output[:]
        cut.graph.output.append(onnx.ValueInfoProto(name=layer))
        return cut.SerializeToString()

    def _pools_positions(self, node: Any) -> bool:
        """Whether a node pools a feature map (N, C, H, W) to a vector."""
        if node.op_type in _POOLS:
            return True
        if node.op_type in _REDUCTIONS:
            axes = self._axes(node)
            shape = self._shape(node.input[0])
            rank = 4 if shape is None else len(shape)
            return rank == 4 and {axis % rank for axis in axes} in _SPATIAL
        if node.op_type in _WINDOWS:
            before, after = self._shape(node.input[0]), self._shape(node.output[0])
            return before is not None and after is not None and before[2:] != after[2:] == (1, 1)
        return False

    def _axes(self, node: Any) -> list[int]:
        for attribute in node.attribute:
            if attribute.name == "axes":
                return list(attribute.ints)
        if len(node.input) > 1 and node.input[1] in self._constants:  # from opset 18 on
            return np.ravel(self._array(self._constants[node.input[1]])).tolist()
        return []

    def _array(self, constant: Any) -> np.ndarray:
        return ONNX.module("numpy_helper").to_array(constant)

    def _shape(self, name: str) -> tuple[int | None, ...] | None:
        kind = self._types.get(name)
        if kind is None or not kind.HasField("shape"):
            return None
        return tuple(size.dim_value if size.HasField("dim_value") else None for size in kind.shape.dim)

    def _tensors(self) -> Iterator[str]:
        """The computed tensors, last first: outputs of the graph, then all others."""
        yield from (value.name for value in self._model.graph.output)
        for node in reversed(self._nodes):
            if node.op_type != "Constant":
                yield from node.output

    def _not_found(self, what: str, ranks: tuple[int, ...]) -> ValueError:
        elements = ONNX.module().TensorProto
        floats = [getattr(elements, name) for name in _FLOATS]
        listed = []
        for name in dict.fromkeys(self._tensors()):
            shape, kind = self._shape(name), self._types.get(name)
            if shape is not None and len(shape) in ranks and kind is not None and kind.elem_type in floats:
                sizes = ", ".join("N" if size is None else str(size) for size in shape)
                listed.append(f"{name} ({sizes})")
        return InputError(
            f"{self.path}: found no {what}; name one with --layer, of these, the last first: "
            f"{', '.join(listed[:_LISTED]) or 'none has a known shape'}"
        )


def _external_tensors(message: Any) -> Iterator[Any]:
    """The tensors in other files, wherever a model has them, such as in nodes, subgraphs and functions."""
    if isinstance(message, ONNX.module().TensorProto):
        if ONNX.module("external_data_helper").uses_external_data(message):
            yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in [value] if hasattr(value, "ListFields") else value:
                yield from _external_tensors(each)


def _external_files(tensors: list[Any], folder: Path) -> list[Path]:
    """The files of tensors, sorted by name. They must be below the folder of the model's own file."""
    helper = ONNX.module("external_data_helper")
    paths = [folder / name for name in sorted({helper.ExternalDataInfo(each).location for each in tensors})]
    for path in paths:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise OSError(
                f"{path}: found weights outside the folder of the ONNX file, expected them below it"
            )
        check_regular(path, "weights of an ONNX file")
    return paths
