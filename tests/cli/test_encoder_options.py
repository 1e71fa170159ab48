import argparse
from pathlib import Path

import pytest

from rnnlab.cli.encoder_options import add_encoder, check_encoder, encoder_settings, with_encoder
from rnnlab.runs import Run


@pytest.fixture
def parser():
    parser = argparse.ArgumentParser()
    add_encoder(parser, required=False)
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


def test_options_are_checked_before_the_work(parser, tmp_path):
    (tmp_path / "n.onnx").touch()
    check_encoder(parser.parse_args([]))
    check_encoder(parser.parse_args(["--encoder", str(tmp_path / "n.onnx"), "--size", "8", "--pca", "p.h5"]))
    with pytest.raises(FileNotFoundError, match="no.onnx: found no such file, expected the ONNX file"):
        check_encoder(parser.parse_args(["--encoder", "no.onnx"]))
    for wrong in (["--pca", "p.h5"], ["--layer", "map"]):
        with pytest.raises(ValueError, match=f"{wrong[0]} is given without --encoder"):
            check_encoder(parser.parse_args(wrong))


def test_a_run_with_the_encoder_of_the_command_line(parser):
    class Inputs:
        def with_encoder(self, *arguments, **settings):
            return arguments, settings

    run = Run(Path("run"), None, None, None, inputs=Inputs())
    assert with_encoder(run, parser.parse_args([])) is run
    words = ["--encoder", "n.onnx", "--pca", "p.h5", "--size", "8"]
    assert with_encoder(run, parser.parse_args(words)).inputs == (("n.onnx", "p.h5"), {"size": 8})
