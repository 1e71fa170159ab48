"""Small ONNX image classifiers, and their features by NumPy."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

SIZE, WINDOW, D, CLASSES = 8, 2, 5, 3
REGIONS = (SIZE // WINDOW) ** 2
_rng = np.random.default_rng(7)
KERNEL = _rng.normal(size=(D, 3)).astype(np.float32) / 4
CLASSIFIER = _rng.normal(size=(CLASSES, D)).astype(np.float32)


def grid_of(values):
    """The feature map (N, REGIONS, D) of inputs (N, 3, SIZE, SIZE): sums of windows, weighted, above 0."""
    side = SIZE // WINDOW
    sums = values.reshape(len(values), 3, side, WINDOW, side, WINDOW).sum(axis=(3, 5))
    return np.maximum(np.einsum("nchw,dc->nhwd", sums, KERNEL), 0).reshape(len(values), -1, D)


def write_network(
    path,
    *,
    head="pool",
    layout="nchw",
    batch="N",
    opset=17,
    before=(),
    outputs=("logits",),
    kernel=KERNEL,
    dtype=TensorProto.FLOAT,
):
    """Write a network: convolution, ReLU, a head, and a matrix product.

    ``head`` is "pool", "reduce" (a mean over positions), "flatten" (positions are features, as in VGG) or
    "convolution" (the features are not pooled). ``before`` are nodes between ``image`` and ``scaled``.
    """
    shape = [batch, 3, SIZE, SIZE] if layout == "nchw" else [batch, SIZE, SIZE, 3]
    constants = {
        "kernel": np.tile(kernel[..., None, None], (1, 1, WINDOW, WINDOW)),
        "classifier": CLASSIFIER,
        "flat_classifier": np.ones((CLASSES, D * REGIONS), np.float32),
        "axes": np.array([2, 3]),
    }
    nodes = list(before) or [helper.make_node("Identity", ["image"], ["scaled"])]
    if layout == "nhwc":
        nodes.append(helper.make_node("Transpose", ["scaled"], ["first"], perm=[0, 3, 1, 2]))
    else:
        nodes.append(helper.make_node("Identity", ["scaled"], ["first"]))
    nodes.append(helper.make_node("Conv", ["first", "kernel"], ["convolved"], strides=[WINDOW, WINDOW]))
    nodes.append(helper.make_node("Relu", ["convolved"], ["map"]))
    pooled = {
        "pool": [
            helper.make_node("GlobalAveragePool", ["map"], ["pool"]),
            helper.make_node("Flatten", ["pool"], ["pooled"]),
        ],
        "reduce": [
            helper.make_node("ReduceMean", ["map"], ["pooled"], axes=[2, 3], keepdims=0)
            if opset < 18
            else helper.make_node("ReduceMean", ["map", "axes"], ["pooled"], keepdims=0)
        ],
        "flatten": [helper.make_node("Flatten", ["map"], ["flat"])],
        "convolution": [],
    }[head]
    nodes += pooled
    if head == "flatten":
        nodes.append(helper.make_node("Gemm", ["flat", "flat_classifier"], ["logits"], transB=1))
    elif head == "convolution":
        nodes.append(helper.make_node("Softmax", ["map"], ["logits"], axis=1))
    else:
        nodes.append(helper.make_node("Gemm", ["pooled", "classifier"], ["logits"], transB=1))
    nodes_constants = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    nodes_constants += [numpy_helper.from_array(np.array(value, np.float32), f"c{value}") for value in USED]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("image", dtype, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        nodes_constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return path


USED = (0.5, 127.5)  # constants c0.5 and c127.5


def arithmetic(operation, constant):
    """A node that the graph applies to its input."""
    return [helper.make_node(operation, ["image", f"c{constant}"], ["scaled"])]


CAST = [helper.make_node("Cast", ["image"], ["scaled"], to=TensorProto.FLOAT)]  # of an input of bytes
