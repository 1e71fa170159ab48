"""What the data of language models have in common, sentences and running text: files, prompts and texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.data.split_data import Split, SplitData
from rnnlab.data.text_inputs import TEXT_TOKENIZERS, TextInputs, check_tokenizer
from rnnlab.data.vocabulary import NULL, Vocabulary
from rnnlab.errors import InputTypeError
from rnnlab.reading import PathLike, check_regular, lines_in_pieces, text_lines

_SHOWN = 150  # the most characters of a text in a summary


class LanguageData(SplitData[Split]):
    """Texts by splits.

    Attributes
    ----------
    vocabulary : Vocabulary
    inputs : TextInputs
        The vocabulary and the tokenizer.
    """

    in_memory = True  # a batch is a copy of some tokens
    inputs: TextInputs

    @property
    def vocabulary(self) -> Vocabulary:
        """That of ``inputs``."""
        return self.inputs.vocabulary

    @property
    def unit(self) -> str:
        """What the tokens are, "words" or "characters"."""
        return "characters" if self.inputs.tokenizer == "characters" else "words"

    @staticmethod
    def num_tokens(batch: tuple[np.ndarray]) -> int:
        """The number of tokens that a model predicts in ``batch``: all after the first of a row."""
        return int(np.count_nonzero(batch[0][:, 1:] != NULL))

    def prompt(self, text: str) -> np.ndarray:
        """The beginning of a text as a model reads it; see :meth:`TextInputs.prompt`."""
        return self.inputs.prompt(text)

    def text(self, tokens: Iterable[int]) -> str:
        """The text of tokens that a model has read or written; see :meth:`TextInputs.text`."""
        return self.inputs.text(tokens)

    def preprocessing(self) -> dict[str, Any]:
        """The entries that a checkpoint saves for new texts; see :meth:`TextInputs.from_saved`."""
        return self.inputs.preprocessing()

    @staticmethod
    def beginning(text: str) -> str:
        """The beginning of a text, for a summary."""
        return f"{text[:_SHOWN]}{' ...' * (len(text) > _SHOWN)}"


def open_lines(
    function: str, files: Mapping[str, PathLike], tokenizer: str, *, of_any_length: bool = False
) -> tuple[Mapping[str, Iterable[Iterable[str]]], str]:
    """The words of the lines of each file, and a name for them.

    Parameters
    ----------
    function : str
        For errors.
    files : mapping of str to path
    tokenizer : str
    of_any_length : bool
        Whether lines may be longer than the limit of :mod:`rnnlab.limits`. Each is then an iterator, which
        must be read before the next one.

    Raises
    ------
    TypeError
        If ``files`` is not a mapping of paths.
    ValueError
        If there is no such tokenizer.
    OSError
        If a file is missing, or not a regular file.
    """
    if not isinstance(files, Mapping):
        raise InputTypeError(
            f"{function}: files is a {type(files).__name__}, expected a dict of files by splits, such as "
            '{"train": path}'
        )
    check_tokenizer(function, tokenizer)
    for path in files.values():
        check_regular(path, "a text file")
    tokenize = TEXT_TOKENIZERS[tokenizer]

    def words(line: Iterable[str]) -> Iterable[str]:
        return chain.from_iterable(map(tokenize, line))

    lines: dict[str, Iterable[Iterable[str]]] = {
        split: map(words, lines_in_pieces(path)) if of_any_length else map(tokenize, text_lines(path))
        for split, path in files.items()
    }
    return lines, ", ".join(Path(path).name for path in files.values())
