"""Pictures of scenes: edges, shadows and shading are computed from signed distances to the outlines.

A distance is negative inside an outline and positive outside. A pixel's coverage is its distance clipped to
one pixel's width, which makes the edges smooth.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np

from rnnlab.data.shapes.scenes import Scene, SceneObject

PALETTE = {
    "red": (217, 56, 58),
    "orange": (244, 130, 38),
    "yellow": (247, 217, 58),
    "green": (62, 160, 85),
    "blue": (52, 108, 196),
    "purple": (138, 74, 168),
}
SHADOW = 0.3  # opacity


def draw(scene: Scene, pixels: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Draw a scene.

    Returns
    -------
    picture : (pixels, pixels, 3) uint8
    coverage : (num_objects, pixels, pixels) float32
        The visible share of each pixel that each object covers, 0 to 1.
    """
    centres = (np.arange(pixels, dtype=np.float32) + 0.5) / pixels
    canvas = _background(scene.hue, centres)  # (3, pixels, pixels), which is faster with the channels first
    coverage = np.zeros((len(scene.objects), pixels, pixels), np.float32)
    painted = sorted(range(len(scene.objects)), key=lambda index: -scene.objects[index].radius)
    for index in painted:
        thing = scene.objects[index]
        rows, columns = (_window(centre, thing.radius, pixels) for centre in (thing.y, thing.x))
        x, y = np.meshgrid(centres[columns] - thing.x, centres[rows] - thing.y)
        region = canvas[:, rows, columns]
        distance = _distance(thing, x, y)
        region *= 1 - SHADOW * _shadow(distance, 0.14 * thing.radius, pixels)
        alpha = np.clip(0.5 - distance * pixels, 0, 1)
        region += alpha * (_paint(thing, x, y, distance) - region)
        coverage[:, rows, columns] *= 1 - alpha
        coverage[index, rows, columns] = alpha
    picture = np.rint(canvas * 255).astype(np.uint8)
    return np.ascontiguousarray(picture.transpose(1, 2, 0)), coverage


def _background(hue: float, centres: np.ndarray) -> np.ndarray:
    top, bottom = (
        np.array(colorsys.hsv_to_rgb(hue, s, v), np.float32)[:, None, None]
        for s, v in ((0.05, 0.98), (0.10, 0.90))
    )
    slope = 0.8 * centres[:, None] + 0.2 * centres[None, :]
    return top + slope * (bottom - top)


def _window(centre: float, radius: float, pixels: int) -> slice:
    return slice(
        max(0, int((centre - 1.2 * radius) * pixels)), min(pixels, int((centre + 1.6 * radius) * pixels) + 2)
    )


def _shadow(distance: np.ndarray, lift: float, pixels: int) -> np.ndarray:
    """The darkness of an object's shadow: its outline, shifted by ``lift``, its height, and blurred."""
    right, down = round(lift * pixels), round(1.6 * lift * pixels)
    moved = np.pad(distance, ((down, 0), (right, 0)), mode="edge")[: len(distance), : distance.shape[1]]
    ramp = np.clip(0.5 - moved / (2.2 * lift), 0, 1)
    return ramp * ramp * (3 - 2 * ramp)


def _paint(thing: SceneObject, x: np.ndarray, y: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The colour, lighter towards the upper left and a little darker along the outline."""
    light = 1 - 0.14 * np.clip((x + 1.4 * y) / (1.7 * thing.radius), -1, 1)
    light = light * (1 - 0.16 * np.clip(1 + distance / (0.12 * thing.radius), 0, 1))
    return np.clip(np.array(PALETTE[thing.colour], np.float32)[:, None, None] / 255 * light, 0, 1)


def _distance(thing: SceneObject, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The signed distance, in picture widths, to the outline of ``thing`` centred at the origin."""
    scale, cosine, sine = (
        np.float32(1 / thing.radius),
        np.float32(np.cos(thing.angle)),
        np.float32(np.sin(thing.angle)),
    )
    x, y = scale * (cosine * x + sine * y), scale * (cosine * y - sine * x)
    return OUTLINES[thing.shape](x, y) / scale


def _circle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.hypot(x, y) - 0.86


def _square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    outside_x, outside_y = np.abs(x) - 0.66, np.abs(y) - 0.66
    inside = np.minimum(np.maximum(outside_x, outside_y), 0)
    return inside + np.hypot(np.maximum(outside_x, 0), np.maximum(outside_y, 0)) - 0.1


def _triangle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _polygon(x, y + 0.08, _ring(3, (0.92,))) - 0.08


def _star(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _polygon(x, y, _ring(5, (0.96, 0.42))) - 0.04


def _heart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    t = np.linspace(0, 2 * np.pi, 28, endpoint=False)
    outline_x = 16 * np.sin(t) ** 3
    outline_y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return _polygon(x, y, np.stack([outline_x, -outline_y - 2], axis=1) / 17.5)


def _ring(points: int, radii: tuple[float, ...]) -> np.ndarray:
    """Corners around the origin, the first at the top, at alternating ``radii``."""
    count = points * len(radii)
    angle = 2 * np.pi * np.arange(count) / count
    radius = np.resize(radii, count)
    return np.stack([radius * np.sin(angle), -radius * np.cos(angle)], axis=1)


def _polygon(x: np.ndarray, y: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """The signed distance to a closed polygon (count, 2), which is that to its nearest edge."""
    nearest = np.full_like(x, np.inf)
    inside = np.zeros(x.shape, bool)
    for (ax, ay), (bx, by) in zip(
        corners.astype(np.float32), np.roll(corners, -1, axis=0).astype(np.float32), strict=True
    ):
        ex, ey = bx - ax, by - ay
        wx, wy = x - ax, y - ay
        along = np.clip((wx * ex + wy * ey) / (ex * ex + ey * ey), 0, 1)
        nearest = np.minimum(nearest, (wx - along * ex) ** 2 + (wy - along * ey) ** 2)
        inside ^= ((y >= ay) != (y >= by)) & ((ex * wy > ey * wx) == (by > ay))
    return np.where(inside, -1, 1) * np.sqrt(nearest)


OUTLINES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "star": _star,
    "heart": _heart,
}
