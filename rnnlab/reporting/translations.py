"""Translations as text, translations with their references, and alignments."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import NamedTuple

from rnnlab.errors import InputError
from rnnlab.reporting.json_file import write_json
from rnnlab.runs import Run
from rnnlab.tasks.translation import Translation, TranslationEvaluation
from rnnlab.types import Array

_LONGEST = 300  # maximum characters of a printed source, translation or reference


class Alignment(NamedTuple):
    """The attention of the words of a translation to those of its source."""

    words: list[str]  # with <END>, if the translation is finished
    source: list[str]  # with <END>
    weights: Array  # (words, source)


def translations_text(
    translations: Sequence[Sequence[Translation]],
    text: Callable[[Sequence[str]], str] = " ".join,
    *,
    lists: bool = False,
) -> str:
    """One line for each source or, in n-best lists, its translations with their scores and an empty line.

    ``text`` converts words to a sentence. ``lists`` is true if n-best lists were requested, even if only one
    sentence was found.
    """
    lines = []
    for found in translations:
        if not lists:
            lines.append(text(found[0].words))
            continue
        lines += [f"{one.hypothesis.score:8.3f}  {text(one.words)}" for one in found]
        lines.append("")
    return "\n".join(lines)


def write_translations(
    path: str | os.PathLike[str],
    run: Run,
    sources: Sequence[str],
    translations: Sequence[Sequence[Translation]],
) -> None:
    """Write all translations of each source, best first, with their scores; see :func:`write_json`."""
    text = run.inputs.detokenize
    sentences = [
        {
            "source": source,
            "translations": [
                {
                    "translation": text(one.words),
                    "score": one.hypothesis.score,
                    "log_prob": one.hypothesis.log_prob,
                }
                for one in found
            ],
        }
        for source, found in zip(sources, translations, strict=True)
    ]
    write_json(path, run, {"sentences": sentences})


def with_references(evaluated: TranslationEvaluation, count: int) -> str:
    """The first ``count`` sources, each with its translation, if it has one, and its first reference.

    Long texts, such as code, are cut.
    """
    blocks = []
    for k, (source, references) in enumerate(
        zip(evaluated.sources[:count], evaluated.references, strict=False)
    ):
        rows = {"source": source}
        if evaluated.translations is not None:
            rows["translation"] = evaluated.translations[k][0].words
        rows["reference"] = references[0]
        texts = {
            name: shorten(evaluated.text(words), _LONGEST, placeholder=" ...") for name, words in rows.items()
        }
        blocks.append("\n".join(f"{name:<13}{text}" for name, text in texts.items()))
    return "\n\n".join(blocks)


def alignment_picture(path: str | os.PathLike[str], source: Sequence[str], found: Translation) -> None:
    """Write a PNG of the attention of a translation to its source.

    Raises
    ------
    ValueError
        If the translation was found without alignments.
    """
    from rnnlab import plots  # importing matplotlib takes half a second

    aligned = aligned_words(source, found)
    figure = plots.alignment_matrix(aligned.weights, aligned.source, aligned.words)
    plots.save(figure, path)


def aligned_words(source: Sequence[str], found: Translation) -> Alignment:
    """The attention of each word of a translation to its source, with <END> at both ends.

    Raises
    ------
    ValueError
        If the translation was found without alignments.
    """
    weights = found.hypothesis.alignment
    if weights is None:
        raise InputError(
            "aligned_words: the translation has no alignment, expected one with return_alignments=True"
        )
    return Alignment(
        [*found.words, *(["<END>"] if found.hypothesis.finished else [])], [*source, "<END>"], weights
    )
