"""Image features of the built-in data from a fixed extractor instead of a trained network.

A picture is split into channels tuned to eighteen hues; the pale background excites none of them. The
response of a channel is a blob. It is described by its area, its position, its direction from the centre of
all blobs, and the similarities of its silhouette, shifted and scaled to a common frame, to a bank of
templates. Global features are the descriptions of all channels. Local features describe, for each cell of a
grid, the blobs that cover it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from rnnlab.data.shapes.drawing import draw
from rnnlab.data.shapes.scenes import SHAPES, Scene, SceneObject

HUES = 18
HUE_WIDTH = np.deg2rad(8)  # standard deviation of a channel's tuning
PIXELS = 48  # width and height of the pictures after downscaling
FRAME = 16  # pixels of a silhouette
FRAME_REACH = 1.0
ANGLES = (-0.2, -0.1, 0.0, 0.1, 0.2)  # rotations of the templates, in radians
SHARPNESS = 12.0
LEAST_AREA = 0.003  # share of the picture at which the presence of a blob is half-saturated


class Blobs(NamedTuple):
    """The responses of the channels to N pictures."""

    maps: np.ndarray  # (N, HUES, PIXELS, PIXELS), 0 to 1
    place: np.ndarray  # (N, HUES, 4): x, y, and the direction from the centre of all blobs
    kind: np.ndarray  # (N, HUES, 2 + len(SHAPES)): presence, size, similarity to each template


def see(pictures: np.ndarray) -> Blobs:
    """Describe the blobs of pictures (N, 96, 96, 3) uint8."""
    maps = hue_maps(_shrink(pictures))
    area = maps.mean(axis=(2, 3))
    picture, channel = np.nonzero(area > LEAST_AREA / 20)
    blob, area = maps[picture, channel], area[picture, channel]
    x, y = _middle(blob)
    presence = area / (area + LEAST_AREA)

    weight = presence * np.sqrt(area)
    middle = [np.bincount(picture, weight * axis, len(maps)) for axis in (x, y)]
    total = np.bincount(picture, weight, len(maps))
    dx, dy = (
        axis - (sums / np.maximum(total, 1e-9))[picture] for axis, sums in zip((x, y), middle, strict=True)
    )
    away = np.hypot(dx, dy) + 0.04
    place = np.stack([2 * x - 1, 2 * y - 1, dx / away, dy / away], axis=1)

    width = np.sqrt(area / blob.max(axis=(1, 2)))  # as if the channel were tuned to exactly this hue
    alike = resemblance(silhouettes(blob, x, y, width))
    kind = np.concatenate([np.ones((len(area), 1)), 4 * width[:, None], alike], axis=1)
    described = []
    for values in (place, kind):
        table = np.zeros((*maps.shape[:2], values.shape[1]), np.float32)
        table[picture, channel] = presence[:, None] * values
        described.append(table)
    return Blobs(maps, *described)


def global_features(blobs: Blobs) -> np.ndarray:
    """One vector per picture, (N, HUES * 11) float32."""
    return np.concatenate([blobs.place, blobs.kind], axis=2).reshape(len(blobs.maps), -1)


def local_features(blobs: Blobs, grid: int = 6) -> np.ndarray:
    """One vector per cell of a grid, row by row: (N, grid * grid, HUES * 7) float32."""
    count, cell = len(blobs.maps), PIXELS // grid
    covered = blobs.maps.reshape(count, HUES, grid, cell, grid, cell).mean(axis=(3, 5))
    covered = np.sqrt(covered).reshape(count, HUES, grid * grid)
    return np.einsum("nhc,nhk->nchk", covered, blobs.kind).reshape(count, grid * grid, -1)


def hue_maps(pictures: np.ndarray) -> np.ndarray:
    """The share of each hue in each pixel of pictures (N, h, w, 3), 0 to 1: (N, HUES, h, w) float32."""
    red, green, blue = np.moveaxis(pictures, -1, 0)
    first, second = red - (green + blue) / 2, np.float32(np.sqrt(0.75)) * (green - blue)
    colourful = np.clip((np.hypot(first, second) - 0.12) / 0.3, 0, 1)
    hue = np.arctan2(second, first)
    maps = np.zeros((len(pictures), HUES, *pictures.shape[1:3]), np.float32)
    n, row, column = np.nonzero(colourful)
    tuned = (2 * np.pi / HUES * np.arange(HUES)).astype(np.float32)
    away = np.abs(hue[n, row, column, None] - tuned)
    away = np.minimum(np.mod(away, 2 * np.pi), 2 * np.pi - np.mod(away, 2 * np.pi))
    maps[n, :, row, column] = np.exp(-0.5 * (away / HUE_WIDTH) ** 2) * colourful[n, row, column, None]
    return maps


def silhouettes(blob: np.ndarray, x: np.ndarray, y: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Blobs (P, h, w) centred and scaled to the same area: (P, FRAME * FRAME), each with norm 1."""
    steps = (2 * (np.arange(FRAME) + 0.5) / FRAME - 1).astype(np.float32) * FRAME_REACH
    rows = np.clip((y + steps[:, None] * width).T * PIXELS - 0.5, 0, PIXELS - 1.001)
    columns = np.clip((x + steps[:, None] * width).T * PIXELS - 0.5, 0, PIXELS - 1.001)
    row, column = rows.astype(np.intp), columns.astype(np.intp)
    down, right = (rows - row)[:, :, None], (columns - column)[:, None, :]
    p, row, column = np.arange(len(blob))[:, None, None], row[:, :, None], column[:, None, :]
    top = (1 - right) * blob[p, row, column] + right * blob[p, row, column + 1]
    bottom = (1 - right) * blob[p, row + 1, column] + right * blob[p, row + 1, column + 1]
    frames = ((1 - down) * top + down * bottom).reshape(len(blob), FRAME * FRAME).astype(np.float64)
    return frames / np.maximum(np.linalg.norm(frames, axis=1, keepdims=True), 1e-6)


def resemblance(frames: np.ndarray) -> np.ndarray:
    """Similarities of silhouettes (P, FRAME * FRAME) to templates of shapes: (P, len(SHAPES)), sums 1."""
    distance = 2 - 2 * frames @ _templates().T
    nearest = distance.reshape(len(frames), len(SHAPES), len(ANGLES)).min(axis=2)
    scores = np.exp(
        -SHARPNESS * (nearest - nearest.min(axis=1, keepdims=True)) / (nearest.mean(axis=1, keepdims=True))
    )
    return scores / scores.sum(axis=1, keepdims=True)


@cache
def _templates() -> np.ndarray:
    """Silhouettes of every shape alone at every angle: (shapes * angles, FRAME * FRAME)."""
    things = [
        SceneObject(shape, "red", "large", 0.5, 0.5, 0.3, angle) for shape in SHAPES for angle in ANGLES
    ]
    drawn = np.stack([draw(Scene((thing,), "middle", 0.0), 2 * PIXELS)[1][0] for thing in things])
    blob = drawn.reshape(len(things), PIXELS, 2, PIXELS, 2).mean(axis=(2, 4))
    return silhouettes(blob, *_middle(blob), np.sqrt(blob.mean(axis=(1, 2))))


def _middle(blob: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The centres of mass, x (P,) and y (P,), of blobs (P, PIXELS, PIXELS), in widths of the picture."""
    centres = (np.arange(PIXELS) + 0.5) / PIXELS
    across, down = (blob.sum(axis=axis, dtype=np.float64) for axis in (1, 2))
    mass = across.sum(axis=1)
    return across @ centres / mass, down @ centres / mass


def _shrink(pictures: np.ndarray) -> np.ndarray:
    """Downscale to PIXELS x PIXELS by averaging squares of pixels, 0 to 1."""
    side = pictures.shape[1] // PIXELS
    total = np.zeros((len(pictures), PIXELS, PIXELS, 3), np.float32)
    for row in range(side):
        for column in range(side):
            total += pictures[:, row::side, column::side]
    return total / (255 * side * side)
