import numpy as np
import pytest
from PIL import Image

from rnnlab.data.photographs.preprocessing import PIXEL_SCALES, Preprocessing

PIXELS = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)


def raw(**options):
    return Preprocessing(size=8, mean=(0,), scale=(1,), **options)


def test_channels_layout_and_scale():
    image = Image.fromarray(PIXELS)
    np.testing.assert_array_equal(raw().values(image), PIXELS.transpose(2, 0, 1))
    np.testing.assert_array_equal(raw(layout="nhwc", colours="bgr").values(image), PIXELS[..., ::-1])
    scaled = Preprocessing(size=8, mean=(1, 2, 3), scale=(0.5, 1, 2)).values(image)
    np.testing.assert_allclose(scaled[2], (PIXELS[..., 2] - 3.0) * 2)
    assert scaled.dtype == np.float32


def test_scales_by_name():
    values = {
        name: (np.array([0, 255]) - np.array(mean)[:, None]) * np.array(scale)[:, None]
        for name, (mean, scale) in PIXEL_SCALES.items()
    }
    np.testing.assert_allclose(values["unit"][0], [0, 1])
    np.testing.assert_allclose(values["symmetric"][0], [-1, 1])
    np.testing.assert_allclose(values["none"][0], [0, 255])
    np.testing.assert_allclose(values["imagenet"][0], [-0.485 / 0.229, (1 - 0.485) / 0.229])


def test_the_centre_is_cropped_or_the_whole_is_squeezed():
    wide = np.zeros((8, 16, 3), np.uint8)
    wide[:, 4:12] = PIXELS
    image = Image.fromarray(wide)
    np.testing.assert_array_equal(raw().values(image), PIXELS.transpose(2, 0, 1))
    np.testing.assert_array_equal(np.asarray(raw().frame(image)), PIXELS)
    np.testing.assert_array_equal(np.asarray(raw(crop="none").frame(image)), wide)
    squeezed = np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(raw(crop="none").values(image), squeezed.transpose(2, 0, 1))


def test_the_shorter_side_before_the_crop():
    tall = np.random.default_rng(1).integers(0, 256, (20, 10, 3), np.uint8)
    found = raw(resize=10).values(Image.fromarray(tall))
    np.testing.assert_array_equal(found, tall[6:14, 1:9].transpose(2, 0, 1))
    np.testing.assert_array_equal(np.asarray(raw(resize=10).frame(Image.fromarray(tall))), tall[6:14, 1:9])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop": "left"}, "Preprocessing: crop is 'left', expected one of 'centre', 'none'"),
        ({"colours": "cmyk"}, "colours is 'cmyk', expected one of 'rgb', 'bgr'"),
        ({"layout": "chw"}, "layout is 'chw', expected one of 'nchw', 'nhwc'"),
        ({"size": 0}, r"size is 0, expected an integer in \[1, 2048\]"),
        ({"size": 4096}, r"size is 4096, expected an integer in \[1, 2048\]"),
        ({"size": 224.0}, "size is 224.0, expected an integer"),
        ({"size": True}, "size is True, expected an integer"),
        ({"resize": "256"}, "resize is '256', expected an integer"),
        ({"resize": True, "size": 1}, "resize is True, expected an integer"),
        ({"resize": 200}, "resize is 200, expected at least 224"),
        ({"resize": 256, "crop": "none"}, "resize is 256 and crop is none"),
        ({"mean": (1, 2)}, r"mean is \(1.0, 2.0\), expected one finite number or three"),
        ({"scale": (np.nan,)}, "scale is"),
        ({"scale": (1, 0, 1)}, "expected numbers other than 0"),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing(**options)


def test_described_in_a_line():
    assert Preprocessing(size=8, resize=9, mean=(0,), scale=(0.5,)).describe() == (
        "shorter side 9, 8 x 8 RGB NCHW, (pixel - (0, 0, 0)) * (0.5, 0.5, 0.5)"
    )


def test_the_scale_of_imagenet_is_that_of_its_statistics():
    mean, deviation = np.array([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]) * 255
    np.testing.assert_allclose(PIXEL_SCALES["imagenet"], (mean, 1 / deviation))
