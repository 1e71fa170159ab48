"""Scenes of the built-in data: the objects of a picture and their relation.

A scene has one, two or three objects on a unit square, x to the right and y downwards. Two objects have one
of five relations; three form a row or a column. All objects of a scene differ in colour.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

SHAPES = ("circle", "square", "triangle", "star", "heart")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple")
RADII = {"small": (0.085, 0.11), "large": (0.18, 0.215)}  # approximate radii of the circle around a shape
SIZES = tuple(RADII)
DIRECTIONS = {"above": (0, -1), "below": (0, 1), "left": (-1, 0), "right": (1, 0)}
LAYOUTS = {"one": 0.15, "two": 0.7, "three": 0.15}  # probabilities
MARGIN = 0.03  # between objects, and to the border


@dataclass(frozen=True)
class SceneObject:
    """A shape in a picture. ``x``, ``y``, ``radius`` in widths of the picture, ``angle`` in radians."""

    shape: str
    colour: str
    size: str
    x: float
    y: float
    radius: float
    angle: float


@dataclass(frozen=True)
class Scene:
    """Objects and their relation.

    Attributes
    ----------
    objects : tuple of SceneObject
        Two objects are in the order figure, ground. The figure is the smaller one or, if both have the same
        size, the upper or left one. Three objects are ordered from left to right or from top to bottom.
    relation : str
        For two objects, the position of the figure relative to the ground: above, below, left, right or
        inside. For three, row or column. For one, its position in the picture, such as ``top left`` or
        ``middle``.
    hue : float
        The hue of the background, 0 to 1.
    """

    objects: tuple[SceneObject, ...]
    relation: str
    hue: float

    def as_dict(self) -> dict[str, Any]:
        """The scene as a dict of JSON values."""
        return asdict(self)


def draw_scene(rng: np.random.Generator) -> Scene:
    """Draw a random scene."""
    layout = rng.choice(list(LAYOUTS), p=list(LAYOUTS.values()))
    objects, relation = {"one": _one, "two": _two, "three": _three}[layout](rng)
    return Scene(objects, relation, float(rng.random()))


def _one(rng: np.random.Generator) -> tuple[tuple[SceneObject, ...], str]:
    size = str(rng.choice(SIZES))
    row, column = rng.integers(3, size=2)
    reach = 0.5 - RADII[size][1] - MARGIN
    position = [
        0.5 + reach * (index - 1) + rng.uniform(-0.03, 0.03) * (index == 1) for index in (column, row)
    ]
    words = [("top", "", "bottom")[row], ("left", "", "right")[column]]
    relation = " ".join(word for word in words if word) or "middle"
    return _place(rng, [size], [position]), relation


def _two(rng: np.random.Generator) -> tuple[tuple[SceneObject, ...], str]:
    if rng.random() < 0.12:
        ground = rng.uniform(0.3, 0.7, size=2)
        return _place(rng, ["small", "large"], [ground, ground]), "inside"
    sizes = sorted(map(str, rng.choice(SIZES, size=2)), key=SIZES.index)
    alike = sizes[0] == sizes[1]  # then the upper or the left one is the figure
    relation = str(rng.choice(["above", "left"] if alike else list(DIRECTIONS)))
    reach = sum(RADII[size][1] for size in sizes)
    distance = rng.uniform(reach + MARGIN, min(0.55, 1 - reach - 2 * MARGIN))
    slant = rng.uniform(-0.4, 0.4)
    direction = np.array(DIRECTIONS[relation])
    offset = distance * (np.cos(slant) * direction + np.sin(slant) * direction[::-1])
    borders = [RADII[size][1] + MARGIN for size in sizes]
    low = np.maximum(borders[0] - offset, borders[1])
    high = np.minimum(1 - borders[0] - offset, 1 - borders[1])
    ground = rng.uniform(low, high)
    return _place(rng, sizes, [ground + offset, ground]), relation


def _three(rng: np.random.Generator) -> tuple[tuple[SceneObject, ...], str]:
    relation = str(rng.choice(("row", "column")))
    along = np.array([0.2, 0.5, 0.8])
    across = rng.uniform(0.25, 0.75)
    wobble = rng.uniform(-0.02, 0.02, size=(3, 2))
    positions = np.stack([along, np.full(3, across)], axis=1) + wobble
    return _place(rng, ["small"] * 3, positions if relation == "row" else positions[:, ::-1]), relation


def _place(rng: np.random.Generator, sizes: list[str], positions: Any) -> tuple[SceneObject, ...]:
    colours = rng.permutation(COLOURS)
    return tuple(
        SceneObject(
            shape=str(rng.choice(SHAPES)),
            colour=str(colour),
            size=str(size),
            x=float(x),
            y=float(y),
            radius=float(rng.uniform(*RADII[size])),
            angle=float(rng.uniform(-0.2, 0.2)),
        )
        for colour, size, (x, y) in zip(colours, sizes, positions, strict=False)
    )
