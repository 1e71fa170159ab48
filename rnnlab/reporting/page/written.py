"""Sentences and texts that language models have written from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rnnlab.recipes.recipe import LanguageRecipe
from rnnlab.reporting.results import Results
from rnnlab.reporting.sentences import texts_of
from rnnlab.tasks import language

_SHOWN = 8  # at most, from one run


class Written(NamedTuple):
    """The texts of a run."""

    run: int
    texts: list[str]


def written_texts(results: Sequence[Results], count: int) -> list[Written]:
    """Up to ``count`` texts of each language model, found as its recipe says."""
    found = []
    for number, each in enumerate(results):
        run = each.run
        if count and run is not None and isinstance(run.recipe, LanguageRecipe):
            options, seed = run.recipe.decoding, run.recipe.training.seed
            drawn = language.write(run.model, run.inputs, "", options, count=min(count, _SHOWN), rng=seed)
            found.append(Written(number, texts_of(run, "", drawn[:count])))
    return found
