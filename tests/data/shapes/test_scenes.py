from collections import Counter

import numpy as np
import pytest

from rnnlab.data.shapes.scenes import COLOURS, LAYOUTS, RADII, SHAPES, draw_scene


@pytest.fixture(scope="module")
def scenes():
    rng = np.random.default_rng(5)
    return [draw_scene(rng) for _ in range(500)]


def test_a_seed_gives_the_same_scene():
    assert draw_scene(np.random.default_rng(1)) == draw_scene(np.random.default_rng(1))
    assert draw_scene(np.random.default_rng(1)) != draw_scene(np.random.default_rng(2))


def test_everything_varies(scenes):
    things = [thing for scene in scenes for thing in scene.objects]
    assert {thing.shape for thing in things} == set(SHAPES)
    assert {thing.colour for thing in things} == set(COLOURS)
    assert {thing.size for thing in things} == set(RADII)
    counts = Counter(len(scene.objects) for scene in scenes)
    for number, share in zip((1, 2, 3), LAYOUTS.values(), strict=True):
        assert counts[number] / len(scenes) == pytest.approx(share, abs=0.05)


def test_objects_lie_inside_apart_and_differ_in_colour(scenes):
    for scene in scenes:
        assert len({thing.colour for thing in scene.objects}) == len(scene.objects)
        for thing in scene.objects:
            assert RADII[thing.size][0] <= thing.radius <= RADII[thing.size][1]
            assert thing.radius <= min(thing.x, thing.y, 1 - thing.x, 1 - thing.y)
        for first, second in zip(scene.objects, scene.objects[1:], strict=False):
            distance = np.hypot(first.x - second.x, first.y - second.y)
            if scene.relation == "inside":
                assert distance == 0
                assert (first.size, second.size) == ("small", "large")
            else:
                assert distance > first.radius + second.radius


def test_relations_are_what_the_places_say(scenes):
    for scene in scenes:
        if len(scene.objects) != 2 or scene.relation == "inside":
            continue
        figure, ground = scene.objects
        across, down = figure.x - ground.x, figure.y - ground.y
        horizontal = abs(across) > abs(down)
        expected = ("left", "right")[across > 0] if horizontal else ("above", "below")[down > 0]
        assert scene.relation == expected
        assert figure.size == "small" or ground.size == "large"
        if figure.size == ground.size:
            assert scene.relation in ("above", "left")


def test_rows_run_to_the_right_and_columns_downwards(scenes):
    for scene in scenes:
        if len(scene.objects) == 3:
            places = [thing.x if scene.relation == "row" else thing.y for thing in scene.objects]
            assert places == sorted(places)


def test_a_single_object_is_where_it_is_said_to_be(scenes):
    for scene in scenes:
        if len(scene.objects) == 1:
            (thing,) = scene.objects
            assert ("left" in scene.relation) == (thing.x < 0.42)
            assert ("right" in scene.relation) == (thing.x > 0.58)
            assert ("top" in scene.relation) == (thing.y < 0.42)
            assert ("bottom" in scene.relation) == (thing.y > 0.58)
