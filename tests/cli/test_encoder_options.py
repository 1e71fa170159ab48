import argparse

import pytest

from rnnlab.cli.encoder_options import add_encoder, encoder_settings


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    add_encoder(parser, required=False, defaults="those of the file")
    return parser


def test_only_what_is_given_is_a_setting(parser):
    assert encoder_settings(parser.parse_args(["--encoder", "n.onnx", "--pca", "p.h5"])) == {}
    words = ["--layer", "map", "--size", "96", "--resize", "128", "--crop", "centre", "--pixels", "unit"]
    words += ["--mean", "1,2,3", "--scale", "0.5", "--colours", "bgr", "--layout", "nhwc"]
    assert encoder_settings(parser.parse_args(words)) == {
        "layer": "map", "size": 96, "resize": 128, "crop": "centre", "pixels": "unit",
        "mean": (1, 2, 3), "scale": (0.5,), "colours": "bgr", "layout": "nhwc",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["1,2", "a", ""])
def test_a_mean_has_one_number_or_three(parser, text, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["--mean", text])
    assert f"{text!r}, expected a number, or three as 123.7,116.3,103.5" in capsys.readouterr().err
