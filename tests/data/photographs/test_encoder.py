import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from rnnlab.data import read_features
from rnnlab.data.photographs.encoder import BATCH_SIZE, ImageEncoder, choose_encoding
from rnnlab.data.photographs.preprocessing import Preprocessing
from rnnlab.data.photographs.reading import read_photograph
from rnnlab.data.projection import Projection, read_projection

from .networks import (
    CAST,
    KERNEL,
    REGIONS,
    SIZE,
    D,
    TensorProto,
    arithmetic,
    grid_of,
    helper,
    onnx,
    write_network,
)

IMAGES = [
    Image.fromarray(pixels)
    for pixels in np.random.default_rng(3).integers(0, 256, (BATCH_SIZE + 3, SIZE, SIZE, 3), np.uint8)
]
RAW = np.stack([np.asarray(image, np.float32).transpose(2, 0, 1) for image in IMAGES])


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("batch", ["N", 1, 4])
def test_features_are_those_of_the_network(tmp_path, layout, batch):
    path = write_network(tmp_path / "n.onnx", layout=layout, batch=batch)
    encoding = choose_encoding(path, grid=True, pixels="unit", dtype="float32")
    assert (encoding.preprocessing.layout, encoding.preprocessing.size) == (layout, SIZE)
    encoder = ImageEncoder(encoding)
    assert encoder.shape == (REGIONS, D)
    np.testing.assert_allclose(encoder.encode(IMAGES), grid_of(RAW / 255), rtol=1e-5, atol=1e-6)
    pooled = ImageEncoder(choose_encoding(path, pixels="unit", dtype="float32"))
    assert pooled.shape == (D,)
    np.testing.assert_allclose(pooled.encode(IMAGES), grid_of(RAW / 255).mean(axis=1), rtol=1e-5, atol=1e-6)


def test_defaults_and_settings(tmp_path):
    path = write_network(tmp_path / "n.onnx")
    assert choose_encoding(path).preprocessing == Preprocessing(SIZE)
    found = choose_encoding(path, pixels="unit", scale=(2,), colours="bgr", layer="map", grid=True)
    assert found.preprocessing == Preprocessing(SIZE, mean=(0,), scale=(2,), colours="bgr")
    encoder = ImageEncoder(found)
    np.testing.assert_allclose(encoder.encode(IMAGES), grid_of(RAW[:, ::-1] * 2), rtol=1e-3)
    scaled = choose_encoding(write_network(tmp_path / "m.onnx", before=arithmetic("Sub", 127.5)))
    assert scaled.preprocessing == Preprocessing(SIZE, mean=(0,), scale=(1,))
    with pytest.raises(ValueError, match="pixels is 'bytes', expected one of imagenet"):
        choose_encoding(path, pixels="bytes")
    with pytest.raises(ValueError, match="found no layer 'fc'"):
        choose_encoding(path, layer="fc")


def with_input(path, shape):
    """The network, declared to take a batch of this shape."""
    model = onnx.load(path)
    declared = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
    model.graph.input[0].CopyFrom(declared)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("shape", "size", "layout"),
    [
        (["N", 3, "h", "w"], 224, "nchw"),
        (["N", "h", "w", 3], 224, "nhwc"),
        (["N", 3, 9, 9], 9, "nchw"),
        (["N", "C", 9, 9], 224, "nchw"),
        (None, 224, "nchw"),
    ],
)
def test_the_size_and_the_layout_of_the_input(network, shape, size, layout):
    assert choose_encoding(with_input(network, shape)).preprocessing == Preprocessing(size, layout=layout)


def test_inputs_of_other_shapes(network):
    with pytest.raises(ValueError, match=r"input image: found shape \(None, 3, 8, 9\), expected a square"):
        choose_encoding(with_input(network, ["N", 3, 8, 9]))
    with pytest.raises(ValueError, match=r"found shape \(3, 8, 8\), expected \(N, 3, height, width\) or"):
        choose_encoding(with_input(network, [3, 8, 8]))


def test_a_network_that_takes_other_numbers(tmp_path):
    path = write_network(tmp_path / "n.onnx", before=CAST, dtype=TensorProto.DOUBLE)
    with pytest.raises(ValueError, match=r"input image: found tensor\(double\), expected tensor\(float\) or"):
        ImageEncoder(choose_encoding(path))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("count", [1, 2])
def test_grids_have_the_layout_that_kernels_take(network, count, dtype):
    """The channels of a feature map come first, and a reshaped view of one map would not be contiguous."""
    found = ImageEncoder(choose_encoding(network, grid=True, dtype=dtype)).encode(IMAGES[:count])
    assert found.flags.c_contiguous


def test_a_network_that_takes_bytes(tmp_path):
    path = write_network(tmp_path / "n.onnx", before=CAST, dtype=TensorProto.UINT8)
    encoder = ImageEncoder(choose_encoding(path, grid=True))
    np.testing.assert_allclose(encoder.encode(IMAGES), grid_of(RAW), rtol=1e-3)


def test_features_are_rounded_as_in_the_file(network):
    exact = ImageEncoder(choose_encoding(network, dtype="float32")).encode(IMAGES)
    rounded = ImageEncoder(choose_encoding(network)).encode(IMAGES)
    np.testing.assert_array_equal(rounded, exact.astype(np.float16).astype(np.float32))
    assert (rounded != exact).any()


def test_a_projection_is_applied(network, rng):
    pca = Projection(rng.normal(size=(2, D)).astype(np.float32), np.array([3, 4], np.float32))
    options = {"grid": True, "dtype": "float32"}
    whole = ImageEncoder(choose_encoding(network, **options)).encode(IMAGES)
    encoder = ImageEncoder(choose_encoding(network, projection=pca, **options))
    assert encoder.shape == (REGIONS, 2)
    np.testing.assert_allclose(encoder.encode(IMAGES), whole @ pca.components.T + pca.intercept, rtol=1e-4)
    wrong = Projection(np.ones((2, 9), np.float32), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match=r"layer map: the PCA projects 9 numbers to 2, .* features have 5"):
        ImageEncoder(choose_encoding(network, projection=wrong, **options))


def test_a_layer_of_another_shape(tmp_path):
    path = write_network(tmp_path / "n.onnx", head="flatten")
    with pytest.raises(ValueError, match=r"layer map: found shape \(1, 5, 4, 4\), expected \(N, D\)"):
        ImageEncoder(choose_encoding(path, layer="map"))
    with pytest.raises(
        ValueError, match=rf"layer flat: found shape \(1, {D * REGIONS}\), expected \(N, D, h"
    ):
        ImageEncoder(choose_encoding(path, layer="flat", grid=True))


def test_the_file_is_found_by_its_hash(network, tmp_path):
    encoding = choose_encoding(network)
    expected = ImageEncoder(encoding).encode(IMAGES[:1])
    network.rename(tmp_path / "moved.onnx")
    with pytest.raises(FileNotFoundError, match=r"network\.onnx, which is no longer there: .*--encoder"):
        ImageEncoder(encoding)
    found = ImageEncoder(encoding, tmp_path / "moved.onnx").encode(IMAGES[:1])
    np.testing.assert_array_equal(found, expected)
    other = write_network(tmp_path / "other.onnx", kernel=KERNEL * 2)
    with pytest.raises(
        ValueError, match=rf"other\.onnx: sha256: found .*, expected {encoding.sha256}, the encoder that made"
    ):
        ImageEncoder(encoding, other)


def test_inputs_that_are_no_images(network, tmp_path):
    wrong = replace(choose_encoding(network), preprocessing=Preprocessing(size=9))
    with pytest.raises(
        ValueError, match=r"network\.onnx: input image: found a batch \(1, 3, 9, 9\) that the"
    ):
        ImageEncoder(wrong)


def test_photographs_from_files(photographs, network):
    paths = sorted(photographs.iterdir())
    encoder = ImageEncoder(choose_encoding(network))
    expected = encoder.encode([read_photograph(path) for path in paths])
    np.testing.assert_array_equal(encoder.encode_files(paths), expected)


@pytest.mark.slow
@pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")
@pytest.mark.parametrize(
    ("stored", "grid", "correlation"), [("features_global", False, 0.996), ("features_local", True, 0.993)]
)
def test_real_photographs_have_the_features_of_flickr8k(tmp_path, stored, grid, correlation):
    """Also resized, rotated by EXIF, and with borders that the crop removes."""
    root = Path(os.environ["RNNLAB_DATA"])
    network, images = root / "encoder" / "mobilenet_v2_1.0_224.onnx", root / "flickr8k" / "images"
    if not network.exists():
        pytest.skip(f"{network} is absent")
    pca = read_projection(root / "encoder" / "grid_pca.h5") if grid else None
    encoder = ImageEncoder(choose_encoding(network, grid=grid, projection=pca))
    paths = sorted(images.glob("*.jpg"))[:12]
    names, features = read_features(root / "flickr8k" / f"{stored}.h5")
    expected = features[[names.index(path.name) for path in paths]]
    found = encoder.encode_files(paths)
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > correlation
    for change, least in ((larger, 0.85), (rotated_by_exif, 0.999), (with_borders, 0.999)):
        changed = [change(path, tmp_path / f"{path.stem}.png") for path in paths]
        same = np.corrcoef(encoder.encode_files(changed).ravel(), found.ravel())[0, 1]
        assert same > least, change.__name__


def larger(path, out):
    Image.open(path).resize((640, 640), Image.Resampling.BICUBIC).save(out)
    return out


def rotated_by_exif(path, out):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(path).transpose(Image.Transpose.ROTATE_90).save(out, exif=exif)
    return out


def with_borders(path, out):
    ImageOps.expand(Image.open(path), (60, 0), "white").save(out)
    return out
