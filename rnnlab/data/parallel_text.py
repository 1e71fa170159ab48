"""Parallel text from files, gzipped or not: two files of sentences, or a table of code and comments.

open_parallel    a folder of SPLIT.LANGUAGE or SPLIT.LANGUAGE.gz, as Multi30k's:
                 train.en.gz, train.de.gz, val.en.gz, ... (Elliott et al. 2016), with further references
open_habeas      a folder of train, dev and test.tsv.gz, ``code<TAB>comment`` a line, as the
                 HabeasCorpus: (Movshovitz-Attias and Cohen 2013)
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rnnlab.data.parallel import Pair, ParallelData
from rnnlab.data.sentences import Words
from rnnlab.data.subwords import SUBWORDS, Subwords, join_pieces
from rnnlab.data.vocabulary import combining_marks, has_marks
from rnnlab.errors import InputError, InputTypeError
from rnnlab.reading import PathLike, mismatch, text_lines

Tokenize = Callable[[str], list[str]]


def _token(marks: str = "") -> re.Pattern[str]:
    """The pattern of a token whose words may contain these combining marks."""
    word = rf"\w[\w{marks}]*"
    return re.compile(
        rf"""\d+(?:[.,:]\d+)+             # 10,000  2.50  11:27
        |   {word}(?:-{word})*            # man  t-shirt  grün
        |   (?<=[\w{marks}])['’]{word}    # 's of woman's
        |   [^\w\s]                       # any other mark by itself
        """,
        re.VERBOSE,
    )


_TOKEN = _token()


@functools.cache
def _token_with_marks() -> re.Pattern[str]:
    return _token("".join(combining_marks()))


def compose(text: str) -> str:
    """The text in Unicode's composed form: an accent is not a character of its own."""
    return unicodedata.normalize("NFC", text)


def tokenize_text(sentence: str) -> list[str]:
    """The words, numbers and punctuation marks of a sentence in lower case.

    A hyphenated word is one token, and so is a number with points, commas or colons between its digits. An
    apostrophe begins a token of its own: ``woman's`` is ``woman`` and ``'s``.

    Examples
    --------
    >>> tokenize_text("A woman's T-shirt costs 2.50, in Köln.")
    ['a', 'woman', "'s", 't-shirt', 'costs', '2.50', ',', 'in', 'köln', '.']
    """
    text = compose(sentence).lower()
    return (_token_with_marks() if has_marks(text) else _TOKEN).findall(text)


# The tokenizers by name: of written text, and of text that is tokenised already.
TOKENIZERS: dict[str, Tokenize] = {"text": tokenize_text, "spaces": str.split}


def detokenize(words: Words, tokenizer: str) -> str:
    """The sentence made of words: pieces are joined; words are separated by spaces."""
    return join_pieces(words) if tokenizer == SUBWORDS else " ".join(words)


def read_parallel(
    source_file: PathLike,
    target_file: PathLike,
    tokenize: Tokenize = tokenize_text,
    tokenize_target: Tokenize | None = None,
) -> list[Pair]:
    """The pairs of two files in UTF-8, gzipped or not, with one sentence per line.

    Parameters
    ----------
    source_file, target_file : path
    tokenize : callable
        Splits a sentence into words.
    tokenize_target : callable, optional
        The same for the target, if it differs.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a file is not UTF-8 or is a damaged gzip file, or their numbers of lines differ. The error names
        the file and the line, or both files.
    """
    return list(_pairs(source_file, target_file, tokenize, tokenize_target or tokenize))


def open_parallel(
    directory: PathLike,
    source: str = "en",
    target: str = "de",
    *,
    tokenizer: str = "text",
    vocabulary_size: int | None = None,
    references: Sequence[str] = (),
    **options: Any,
) -> ParallelData:
    """The pairs of a folder of files SPLIT.LANGUAGE or SPLIT.LANGUAGE.gz.

    Every split that has files of both languages is read.

    Parameters
    ----------
    directory : path
    source, target : str
        The languages, which are the endings of the files.
    tokenizer : "text", "spaces" or "sentencepiece"
        Split by :func:`tokenize_text`, at spaces only, or into pieces of words by a :class:`Subwords` of
        each language, fitted to its training sentences.
    vocabulary_size : int, optional
        With "sentencepiece", the number of pieces of each language.
    references : sequence of str
        The endings of files with further references, such as ["de1", "de2"]. A split other than train has
        either all of these files or none.
    **options
        Options of :class:`ParallelData`.

    Raises
    ------
    FileNotFoundError
        If there is no folder, if a language has no train, if only one language has a val, or if a split has
        only some of the references, or no split has any.
    ImportError
        If the extra ``subword`` is needed and not installed.
    ValueError
        If a file exists twice, gzipped and not gzipped.
    OSError, ValueError
        As :func:`read_parallel`, :meth:`Subwords.fit` and :func:`check_tokenizer`.
    """
    folder = Path(directory)
    check_tokenizer(tokenizer, vocabulary_size, options.get("min_count"), options.get("max_size"))
    files = {language: _files_by_split(folder, language) for language in (source, target)}
    both = files[source].keys() & files[target].keys()
    for split in ("train", "val"):
        if split not in both and (split == "train" or split in files[source] or split in files[target]):
            found = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
            raise FileNotFoundError(
                f"{folder}: found {found}, expected {split}.{source} and {split}.{target}, or .gz of both"
            )
    splits = sorted(both, key=_usual_order)
    if vocabulary_size is not None:
        subwords = (
            Subwords.fit(_lines(files[source]["train"]), vocabulary_size),
            Subwords.fit(_lines(files[target]["train"]), vocabulary_size),
        )
        tokenizers: list[Tokenize] = [each.split for each in subwords]
    else:
        subwords, tokenizers = None, [TOKENIZERS[tokenizer]] * 2
    pairs = {split: _pairs(files[source][split], files[target][split], *tokenizers) for split in splits}
    further = {
        split: [map(tokenizers[1], _lines(path)) for path in paths]
        for split, paths in _references(folder, references, splits).items()
    }
    name = f"{folder.resolve().name} {source}-{target}"
    own: dict[str, Any] = {"tokenizer": tokenizer, "subwords": subwords, "references": further}
    return _whole(ParallelData(pairs, name=name, **own, **options))


def with_references(data: ParallelData, split: str, paths: Sequence[PathLike]) -> ParallelData:
    """The data with further references of a split, from files with one sentence for each source.

    Raises
    ------
    KeyError
        If there is no such split.
    OSError, ValueError
        If a file cannot be read, has another number of lines than the split has sources, or the split is
        "train".
    """
    tokenize = TOKENIZERS[data.tokenizer] if data.subwords is None else data.subwords[1].split
    count, references = len(data.split(split)), []
    for path in paths:
        lines = read_lines(path)
        if len(lines) != count:
            raise mismatch(str(path), f"{len(lines):,} lines", f"{count:,}, one for each source of {split}")
        references.append(map(tokenize, lines))
    return data.with_references(split, references)


def _references(folder: Path, endings: Sequence[str], splits: Sequence[str]) -> dict[str, list[Path]]:
    """The files of further references of each split that has them."""
    if isinstance(endings, str):
        raise InputTypeError(f"references is {endings!r}, expected a list of endings of files")
    files, found = {ending: _files_by_split(folder, ending) for ending in endings}, {}
    for split in splits:
        missing = [ending for ending in endings if split not in files[ending]]
        if split != "train" and not missing:
            found[split] = [files[ending][split] for ending in endings]
        elif split != "train" and len(missing) < len(endings):
            raise FileNotFoundError(
                f"{folder}: found no {split}.{missing[0]}, expected all of {list(endings)}"
            )
    if endings and not any(found.values()):
        raise FileNotFoundError(f"{folder}: found no references, expected files SPLIT.{endings[0]}")
    return found if endings else {}


def check_tokenizer(
    tokenizer: str, vocabulary_size: int | None, min_count: int | None, max_size: int | None
) -> None:
    """Check that the options of a vocabulary suit its tokenizer.

    Raises
    ------
    ValueError
        If the tokenizer is unknown, or an option is missing or belongs to another tokenizer. The message
        begins with the name of the option.
    """
    if tokenizer not in (*TOKENIZERS, SUBWORDS):
        raise InputError(f"tokenizer is {tokenizer!r}, expected one of {', '.join((*TOKENIZERS, SUBWORDS))}")
    if tokenizer != SUBWORDS and vocabulary_size is not None:
        raise InputError(f"vocabulary_size is {vocabulary_size}, expected none with tokenizer {tokenizer!r}")
    if tokenizer == SUBWORDS and vocabulary_size is None:
        raise InputError(f"vocabulary_size is missing, expected an integer with tokenizer {SUBWORDS!r}")
    if tokenizer == SUBWORDS and min_count not in (None, 1):
        raise InputError(f"min_count is {min_count}, expected 1 with tokenizer {SUBWORDS!r}")
    if tokenizer == SUBWORDS and max_size is not None:
        raise InputError(f"max_size is {max_size}, expected none with tokenizer {SUBWORDS!r}")


def read_code_comments(path: PathLike) -> list[Pair]:
    """The pairs of a table, gzipped or not: code, a tab, its comment; both are split at white space.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a line does not have exactly one tab, or is not UTF-8. The error names file and line.
    """
    return list(_code_comments(path))


def open_habeas(directory: PathLike, **options: Any) -> ParallelData:
    """Code and comments of a folder of train, dev and test.tsv or .tsv.gz; dev becomes the split ``val``.

    Parameters
    ----------
    directory : path
    **options
        Options of :class:`ParallelData`.

    Raises
    ------
    FileNotFoundError
        If one of the three is missing.
    ValueError
        If one exists twice, gzipped and not gzipped.
    OSError, ValueError
        As :func:`read_code_comments`.
    """
    folder = Path(directory)
    pairs = {}
    for split, stem in (("train", "train"), ("val", "dev"), ("test", "test")):
        found = [path for path in (folder / f"{stem}.tsv.gz", folder / f"{stem}.tsv") if path.is_file()]
        if not found:
            raise FileNotFoundError(
                f"{folder}: found neither {stem}.tsv.gz nor {stem}.tsv, expected one of them"
            )
        if len(found) > 1:
            raise _both(*found)
        pairs[split] = _code_comments(found[0])
    return _whole(ParallelData(pairs, name=folder.resolve().name, tokenizer="spaces", **options))


def _whole(data: ParallelData) -> ParallelData:
    """The data, after a check that every split has pairs."""
    for name, split in data.splits.items():
        if not len(split):
            raise InputError(f"{data.name}: the files of the split {name} are empty, expected pairs")
    return data


def read_lines(path: PathLike) -> list[str]:
    """The lines of a text file in UTF-8, gzipped or not, without line ends.

    Raises
    ------
    OSError, ValueError
        As :func:`rnnlab.reading.text_lines`. The message names the file, and the line if one is wrong.
    """
    return list(_lines(path))


def _lines(path: PathLike) -> Iterator[str]:
    return text_lines(path, "a text file with one sentence per line")


def _pairs(
    source_file: PathLike, target_file: PathLike, tokenize: Tokenize, tokenize_target: Tokenize
) -> Iterator[Pair]:
    """The pairs of :func:`read_parallel`, one after another."""
    sources, targets = _lines(source_file), _lines(target_file)
    for count, (source, target) in enumerate(zip_longest(sources, targets)):
        if source is None or target is None:
            longer = count + 1 + sum(1 for _ in (sources if target is None else targets))
            lengths = (longer, count) if target is None else (count, longer)
            raise InputError(
                f"{source_file} has {lengths[0]:,} lines and {target_file} {lengths[1]:,}, "
                "expected one line per pair in each"
            )
        yield tokenize(source), tokenize_target(target)


def _code_comments(path: PathLike) -> Iterator[Pair]:
    """The pairs of :func:`read_code_comments`, one after another."""
    for number, line in enumerate(_lines(path), 1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise InputError(
                f"{path}:{number}: found {len(columns) - 1} tabs, expected code, one tab and its comment"
            )
        yield columns[0].split(), columns[1].split()


def _files_by_split(folder: Path, language: str) -> dict[str, Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: found no such folder, expected a folder of parallel text")
    files: dict[str, Path] = {}
    for ending in (f".{language}", f".{language}.gz"):
        # not hidden files, such as those that macOS creates
        for path in sorted(folder.glob(f"[!.]*{ending}")):
            other = files.setdefault(path.name.removesuffix(ending), path)
            if other != path:
                raise _both(other, path)
    return files


def _both(first: Path, second: Path) -> ValueError:
    return mismatch(str(first.parent), f"both {first.name} and {second.name}", "one of them")


def _usual_order(split: str) -> tuple[int, str]:
    usual = ("train", "val")
    return (usual.index(split) if split in usual else len(usual), split)
