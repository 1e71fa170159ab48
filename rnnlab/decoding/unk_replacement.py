"""Words for <UNK>: the translation of the source word that has the most attention (Jean et al. 2015).

A lexicon is a dict of each source word to one target word. It comes from a file, such as a table that a word
aligner wrote, or from a model's own attention over training pairs.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from rnnlab.files import atomic_write
from rnnlab.types import Array


def replace_unknown(
    words: Sequence[str],
    alignment: Array,
    source_words: Sequence[str],
    lexicon: Mapping[str, str],
    *,
    unk: str = "<UNK>",
) -> list[str]:
    """Put a word in the place of each <UNK>.

    It is what the lexicon has for the source word with the most attention, or that source word itself if it
    is not in the lexicon.

    Parameters
    ----------
    words : sequence of T str
        A sentence that a search found.
    alignment : (T or more, L)
        The attention to the source when each word was chosen: ``Hypothesis.alignment``.
    source_words : sequence of at most L str
        What the model attended to, position by position; positions after these are padding.
    lexicon : mapping of str to str
    unk : str

    Returns
    -------
    list of T str

    Raises
    ------
    ValueError
        If the alignment does not fit the words or the source.
    """
    attended = _attended("replace_unknown", words, alignment, source_words)
    return [
        lexicon.get(source, source) if word == unk else word
        for word, source in zip(words, attended, strict=True)
    ]


def build_lexicon(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Array]],
    *,
    ignore: Collection[str] = ("<NULL>", "<START>", "<END>", "<UNK>"),
) -> dict[str, str]:
    """For each source word the target word that most often gave it the most attention.

    Parameters
    ----------
    pairs : iterable of (source words, target words, alignment)
        Sentence pairs with the attention (T or more, L) of the target words to the source words.
    ignore : collection of str
        Words, of either side, that are not counted.

    Returns
    -------
    dict of str to str
        Among equally frequent target words, the one that came first.

    Raises
    ------
    ValueError
        If an alignment does not fit its pair.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source_words, target_words, alignment in pairs:
        attended = _attended("build_lexicon", target_words, alignment, source_words)
        for source, target in zip(attended, target_words, strict=True):
            if source not in ignore and target not in ignore:
                counts[source][target] += 1
    return {source: targets.most_common(1)[0][0] for source, targets in counts.items()}


def read_lexicon(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a lexicon from a text file in UTF-8.

    Parameters
    ----------
    path : path
        A line has a source word, a tab, a target word and, if wanted, a tab and a number: how often the one
        stands for the other, or how probably. Lines with no text are skipped.

    Returns
    -------
    dict of str to str
        For each source word the target word with the largest number, 1 where none is given; the first one
        among equals.

    Raises
    ------
    ValueError
        If a line is something else; the error names the file and the line.
    """
    lexicon: dict[str, str] = {}
    largest: dict[str, float] = {}
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}:{number}: not UTF-8: {error}") from None
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
        If a word is empty, or has a tab, a line break or a space at its ends; nothing is written.
    """
    for word in (*lexicon, *lexicon.values()):
        if not word.strip() or word != word.strip() or len(word.splitlines()) > 1 or "\t" in word:
            raise ValueError(f"write_lexicon: {word!r} is not a word that a line of {path} can hold")
    with atomic_write(path) as temporary:
        lines = [f"{source}\t{lexicon[source]}\n" for source in sorted(lexicon)]
        temporary.write_text("".join(lines), encoding="utf-8", newline="\n")


def _entry(place: str, line: str) -> tuple[str, str, float]:
    columns = [column.strip() for column in line.split("\t")]
    if len(columns) not in (2, 3) or not all(columns):
        raise ValueError(
            f"{place}: found {line!r}, expected a source word, a tab, a target word and, if wanted, "
            "a tab and a number"
        )
    source, target = columns[:2]
    try:
        weight = float(columns[2]) if len(columns) == 3 else 1.0
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise ValueError(f"{place}: found {columns[2]!r} in the third column, expected a number from 0 on")
    return source, target, weight


def _attended(
    function: str, words: Sequence[str], alignment: Array, source_words: Sequence[str]
) -> list[str]:
    """The source word with the most attention for each word."""
    weights = np.asarray(alignment)
    T, L = len(words), len(source_words)
    if weights.ndim != 2 or weights.shape[0] < T or weights.shape[1] < L or not L:
        raise ValueError(
            f"{function}: alignment has shape {weights.shape}, expected a row for each of {T} words "
            f"and a column for each of {L} source words"
        )
    return [source_words[k] for k in weights[:T, :L].argmax(axis=1)]
