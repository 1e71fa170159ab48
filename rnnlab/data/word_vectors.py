"""Pretrained word vectors, in the formats of GloVe and word2vec, gzipped or not.

    GloVe               a line for each word: the word and its numbers, with spaces between them
    word2vec, text      the same after a line with the number of words and the size of a vector; also fastText
    word2vec, binary    the same first line; then for each word: the word, a space, float32 numbers

The format is detected from the content. Files are read in parts, and only the vectors of requested words are
kept, so a file may be larger than memory.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from rnnlab.errors import InputTypeError
from rnnlab.limits import LINE_BYTES, VECTOR_SIZE, WORD_BYTES
from rnnlab.ops import ops_for
from rnnlab.reading import PathLike, mismatch, open_bytes, utf8
from rnnlab.special_words import SPECIAL_WORDS

_CHUNK = 1 << 20  # bytes of a binary file that are read at once


@dataclass(frozen=True)
class WordCoverage:
    """The result of :func:`load_word_vectors`.

    Attributes
    ----------
    path : path
    parameter : str
        The parameter whose rows have been set.
    found, missing : tuple of str
        The words of the vocabulary with and without a vector in the file, in the order of their tokens.
    """

    path: PathLike
    parameter: str
    found: tuple[str, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        count = len(self.found) + len(self.missing)
        text = f"word vectors: {len(self.found):,} of {count:,} words from {self.path} to {self.parameter}"
        if not self.missing:
            return f"{text}."
        shown, left = ", ".join(self.missing[:5]), len(self.missing) - 5
        others = f" and {left:,} more" if left > 0 else ""
        return f"{text}; without a vector, with their initial values: {shown}{others}."


def load_word_vectors(path: PathLike, model: Any, *, source: bool = False) -> WordCoverage:
    """Set the word vectors of a model to those of a file.

    Words that the file lacks and the special words, such as ``<START>``, keep their values.

    Parameters
    ----------
    path : path
    model : CaptioningRNN or Seq2Seq
    source : bool
        Of a Seq2Seq: set the vectors of the source words, W_source, and not those of the target, W_embed.

    Returns
    -------
    WordCoverage
        ``print`` shows how many words have a vector.

    Raises
    ------
    OSError, ValueError
        As :func:`read_word_vectors`; also if the size of the vectors is not the model's ``wordvec_dim``, or
        the file has none of the words.
    """
    parameter, words = ("W_source", "source_word_to_idx") if source else ("W_embed", "word_to_idx")
    if not hasattr(model, words):
        raise InputTypeError(f"load_word_vectors: a {type(model).__name__} has no {words}")
    word_to_idx = getattr(model, words)
    usual = [word for word in sorted(word_to_idx, key=word_to_idx.get) if word not in SPECIAL_WORDS]
    old = model.params[parameter]
    vectors = read_word_vectors(path, usual, dim=old.shape[1])
    if not vectors:
        raise mismatch(str(path), f"none of the {len(usual):,} words of {words}", "some of them")
    matrix = np.array(ops_for(old).asnumpy(old))
    for word, vector in vectors.items():
        matrix[word_to_idx[word]] = vector
    model.params[parameter] = matrix
    found, missing = ([word for word in usual if (word in vectors) == has] for has in (True, False))
    return WordCoverage(path, parameter, tuple(found), tuple(missing))


def read_word_vectors(
    path: PathLike, words: Collection[str], *, dim: int | None = None
) -> dict[str, np.ndarray]:
    """The vectors of some words, from a file of GloVe or word2vec.

    Parameters
    ----------
    path : path
        In text or in word2vec's binary format, gzipped or not.
    words : collection of str
        The words to look up, case-sensitively.
    dim : int, optional
        The size that the vectors must have, such as the ``wordvec_dim`` of a model.

    Returns
    -------
    dict of str to (W,) float32
        Without the words that the file lacks.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the vectors have another size; a word is not UTF-8; a vector does not have as many numbers as the
        others; the file ends early; a requested word occurs twice, has a value that is not finite, or has a
        lone surrogate.
        The message names the file and the line, or in a binary file the number of the vector.
    """
    layout = _layout(path)
    if dim is not None and layout.dim != dim:
        raise mismatch(f"{path}:1", f"vectors of {layout.dim} numbers", f"{dim}, as wordvec_dim is")
    wanted = {utf8("read_word_vectors: words", word): word for word in words}
    found: dict[str, np.ndarray] = {}
    places: dict[str, str] = {}
    with open_bytes(path, "word vectors") as stream:
        records = _binary_records if layout.binary else _text_records
        for place, encoded, values in records(stream, str(path), layout):
            word = wanted.get(encoded)
            if word is None:
                _check_utf8(place, encoded)
                continue
            if word in found:
                raise mismatch(place, f"{word!r} again, after {places[word]}", "every word once")
            found[word], places[word] = _vector(place, word, values, layout), place
    return found


class _Layout(NamedTuple):
    """The layout of a file, from its beginning."""

    binary: bool
    declared: int | None  # the number of vectors; None without a header
    dim: int


# The place for errors, the word, and its numbers as the file has them.
_Record = tuple[str, bytes, bytes]


def _layout(path: PathLike) -> _Layout:
    with open_bytes(path, "word vectors") as stream:
        first = _line(stream, f"{path}:1").removeprefix(codecs.BOM_UTF8)
        if not first:
            raise mismatch(str(path), "an empty file", "word vectors of GloVe or word2vec")
        header = re.fullmatch(rb"(\d+) +(\d+) *\r?\n?", first)
        if header is None:
            dim = first.rstrip(b" \r\n").count(b" ")
            if dim == 0:
                raise mismatch(f"{path}:1", f"{first[:40]!r}", "a word and its numbers, or word2vec's header")
            return _Layout(False, None, dim)
        count, dim = (int(digits[:19]) for digits in header.groups())  # 19 digits are refused below
        if not (1 <= count < 10**12 and 1 <= dim <= VECTOR_SIZE):
            most = f"at most {VECTOR_SIZE:,} numbers, and at least one of each"
            raise mismatch(f"{path}:1", f"a header of {count:,} vectors of {dim:,} numbers", most)
        # a vector in text form has at least 2 characters per number
        values = stream.read(WORD_BYTES + 2 * dim).partition(b" ")[2][: 2 * dim]
        return _Layout(not _is_text(values), count, dim)


def _is_text(values: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(values)  # its last character may be cut
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)


def _text_records(stream: BinaryIO, path: str, layout: _Layout) -> Iterator[_Record]:
    dim, count, start = layout.dim, 0, 1
    if layout.declared is not None:
        start = 2
        _line(stream, path)
    while line := _line(stream, place := f"{path}:{start + count}"):
        count += 1
        line = line.rstrip(b" \r\n")
        if start == count == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        fields = line.count(b" ")
        word = line.rsplit(b" ", dim)[0] if fields > dim else line.split(b" ", 1)[0]
        # GloVe has a few words that contain spaces, but no numbers after these spaces
        if fields < dim or any(not part or _is_number(part) for part in word.split(b" ")[1:]):
            raise mismatch(place, f"{fields} numbers after {_shown(line.split(b' ')[0])}", dim)
        yield place, word, line[len(word) + 1 :]
    if layout.declared not in (None, count):
        declared = f"{layout.declared:,}, as line 1 says"
        raise mismatch(place, f"the end of the file after {count:,} vectors", declared)


def _binary_records(stream: BinaryIO, path: str, layout: _Layout) -> Iterator[_Record]:
    assert layout.declared is not None
    _line(stream, path)
    size, buffer, at = 4 * layout.dim, b"", 0
    for number in range(1, layout.declared + 1):
        place = f"{path}: vector {number:,}"
        space = buffer.find(b" ", at)
        while space < 0 or len(buffer) < space + 1 + size:
            if space < 0 and len(buffer) - at > WORD_BYTES:
                raise mismatch(place, f"a word of more than {WORD_BYTES:,} bytes", "a word and a space")
            chunk = stream.read(_CHUNK)
            if not chunk:
                raise mismatch(
                    place,
                    "the end of the file",
                    f"{layout.declared:,} vectors of {layout.dim} numbers, as line 1 says",
                )
            buffer, at = buffer[at:] + chunk, 0
            space = buffer.find(b" ")
        yield place, buffer[at:space].lstrip(b"\n"), buffer[space + 1 : space + 1 + size]
        at = space + 1 + size
    if (buffer[at:] + stream.read(1)).strip(b"\n"):
        raise mismatch(path, f"more than {layout.declared:,} vectors", "as many, as line 1 says")


def _line(stream: BinaryIO, place: str) -> bytes:
    line = stream.readline(LINE_BYTES)
    if len(line) == LINE_BYTES:
        raise mismatch(place, f"a line of more than {LINE_BYTES:,} bytes", "a word and its numbers")
    return line


def _vector(place: str, word: str, values: bytes, layout: _Layout) -> np.ndarray:
    """The numbers of a word, checked."""
    if layout.binary:
        vector = np.frombuffer(values, "<f4").astype(np.float32)
    else:
        texts = values.split(b" ")
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            wrong = next(text for text in texts if not _is_number(text))
            raise mismatch(place, f"the value {_shown(wrong)} of {word!r}", "a number") from None
        with np.errstate(over="ignore"):
            vector = np.array(numbers).astype(np.float32)
    if not np.isfinite(vector).all():
        raise mismatch(place, f"a value of {word!r} that is not finite in float32", "finite numbers")
    return vector


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_utf8(place: str, word: bytes) -> None:
    try:
        word.decode()
    except UnicodeDecodeError:
        raise mismatch(place, f"the word {_shown(word)}", "UTF-8") from None


def _shown(text: bytes) -> str:
    """A part of a file, for messages."""
    return repr(text[:40].decode("utf-8", "backslashreplace"))
