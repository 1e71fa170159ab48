import io
import struct
import warnings

import numpy as np
import pytest
from PIL import Image

from rnnlab.data.photographs import reading
from rnnlab.data.photographs.reading import decode_photograph, read_photograph
from rnnlab.limits import FREE_PIXELS

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
ORIENTATION = 0x0112
# What is stored for each orientation of EXIF, so that PIXELS are seen.
STORED = {
    1: PIXELS,
    2: PIXELS[:, ::-1],
    3: PIXELS[::-1, ::-1],
    4: PIXELS[::-1],
    5: PIXELS.transpose(1, 0, 2),
    6: np.rot90(PIXELS),
    7: np.rot90(PIXELS[::-1], -1)[::-1, ::-1],
    8: np.rot90(PIXELS, -1),
}


@pytest.mark.parametrize("orientation", STORED)
def test_photographs_are_upright(tmp_path, orientation):
    image = Image.fromarray(np.ascontiguousarray(STORED[orientation]))
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    image.save(tmp_path / "photo.png", exif=exif)
    np.testing.assert_array_equal(np.asarray(read_photograph(tmp_path / "photo.png")), PIXELS)


def test_every_mode_becomes_rgb(tmp_path):
    for mode in ("1", "L", "P", "RGBA", "CMYK", "I;16"):
        image = Image.fromarray(PIXELS)
        if mode == "I;16":
            image = Image.fromarray(np.full((4, 5), 257 * 9, np.uint16))
        suffix = "tif" if mode == "CMYK" else "png"
        image = image if mode == "I;16" else image.convert(mode)
        image.save(tmp_path / f"photo.{suffix}")
        assert read_photograph(tmp_path / f"photo.{suffix}").mode == "RGB"
    with open(tmp_path / "photo.png", "rb") as file:  # the last one
        assert np.asarray(decode_photograph(file))[0, 0].tolist() == [9, 9, 9]


@pytest.mark.parametrize(
    ("dtype", "name", "mode"),
    [
        (np.int32, "grey.tif", "I, integers"),
        (np.float32, "grey.tif", "F, floats"),
        (np.float32, "grey.pfm", "F, floats"),
    ],
)
def test_pixels_of_unknown_range_are_refused(tmp_path, dtype, name, mode):
    """Whether white is 1, 255 or another number, no such file says."""
    Image.fromarray(np.arange(12, dtype=dtype).reshape(3, 4)).save(tmp_path / name)
    with pytest.raises(
        OSError, match=rf"{name}: .*\(mode: found {mode} of unknown range, expected pixels of 8 or 16 bits\)"
    ):
        read_photograph(tmp_path / name)


@pytest.mark.parametrize("name", ["grey.png", "grey.tif", "grey.pgm", "grey.jp2"])
def test_pixels_of_16_bits_are_scaled(tmp_path, name):
    pixels = np.array([[0, 255, 256, 40_000, 65_535]], np.uint16).repeat(32, axis=0)
    Image.fromarray(pixels).save(tmp_path / name)
    found = np.asarray(read_photograph(tmp_path / name))
    np.testing.assert_array_equal(found, np.stack([pixels >> 8] * 3, axis=-1))


def tiff(pixels, bits, white_is_zero):
    """An uncompressed grey TIFF with one strip."""
    if bits == 12:  # two pixels in three bytes
        first, second = pixels.reshape(-1, 2).T.astype(int)
        packed = [first >> 4, (first & 15) << 4 | second >> 8, second & 255]
        strip = np.stack(packed, axis=-1).astype(np.uint8).tobytes()
    else:
        strip = pixels.astype("<u2").tobytes()
    height, width = pixels.shape
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: 0 if white_is_zero else 1}
    tags |= {273: 8, 277: 1, 278: height, 279: len(strip)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    header = struct.pack("<2sHI", b"II", 42, 8 + len(strip))
    return header + strip + struct.pack("<H", len(tags)) + entries + bytes(4)


@pytest.mark.parametrize(("bits", "white_is_zero"), [(12, False), (16, False), (16, True)])
def test_grey_tiff_says_its_bits_and_which_end_is_white(tmp_path, bits, white_is_zero):
    pixels = np.array([[0, 16, 1000, 4095], [4, 5, 6, 7]]) * (1 if bits == 12 else 16)
    (tmp_path / "grey.tif").write_bytes(tiff(pixels, bits, white_is_zero))
    expected = pixels >> (bits - 8)
    expected = 255 - expected if white_is_zero else expected
    found = np.asarray(read_photograph(tmp_path / "grey.tif"))
    np.testing.assert_array_equal(found, np.stack([expected] * 3, axis=-1))


def test_the_transparent_level_of_a_grey_image_of_16_bits_is_white(tmp_path):
    pixels = np.array([[0, 256, 300, 65_535]], np.uint16)
    Image.fromarray(pixels).save(tmp_path / "grey.png", transparency=300)
    found = np.asarray(read_photograph(tmp_path / "grey.png"))
    assert found[0, :, 0].tolist() == [0, 1, 255, 255]


def test_files_that_are_no_photographs_are_named(tmp_path):
    buffer = io.BytesIO()
    Image.fromarray(PIXELS).save(buffer, "jpeg")
    (tmp_path / "cut.jpg").write_bytes(buffer.getvalue()[:-300])
    (tmp_path / "text.jpg").write_text("no image")
    (tmp_path / "empty.jpg").touch()
    for name in ("text.jpg", "empty.jpg"):
        with pytest.raises(OSError, match=rf"{name}: found no image of a format that is read \(.*JPEG"):
            read_photograph(tmp_path / name)
    with pytest.raises(OSError, match=r"cut\.jpg: found an image that cannot be read \(image file is trunc"):
        read_photograph(tmp_path / "cut.jpg")
    with pytest.raises(FileNotFoundError, match=r"absent\.jpg: found no such file, expected an image"):
        read_photograph(tmp_path / "absent.jpg")


def test_pixels_are_those_of_whole_images(tmp_path, monkeypatch):
    """The rows are converted a few at a time, and the result does not depend on how many."""
    rng = np.random.default_rng(0)
    rgba = Image.fromarray(rng.integers(0, 256, (700, 30, 4), np.uint8))
    images = {
        "rgba.png": (rgba, {}),
        "la.png": (rgba.convert("LA"), {}),
        "palette.png": (rgba.convert("RGB").quantize(16), {"transparency": 3}),
        "grey.png": (Image.fromarray(rng.integers(0, 1 << 16, (700, 30), np.uint16)), {}),
    }
    for name, (image, options) in images.items():
        image.save(tmp_path / name, **options)
        found = np.asarray(read_photograph(tmp_path / name))
        monkeypatch.setattr(reading, "_ROWS", 1000)
        np.testing.assert_array_equal(np.asarray(read_photograph(tmp_path / name)), found, err_msg=name)
        monkeypatch.undo()
    white = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
    np.testing.assert_array_equal(np.asarray(read_photograph(tmp_path / "rgba.png")), np.asarray(white))


def test_formats_of_documents_are_not_opened(tmp_path):
    """Pillow would run a program to draw an EPS file."""
    for kind in ("eps", "pdf"):
        Image.fromarray(PIXELS).save(tmp_path / f"drawing.{kind}")
        with pytest.raises(OSError, match=f"drawing.{kind}: found no image of a format that is read"):
            read_photograph(tmp_path / f"drawing.{kind}")


@pytest.mark.parametrize("pixels", [FREE_PIXELS // 4000, 2 * FREE_PIXELS // 4000])
def test_pixels_for_the_size_of_a_file(tmp_path, pixels):
    """A small file of one colour may be large, but not gigantic."""
    path = tmp_path / "plain.png"
    Image.new("1", (4000, pixels)).save(path)
    if 4000 * pixels <= FREE_PIXELS:
        assert read_photograph(path).size == (4000, pixels)
        return
    with pytest.raises(OSError, match=r"plain\.png: .*4,000 x 8,388 pixels in .* bytes, at most 200 for"):
        read_photograph(path)


@pytest.mark.parametrize(
    ("limit", "message"),  # Pillow warns above its limit, and refuses twice as much
    [
        (500, r"large\.png: .*30 x 20 pixels, at most 500 are read"),
        (200, r"large\.png: .*\(600 pixels\) exceeds"),
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_an_image_of_too_many_pixels_is_refused(tmp_path, monkeypatch, limit, message):
    Image.fromarray(PIXELS).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    filters = list(warnings.filters)
    with pytest.raises(OSError, match=message):
        read_photograph(tmp_path / "large.png")
    assert warnings.filters == filters  # which all threads share
