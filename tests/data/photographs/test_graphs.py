import hashlib

import numpy as np
import pytest

from rnnlab.data.photographs.graphs import Graph

from .networks import CAST, D, arithmetic, helper, numpy_helper, onnx, write_network


@pytest.mark.parametrize(
    ("head", "opset", "pooled"), [("pool", 17, "pool"), ("reduce", 17, "pooled"), ("reduce", 18, "pooled")]
)
def test_a_pool_over_positions_separates_grid_and_vector(tmp_path, head, opset, pooled):
    graph = Graph(write_network(tmp_path / "n.onnx", head=head, opset=opset))
    assert (graph.layer(grid=False), graph.layer(grid=True)) == (pooled, "map")
    assert (graph.input, graph.input_shape) == ("image", (None, 3, 8, 8))


def node(operation, before, after, **attributes):
    return helper.make_node(operation, [before], [after], **attributes)


@pytest.mark.parametrize(
    ("nodes", "grid"),
    [
        ([node("AveragePool", "map", "pooled", kernel_shape=[4, 4])], "map"),
        ([node("MaxPool", "map", "pooled", kernel_shape=[2, 2])], None),
        ([node("ReduceMax", "map", "pooled", axes=[-1, -2])], "map"),
        ([node("ReduceMean", "map", "pooled", axes=[1])], None),
        (
            [
                node("Transpose", "map", "last", perm=[0, 2, 3, 1]),
                node("ReduceMean", "last", "pooled", axes=[1, 2]),
            ],
            "last",
        ),
    ],
)
def test_what_pools_over_positions(tmp_path, nodes, grid):
    path = write_network(tmp_path / "n.onnx", head="reduce")
    model = onnx.load(path)
    (place,) = [k for k, each in enumerate(model.graph.node) if each.op_type == "ReduceMean"]
    del model.graph.node[place]
    for each in reversed(nodes):
        model.graph.node.insert(place, each)
    onnx.save(model, path)
    graph = Graph(path)
    assert graph.layer(grid=False) == "pooled"
    if grid is not None:
        assert graph.layer(grid=True) == grid
        return
    with pytest.raises(ValueError, match="found no grid of regions"):
        graph.layer(grid=True)


def test_without_a_pool_the_vector_is_the_input_of_the_last_product(tmp_path):
    graph = Graph(write_network(tmp_path / "n.onnx", head="flatten"))
    assert graph.layer(grid=False) == "flat"


def test_layers_that_are_not_found_are_listed(tmp_path):
    graph = Graph(write_network(tmp_path / "n.onnx", head="flatten"))
    candidates = rf"map \(N, {D}, 4, 4\), convolved \(N, {D}, 4, 4\), first"
    with pytest.raises(
        ValueError, match=rf"found no grid of regions; name one with --layer, .*: {candidates}"
    ):
        graph.layer(grid=True)
    graph = Graph(write_network(tmp_path / "n.onnx", head="convolution"))
    with pytest.raises(ValueError, match=rf"found no pooled vector; .*: logits \(N, {D}, 4, 4\), map"):
        graph.layer(grid=False)
    with pytest.raises(ValueError, match="found no layer 'fc7'; .* logits"):
        graph.check_layer("fc7", grid=False)
    graph.check_layer("convolved", grid=True)


def test_graphs_that_scale_their_input_need_no_other_scale(tmp_path):
    def pixels(before=(), **options):
        return Graph(write_network(tmp_path / "n.onnx", before=before, **options)).pixels()

    assert pixels() == "imagenet"
    assert pixels(layout="nhwc") == "imagenet"
    assert pixels(arithmetic("Sub", 127.5)) == "none"
    assert pixels(arithmetic("Mul", 0.5)) == "none"
    assert pixels(arithmetic("Sub", 0.5)) == "unit"
    assert pixels(arithmetic("Sub", 0.5), layout="nhwc") == "unit"
    assert pixels(CAST, dtype=onnx.TensorProto.UINT8) == "none"


def test_the_hash_is_that_of_the_file_and_of_external_weights(tmp_path):
    path = write_network(tmp_path / "n.onnx")
    assert Graph(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    options = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
    onnx.save(onnx.load(path), tmp_path / "outside.onnx", **options)
    both = (tmp_path / "outside.onnx").read_bytes() + (tmp_path / "weights").read_bytes()
    assert Graph(tmp_path / "outside.onnx").sha256 == hashlib.sha256(both).hexdigest()


def external(name):
    """A tensor in the file ``weights``."""
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), name)
    onnx.external_data_helper.set_external_data(tensor, "weights")
    tensor.ClearField("raw_data")
    return tensor


def subgraph(tensor):
    value = helper.make_tensor_value_info(tensor.name, onnx.TensorProto.FLOAT, [2])
    return helper.make_graph([], "branch", [], [value], [tensor])


def add_constant(model):
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=external("c")))


def add_branch(model):
    no = helper.make_graph([helper.make_node("Constant", [], ["n"], value=external("n"))], "no", [], [])
    branches = {"then_branch": subgraph(external("y")), "else_branch": no}
    model.graph.node.append(helper.make_node("If", ["c0.5"], ["branched"], **branches))


def add_sparse(model):
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(external("s"))


def add_function(model):
    loop = helper.make_node("Loop", ["", ""], ["f"], body=subgraph(external("b")))
    sets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("own", "F", [], ["f"], [loop], sets))


@pytest.mark.parametrize("add", [add_constant, add_branch, add_sparse, add_function])
def test_the_hash_covers_weights_outside_the_initializers(tmp_path, add):
    path = write_network(tmp_path / "n.onnx")
    model = onnx.load(path)
    add(model)
    onnx.save(model, path)
    (tmp_path / "weights").write_bytes(bytes(8))
    graph = Graph(path)
    assert graph.sha256 == hashlib.sha256(path.read_bytes() + bytes(8)).hexdigest()
    assert b"weights" not in graph.cut_at("map")  # they have been read
    (tmp_path / "weights").write_bytes(bytes(4) + b"abcd")
    with pytest.raises(ValueError, match=r"n\.onnx: sha256: found .*, the encoder that made the features"):
        Graph(path, graph.sha256)


def test_external_weights_stay_below_the_folder(tmp_path):
    folder = tmp_path / "networks"
    folder.mkdir()
    options = {"save_as_external_data": True, "location": "weights", "size_threshold": 0}
    onnx.save(onnx.load(write_network(tmp_path / "n.onnx")), folder / "outside.onnx", **options)
    (folder / "weights").rename(tmp_path / "weights")
    for location in ("../weights", str(tmp_path / "weights"), "link"):
        (folder / "link").unlink(missing_ok=True)
        (folder / "link").symlink_to(tmp_path / "weights")
        model = onnx.load(folder / "outside.onnx", load_external_data=False)
        for tensor in model.graph.initializer:
            for entry in tensor.external_data:
                entry.value = location if entry.key == "location" else entry.value
        onnx.save(model, folder / "escapes.onnx")
        with pytest.raises(OSError, match="found weights outside the folder of the ONNX file"):
            Graph(folder / "escapes.onnx")
    with pytest.raises(FileNotFoundError, match="weights: found no such file, expected weights of"):
        Graph(folder / "outside.onnx")


def test_files_that_are_no_networks(tmp_path, monkeypatch):
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(ValueError, match=r"text\.onnx: found content that onnx cannot read"):
        Graph(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError, match="expected an ONNX file of an image classifier"):
        Graph(tmp_path / "absent.onnx")
    with pytest.raises(OSError, match="zero: found a device, expected an ONNX file of an image classifier"):
        Graph("/dev/zero")
    model = onnx.load(write_network(tmp_path / "two.onnx"))
    model.graph.input.append(helper.make_tensor_value_info("mask", 1, ["N"]))
    onnx.save(model, tmp_path / "two.onnx")
    with pytest.raises(ValueError, match=r"two\.onnx: inputs: found image, mask, expected one"):
        Graph(tmp_path / "two.onnx")
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs onnx: pip install "rnnlab\[vision\]"') as caught:
        Graph(tmp_path / "two.onnx")
    assert caught.value.name is None  # a message for people, not a bug
