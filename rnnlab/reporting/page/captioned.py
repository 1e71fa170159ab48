"""Images with the captions of runs, their references and the attention of each word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.data import image_from_url
from rnnlab.data.images import data_url, image_on_disk
from rnnlab.decoding.search import attends
from rnnlab.recipes.recipe import CaptioningRecipe
from rnnlab.reporting.page.words import Sentence, token_rows, words_of
from rnnlab.reporting.results import Results, best_only
from rnnlab.tasks.search import decode


class Card(NamedTuple):
    """An image with captions.

    ``rank`` is its rank by the score of the first run's caption, best first.
    """

    name: str
    picture: str  # a data URL; empty if the image is not on the disk
    rank: int
    captions: list[Sentence]
    references: list[str]


class _Captions(NamedTuple):
    """The captions of images of a split by one run."""

    run: int
    names: Sequence[str]
    tokens: list[tuple[int, ...]]
    scores: Sequence[float] | None  # CIDEr


def caption_cards(results: Sequence[Results], count: int) -> tuple[list[Card], list[str]]:
    """At most ``count`` images with captions, and notes on omissions.

    Images on the disk are preferred. A quarter have the best captions of the first run by CIDEr, a quarter
    the worst, and the others are evenly spaced between them. Without CIDEr the first images are shown.
    """
    numbers = [number for number, each in enumerate(results) if _captions_images(each)]
    if not numbers or not count:
        return [], []
    captioned = [_captions(number, results[number], count) for number in numbers]
    first, lead = captioned[0], results[numbers[0]]
    run: Any = lead.run
    split, image_dir = run.data.split(lead.split), run.data.image_dir
    files = [image_on_disk(name, image_dir) for name in first.names]
    on_disk = [row for row, file in enumerate(files) if file is not None]
    rows = _chosen(on_disk or range(len(first.names)), first.scores, count)
    notes = [_about_choice(len(rows), len(first.names), len(on_disk), first.scores is not None)]
    sentences = {}
    for captions in captioned:
        made, more = _sentences(captions, results[captions.run], [first.names[row] for row in rows])
        sentences[captions.run], notes = made, notes + more
    order = {row: rank for rank, row in enumerate(_by_score(rows, first.scores))}
    cards = []
    for row in rows:
        name, file = first.names[row], files[row]
        found = [sentences[number][name] for number in numbers if name in sentences[number]]
        picture = "" if file is None else data_url(image_from_url(file))
        cards.append(Card(name, picture, order[row], found, split.references[row]))
    return cards, notes


def _captions_images(results: Results) -> bool:
    return results.run is not None and isinstance(results.run.recipe, CaptioningRecipe)


def _captions(number: int, results: Results, count: int) -> _Captions:
    """The scored captions; those of the first images if nothing could be scored."""
    run: Any = results.run
    scored = results.evaluation
    if scored is not None:
        tokens = [best.tokens for best, *_ in scored.captions]
        return _Captions(number, scored.names, tokens, scored.scores.images.get("CIDEr"))
    images, recipe = run.data.split(results.split), run.recipe
    found = decode(
        run.model, images.model_inputs, best_only(recipe.decoding), rng=recipe.training.seed, first=count
    )
    return _Captions(number, images.names[: len(found)], [best.tokens for best, *_ in found], None)


def _by_score(rows: Sequence[int], scores: Sequence[float] | None) -> list[int]:
    return list(rows) if scores is None else sorted(rows, key=lambda row: -scores[row])


def _chosen(rows: Sequence[int], scores: Sequence[float] | None, count: int) -> list[int]:
    """The rows to show, in their order."""
    ranked = _by_score(rows, scores)
    if len(ranked) <= count or scores is None:
        return sorted(ranked[:count])
    best, worst = math.ceil(count / 4), count // 4
    between = ranked[best : len(ranked) - worst]
    even = np.linspace(0, len(between) - 1, count - best - worst).round().astype(int)
    return sorted([*ranked[:best], *(between[k] for k in even), *ranked[len(ranked) - worst :]])


def _about_choice(shown: int, count: int, on_disk: int, scored: bool) -> str:
    if not on_disk:
        where = f"None of the {count:,} images is on the disk: there are captions without pictures and maps."
    elif on_disk < count:
        where = f"{on_disk:,} of the {count:,} images are on the disk; {shown} of these are shown."
    else:
        where = f"{shown} of {count:,} images are shown."
    if scored and shown < (on_disk or count):
        where += " A quarter have the best captions by CIDEr, a quarter the worst, the others lie between."
    return where


def _sentences(
    captions: _Captions, results: Results, names: Sequence[str]
) -> tuple[dict[str, Sentence], list[str]]:
    """The caption of each image that the run has, by name, and a note if it has no maps."""
    run: Any = results.run
    places = {name: row for row, name in enumerate(captions.names)}
    rows = [places[name] for name in names if name in places]
    if not rows:
        return {}, []
    tokens = [captions.tokens[row] for row in rows]
    weights, side, notes = None, 0, []
    if attends(run.model):
        features = run.data.split(results.split).features_at(np.array(rows))
        weights = run.model.align(features, token_rows(run.model, tokens))
        side = math.isqrt(weights.shape[-1])
        if side**2 != weights.shape[-1]:
            weights, side = None, 0
            notes.append(f"{run.directory}: its regions are not a square grid, so there are no maps.")
    else:
        notes.append(f"{run.directory}: its model does not attend to regions, so there are no maps.")
    vocabulary = run.data.vocabulary.idx_to_word
    found = {}
    for k, (row, ids) in enumerate(zip(rows, tokens, strict=True)):
        words = words_of([vocabulary[token] for token in ids], None if weights is None else weights[k])
        score = "" if captions.scores is None else f"{captions.scores[row]:.2f}"
        found[captions.names[row]] = Sentence(captions.run, words, score, side)
    return found, notes
