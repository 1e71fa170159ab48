"""UNK replacement (Jean et al. 2015): <UNK> becomes a translation of the source word with the most attention.

A lexicon maps each source word to one target word. It is read from a file, such as the table of a word
aligner, or built from a model's attention over training pairs.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from rnnlab.errors import InputError
from rnnlab.files import atomic_text
from rnnlab.reading import text_lines
from rnnlab.special_words import SPECIAL_WORDS
from rnnlab.types import Array


def replace_unknown(
    words: Sequence[str],
    alignment: Array,
    source_words: Sequence[str],
    lexicon: Mapping[str, str],
    *,
    unk: str = "<UNK>",
) -> list[str]:
    """Replace each <UNK> of a sentence.

    The replacement is the lexicon's entry for the source word with the most attention, or this source word
    itself if the lexicon has no entry.

    Parameters
    ----------
    words : sequence of T str
        A sentence that a search found.
    alignment : (T or more, L)
        The attention to the source at the step of each word: ``Hypothesis.alignment``.
    source_words : sequence of at most L str
        The words of the source by position. Later positions of ``alignment`` are padding.
    lexicon : mapping of str to str
    unk : str

    Returns
    -------
    list of T str

    Raises
    ------
    ValueError
        If ``alignment`` has fewer rows than words, or fewer columns than source words.
    """
    attended = _attended("replace_unknown", words, alignment, source_words)
    return [
        lexicon.get(source, source) if word == unk else word
        for word, source in zip(words, attended, strict=True)
    ]


def build_lexicon(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Array]],
    *,
    ignore: Collection[str] = SPECIAL_WORDS,
) -> dict[str, str]:
    """Map each source word to the target word that most often gives it the largest attention weight.

    Parameters
    ----------
    pairs : iterable of (source words, target words, alignment)
        Sentence pairs with the attention (T or more, L) of the target words to the source words.
    ignore : collection of str
        Source and target words that are not counted.

    Returns
    -------
    dict of str to str
        Among equally frequent target words, the first one is taken.

    Raises
    ------
    ValueError
        If an alignment has fewer rows than target words, or fewer columns than source words.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source_words, target_words, alignment in pairs:
        attended = _attended("build_lexicon", target_words, alignment, source_words)
        for source, target in zip(attended, target_words, strict=True):
            if source not in ignore and target not in ignore:
                counts[source][target] += 1
    return {source: targets.most_common(1)[0][0] for source, targets in counts.items()}


def read_lexicon(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a lexicon from a text file in UTF-8, gzipped or not.

    Parameters
    ----------
    path : path
        A line has a source word, a tab, a target word and optionally a tab and a number, the count or the
        probability of the pair. Empty lines are skipped.

    Returns
    -------
    dict of str to str
        For each source word the target word with the largest number (1 if there is none); among equal numbers
        the first one.

    Raises
    ------
    OSError
        If the file is missing, or no regular file.
    ValueError
        If a line has another form, is not UTF-8, or is longer than the limit. The error names the file and
        the line.
    """
    lexicon: dict[str, str] = {}
    largest: dict[str, float] = {}
    for number, line in enumerate(text_lines(path, "a lexicon"), 1):
        if not line.strip():
            continue
        source, target, weight = _entry(f"{path}:{number}", line)
        if source not in lexicon or weight > largest[source]:
            lexicon[source], largest[source] = target, weight
    return lexicon


def write_lexicon(path: str | os.PathLike[str], lexicon: Mapping[str, str]) -> None:
    """Write a lexicon that :func:`read_lexicon` reads, sorted by source words.

    Raises
    ------
    ValueError
        If a word is empty, has a tab or a line break, or begins or ends with a space. Nothing is written.
    """
    for word in (*lexicon, *lexicon.values()):
        if not word.strip() or word != word.strip() or len(word.splitlines()) > 1 or "\t" in word:
            raise InputError(f"write_lexicon: {word!r} is not a word that a line of {path} can hold")
    with atomic_text(path) as file:
        file.writelines(f"{source}\t{lexicon[source]}\n" for source in sorted(lexicon))


def _entry(place: str, line: str) -> tuple[str, str, float]:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) not in (2, 3) or not all(columns):
        raise InputError(
            f"{place}: found {line[:80]!r}, expected a source word, a tab, a target word and "
            "optionally a tab and a number"
        )
    source, target = columns[:2]
    try:
        weight = float(columns[2]) if len(columns) == 3 else 1.0
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise InputError(
            f"{place}: found {columns[2][:80]!r} in the third column, expected a finite number of at least 0"
        )
    return source, target, weight


def _attended(
    function: str, words: Sequence[str], alignment: Array, source_words: Sequence[str]
) -> list[str]:
    """The source word with the most attention for each word."""
    weights = np.asarray(alignment)
    T, L = len(words), len(source_words)
    if weights.ndim != 2 or weights.shape[0] < T or weights.shape[1] < L or (T and not L):
        raise InputError(
            f"{function}: alignment has shape {weights.shape}, expected a row for each of {T} words "
            f"and a column for each of {L} source words"
        )
    return [source_words[k] for k in weights[:T, :L].argmax(axis=1)] if T else []
