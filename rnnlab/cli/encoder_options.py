"""The options of an encoder of photographs, which several commands share."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any, get_args

from rnnlab.cli.arguments import positive_integer
from rnnlab.data.photographs.preprocessing import PIXEL_SCALES, Colours, Crop, Layout
from rnnlab.errors import InputError
from rnnlab.reading import check_regular
from rnnlab.runs import Run

_SETTINGS = ("layer", "size", "resize", "crop", "pixels", "mean", "scale", "colours", "layout")


def add_encoder(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add the options of an encoder and its settings. If none is ``required``, a run may have its own."""
    parser.add_argument(
        "--encoder",
        required=required,
        metavar="FILE",
        help="an ONNX file of an image classifier" + ("" if required else ", to caption photographs"),
    )
    parser.add_argument(
        "--pca", metavar="FILE", help="an HDF5 file of a PCA, or of features that record one, to apply"
    )
    needed = "" if required else "for a run on features that record no encoder; "
    group = parser.add_argument_group(
        "settings of the encoder", f"{needed}the defaults are those of the ONNX file"
    )
    group.add_argument("--layer", metavar="NAME", help="the name of the tensor to read")
    group.add_argument("--size", type=positive_integer, metavar="N", help="the height and width of its input")
    group.add_argument(
        "--resize",
        type=positive_integer,
        metavar="N",
        help="the shorter side before the crop (default: size)",
    )
    group.add_argument(
        "--crop", choices=get_args(Crop), help="the centre (default), or none: squeeze the whole photograph"
    )
    group.add_argument(
        "--pixels",
        choices=list(PIXEL_SCALES),
        help="mean and scale: imagenet (torchvision, timm), symmetric (-1 to 1), unit (0 to 1), none",
    )
    group.add_argument(
        "--mean", type=_numbers, metavar="R,G,B", help="value = (pixel - mean) * scale, pixel from 0 to 255"
    )
    group.add_argument("--scale", type=_numbers, metavar="R,G,B", help="one number, or one for each channel")
    group.add_argument(
        "--colours", choices=get_args(Colours), help="the order of the channels (default: rgb)"
    )
    group.add_argument("--layout", choices=get_args(Layout), help="the order of the axes of a batch")


def check_encoder(options: argparse.Namespace) -> None:
    """Check the options before the work.

    Raises
    ------
    OSError
        If the file of ``--encoder`` does not exist, or is not a regular file.
    ValueError
        If a setting is given without ``--encoder``.
    """
    given = [name for name in ("pca", *encoder_settings(options)) if getattr(options, name) is not None]
    if given and options.encoder is None:
        raise InputError(f"--{given[0]} is given without --encoder, the ONNX file that it is for")
    if options.encoder is not None:
        check_regular(options.encoder, "the ONNX file of --encoder")


def encoder_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings that the command line gives."""
    return {name: value for name in _SETTINGS if (value := getattr(options, name)) is not None}


def with_encoder(run: Run, options: argparse.Namespace) -> Run:
    """A captioning run with the encoder of the command line, or as it is if none is given.

    Raises
    ------
    OSError, ValueError
        As :meth:`rnnlab.data.caption_inputs.CaptionInputs.with_encoder`.
    """
    if options.encoder is None:
        return run
    inputs = run.inputs.with_encoder(options.encoder, options.pca, **encoder_settings(options))
    return dataclasses.replace(run, inputs=inputs)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError:
        numbers = ()
    if len(numbers) not in (1, 3):
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number, or three as 123.7,116.3,103.5")
    return numbers
