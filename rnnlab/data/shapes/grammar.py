"""Sentences about scenes from a small grammar, five per picture.

Sentence forms are drawn without replacement, so that the five sentences differ in construction. The subject
is mostly the figure (the smaller object), sometimes the ground.
"""

from __future__ import annotations

import numpy as np

from rnnlab.data.shapes.scenes import Scene, SceneObject

INVERSE = {
    "above": "below",
    "below": "above",
    "left": "right",
    "right": "left",
    "inside": "around",
    "around": "inside",
}
PHRASES = {  # {relation: wordings, the usual one first}
    "above": ("above", "over"),
    "below": ("below", "under"),
    "left": ("to the left of", "left of"),
    "right": ("to the right of", "right of"),
    "inside": ("inside", "in the middle of"),
    "around": ("around", "behind"),
}
PRONOUN_PHRASES = {
    "above": "above it",
    "below": "below it",
    "left": "to its left",
    "right": "to its right",
    "inside": "inside it",
    "around": "around it",
}
USUAL = 0.8  # the probability of the usual wording, and of the usual subject

ONE = (
    "{a} is {where}",
    "{a} {where}",
    "there is {a} {where}",
    "{where} there is {a}",
    "the picture shows {a} {where}",
    "only {a} {where}",
)
TWO = (
    "{a} is {relation} {b}",
    "{a} {relation} {b}",
    "there is {a} {relation} {b}",
    "the picture shows {a} {relation} {b}",
    "{the_a} is {relation} {the_b}",
    "{b} with {a} {relation_it}",
    "{a} and {b} {inverse_it}",
    "{the_plain_a} {relation} {the_plain_b} is {size_a}",
)
THREE = {
    "row": (
        "from left to right {a}, {b} and {c}",
        "{a}, {b} and {c} in a row",
        "{b} is between {a} and {c}",
        "{b} between {a} and {c}",
        "there is {b} between {a} and {c}",
        "{a} next to {b} and {c}",
    ),
    "column": (
        "from top to bottom {a}, {b} and {c}",
        "{a}, {b} and {c} in a column",
        "{b} is between {a} and {c}",
        "{b} between {a} and {c}",
        "there is {b} between {a} and {c}",
        "{a} above {b} and {c}",
    ),
}


def describe_scene(scene: Scene, rng: np.random.Generator, count: int = 5) -> list[str]:
    """``count`` different sentences about ``scene``, at most as many as there are sentence forms."""
    write = {1: _describe_one, 2: _describe_two, 3: _describe_three}[len(scene.objects)]
    return write(scene, rng, count)


def _describe_one(scene: Scene, rng: np.random.Generator, count: int) -> list[str]:
    words = {"a": _with_article(scene.objects[0]), "where": _place(scene.relation)}
    return [form.format(**words) for form in _forms(ONE, rng, count)]


def _describe_two(scene: Scene, rng: np.random.Generator, count: int) -> list[str]:
    sentences = []
    for form in _forms(TWO, rng, count):
        subject, other = scene.objects
        relation = scene.relation
        if rng.random() > USUAL:
            subject, other, relation = other, subject, INVERSE[relation]
        usual, unusual = PHRASES[relation]
        sentences.append(
            form.format(
                a=_with_article(subject),
                b=_with_article(other),
                the_a=f"the {_noun_phrase(subject)}",
                the_b=f"the {_noun_phrase(other)}",
                the_plain_a=f"the {subject.colour} {subject.shape}",
                the_plain_b=f"the {other.colour} {other.shape}",
                size_a=subject.size,
                relation=usual if rng.random() < USUAL else unusual,
                relation_it=PRONOUN_PHRASES[relation],
                inverse_it=PRONOUN_PHRASES[INVERSE[relation]],
            )
        )
    return sentences


def _describe_three(scene: Scene, rng: np.random.Generator, count: int) -> list[str]:
    words = dict(zip("abc", map(_without_size, scene.objects), strict=True))
    return [form.format(**words) for form in _forms(THREE[scene.relation], rng, count)]


def _forms(forms: tuple[str, ...], rng: np.random.Generator, count: int) -> list[str]:
    return [forms[index] for index in rng.permutation(len(forms))[:count]]


def _with_article(thing: SceneObject) -> str:
    return f"a {_noun_phrase(thing)}"


def _noun_phrase(thing: SceneObject) -> str:
    return f"{thing.size} {thing.colour} {thing.shape}"


def _without_size(thing: SceneObject) -> str:
    return f"{'an' if thing.colour[0] in 'aeiou' else 'a'} {thing.colour} {thing.shape}"


def _place(where: str) -> str:
    """``top left`` as a phrase."""
    words = where.split()
    if len(words) == 2:
        return f"in the {where} corner"
    return {"top": "at the top", "bottom": "at the bottom", "middle": "in the middle"}.get(
        where, f"on the {where}"
    )
