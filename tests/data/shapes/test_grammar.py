import re

import numpy as np
import pytest

from rnnlab.data.shapes.grammar import INVERSE, PHRASES, describe_scene
from rnnlab.data.shapes.scenes import COLOURS, SHAPES, Scene, SceneObject, draw_scene
from rnnlab.data.vocabulary import tokenize

NOUN = re.compile(rf"({'|'.join(COLOURS)}) ({'|'.join(SHAPES)})")
SIZED_NOUN = re.compile(rf"(small|large) ({'|'.join(COLOURS)}) ")


@pytest.fixture(scope="module")
def described():
    rng = np.random.default_rng(7)
    scenes = [draw_scene(rng) for _ in range(400)]
    return [(scene, describe_scene(scene, rng)) for scene in scenes]


def test_five_different_sentences_of_at_most_fifteen_words(described):
    for _, sentences in described:
        assert len(set(sentences)) == 5
        assert max(len(tokenize(sentence)) for sentence in sentences) <= 15
    words = {word for _, sentences in described for sentence in sentences for word in tokenize(sentence)}
    assert 40 < len(words) < 70


def test_sentences_name_the_objects_of_the_picture_and_no_others(described):
    for scene, sentences in described:
        there = {(thing.colour, thing.shape) for thing in scene.objects}
        sizes = {thing.colour: thing.size for thing in scene.objects}
        for sentence in sentences:
            assert set(NOUN.findall(sentence)) == there
            for size, colour in SIZED_NOUN.findall(sentence):
                assert sizes[colour] == size


def test_articles_fit(described):
    for _, sentences in described:
        for sentence in sentences:
            assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", sentence)


def test_relations_hold(described):
    said = 0
    for scene, sentences in described:
        if len(scene.objects) != 2:
            continue
        figure = scene.objects[0].colour
        for sentence in sentences:
            for relation, phrases in PHRASES.items():
                found = re.search(
                    rf"(\w+) \w+ (?:is )?(?:{'|'.join(phrases)}) (?:a|the) \w+ ?(\w*)", sentence
                )
                if found:
                    said += 1
                    subject = found.group(1)
                    assert relation == (scene.relation if subject == figure else INVERSE[scene.relation])
    assert said > 500


def test_pronouns_stand_for_the_object_before(rng):
    figure = SceneObject("star", "red", "small", 0.2, 0.5, 0.1, 0.0)
    ground = SceneObject("heart", "blue", "large", 0.7, 0.5, 0.2, 0.0)
    scene = Scene((figure, ground), "left", 0.0)
    sentences = {sentence for _ in range(60) for sentence in describe_scene(scene, rng)}
    assert "a large blue heart with a small red star to its left" in sentences
    assert "a small red star and a large blue heart to its right" in sentences
    assert "the red star to the left of the blue heart is small" in sentences
    assert "the blue heart to the right of the red star is large" in sentences


@pytest.mark.parametrize(
    ("relation", "phrase"),
    [
        ("top left", "in the top left corner"),
        ("top", "at the top"),
        ("middle", "in the middle"),
        ("right", "on the right"),
    ],
)
def test_the_place_of_a_single_object(rng, relation, phrase):
    scene = Scene((SceneObject("star", "orange", "small", 0.2, 0.2, 0.1, 0.0),), relation, 0.0)
    sentences = describe_scene(scene, rng, count=6)
    assert len(sentences) == 6
    assert all(phrase in sentence for sentence in sentences)
