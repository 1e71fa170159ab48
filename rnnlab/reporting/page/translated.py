"""Sentences with the translations of runs, their references and the attention of each word to the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rnnlab.data.parallel_text import detokenize
from rnnlab.decoding.search import attends
from rnnlab.recipes.recipe import TranslationRecipe
from rnnlab.reporting.page.words import Sentence, token_rows, words_of
from rnnlab.reporting.results import Results, best_only
from rnnlab.tasks.translation import Translation, translate


class SourceCard(NamedTuple):
    """A source sentence with translations."""

    source: list[str]  # its words, and <END>
    translations: list[Sentence]
    references: list[str]


def translation_cards(results: Sequence[Results], count: int) -> tuple[list[SourceCard], list[str]]:
    """The first ``count`` sentences with translations, and notes on omissions.

    Translations of runs whose sentences differ from the first run's are left out.
    """
    numbers = [number for number, each in enumerate(results) if _translates(each)]
    if not numbers or not count:
        return [], []
    lead: Any = results[numbers[0]]
    pairs = lead.run.data.split(lead.split)
    sources = pairs.source[:count]
    notes, columns = [f"The first {len(sources)} of {len(pairs.source):,} sentences."], []
    for number in numbers:
        run: Any = results[number].run
        its_pairs = run.data.split(results[number].split)
        if its_pairs.source[:count] != sources:
            notes.append(f"{run.directory}: its split has other sentences, so its translations are left out.")
            continue
        columns.append(_sentences(number, results[number], its_pairs, len(sources)))
        if not attends(run.model):
            notes.append(f"{run.directory}: its model does not attend to the source, so it has no maps.")
    cards = []
    for row, source in enumerate(sources):
        reference = detokenize(pairs.target[row], lead.run.data.tokenizer)
        cards.append(SourceCard([*source, "<END>"], [column[row] for column in columns], [reference]))
    return cards, notes


def _translates(results: Results) -> bool:
    return results.run is not None and isinstance(results.run.recipe, TranslationRecipe)


def _sentences(number: int, results: Results, pairs: Any, count: int) -> list[Sentence]:
    """The translations of the first ``count`` sentences."""
    run: Any = results.run
    recipe = run.recipe
    scored = None if results.evaluation is None else results.evaluation.translations
    found: list[list[Translation]] = (scored or [])[:count]
    if len(found) < count:
        found = translate(
            run.model, pairs.source[:count], best_only(recipe.decoding), rng=recipe.training.seed
        )
    best = [first for first, *_ in found]
    weights = None
    if attends(run.model):
        tokens = token_rows(run.model, [each.hypothesis.tokens for each in best])
        weights = run.model.align(pairs.source_rows.padded(slice(count)), tokens)
    return [
        Sentence(
            number,
            words_of(each.words, None if weights is None else weights[row, :, : len(pairs.source[row]) + 1]),
        )
        for row, each in enumerate(best)
    ]
