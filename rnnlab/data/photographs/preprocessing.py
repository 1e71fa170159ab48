"""Photographs to the input of an encoder.

value = (pixel - mean) * scale         pixel from 0 to 255, mean and scale of each channel
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
from PIL import Image

from rnnlab.errors import InputError
from rnnlab.limits import INPUT_SIZE
from rnnlab.options import Count, Range, check_options

Size: TypeAlias = Annotated[int, Range(f"[1, {INPUT_SIZE}]")]
Crop: TypeAlias = Literal["centre", "none"]
Colours: TypeAlias = Literal["rgb", "bgr"]
Layout: TypeAlias = Literal["nchw", "nhwc"]

# The mean and the scale of each channel, for pixels from 0 to 255.
PIXEL_SCALES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((123.675, 116.28, 103.53), (1 / 58.395, 1 / 57.12, 1 / 57.375)),  # torchvision and timm
    "symmetric": ((127.5,) * 3, (1 / 127.5,) * 3),  # -1 to 1
    "unit": ((0.0,) * 3, (1 / 255,) * 3),  # 0 to 1
    "none": ((0.0,) * 3, (1.0,) * 3),  # 0 to 255
}


@dataclass(frozen=True)
class Preprocessing:
    """How a photograph becomes the input of an encoder.

    Attributes
    ----------
    size : int
        The height and the width of the input.
    resize : int, optional
        The shorter side of the photograph before its centre is cropped to ``size``; ``size`` if left out.
    crop : "centre" or "none"
        "none" squeezes the whole photograph into the square.
    mean, scale : tuple of three float
        The mean and the scale of each channel, in the order of ``colours``.
    colours : "rgb" or "bgr"
    layout : "nchw" or "nhwc"
        The order of the axes of a batch.
    """

    size: Size = 224
    resize: Count | None = None
    crop: Crop = "centre"
    mean: tuple[float, ...] = PIXEL_SCALES["imagenet"][0]
    scale: tuple[float, ...] = PIXEL_SCALES["imagenet"][1]
    colours: Colours = "rgb"
    layout: Layout = "nchw"

    def __post_init__(self) -> None:
        checked = ("size", "resize", "crop", "colours", "layout")
        check_options("Preprocessing", Preprocessing, {name: getattr(self, name) for name in checked})
        if self.resize is not None and self.crop == "none":
            raise InputError(
                f"resize is {self.resize} and crop is none: without a crop the photograph has the size of "
                "the input"
            )
        if self.resize is not None and self.resize < self.size:
            raise InputError(
                f"resize is {self.resize}, expected at least {self.size}, the size of the network's input"
            )
        for name in ("mean", "scale"):
            values = tuple(map(float, getattr(self, name)))
            if len(values) not in (1, 3) or not np.isfinite(values).all():
                raise InputError(f"{name} is {values}, expected one finite number or three")
            object.__setattr__(self, name, values * (3 // len(values)))
        if 0 in self.scale:
            raise InputError(f"scale is {self.scale}, expected numbers other than 0")

    def frame(self, image: Image.Image) -> Image.Image:
        """The part of a photograph that the encoder sees, at its own resolution."""
        return image.crop(tuple(map(round, self._box(image))))  # type: ignore[arg-type]

    def values(self, image: Image.Image) -> np.ndarray:
        """The input of an encoder, float32: (3, size, size), or (size, size, 3) for "nhwc"."""
        square = image.resize((self.size, self.size), Image.Resampling.BILINEAR, box=self._box(image))
        pixels = np.asarray(square, np.float32)
        if self.colours == "bgr":
            pixels = pixels[..., ::-1]
        values = (pixels - np.array(self.mean, np.float32)) * np.array(self.scale, np.float32)
        return np.ascontiguousarray(values if self.layout == "nhwc" else values.transpose(2, 0, 1))

    def describe(self) -> str:
        """The settings in a line."""
        cropped = "whole photograph" if self.crop == "none" else f"shorter side {self.resize or self.size}"
        mean, scale = (
            ", ".join(f"{number:.6g}" for number in numbers) for numbers in (self.mean, self.scale)
        )
        return (
            f"{cropped}, {self.size} x {self.size} {self.colours.upper()} {self.layout.upper()}, "
            f"(pixel - ({mean})) * ({scale})"
        )

    def _box(self, image: Image.Image) -> tuple[float, float, float, float]:
        width, height = image.size
        if self.crop == "none":
            return 0, 0, width, height
        side = min(width, height) * self.size / (self.resize or self.size)
        left, top = (width - side) / 2, (height - side) / 2
        return left, top, left + side, top + side
