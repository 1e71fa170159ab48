"""The prompts and the texts of a language model without its training data, from a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rnnlab.data.parallel_text import TOKENIZERS, Tokenize, compose
from rnnlab.data.vocabulary import START, UNK, Vocabulary
from rnnlab.errors import InputError, InputTypeError

LINE_END = "\n"  # the word at the end of each line of a running text

TEXT_TOKENIZERS: dict[str, Tokenize] = {**TOKENIZERS, "characters": lambda sentence: list(compose(sentence))}


@dataclass(frozen=True)
class TextInputs:
    """The vocabulary of a language model, and the tokenizer of its sentences.

    Attributes
    ----------
    vocabulary : Vocabulary
    tokenizer : str
        The name of the tokenizer that split the training sentences, a key of ``TEXT_TOKENIZERS``.
    running : bool
        Whether the model has learned running text, in which the ends of lines are words.
    """

    vocabulary: Vocabulary
    tokenizer: str
    running: bool = False

    @classmethod
    def from_saved(cls, vocabulary: list[str], preprocessing: Mapping[str, Any]) -> Self:
        """From the fields ``vocabulary`` and ``preprocessing`` of a checkpoint."""
        return cls(Vocabulary(vocabulary), preprocessing["tokenizer"], preprocessing.get("running", False))

    def preprocessing(self) -> dict[str, Any]:
        """What a checkpoint saves for :meth:`from_saved`: the tokenizer, and whether the text is running."""
        return {"tokenizer": self.tokenizer, **({"running": True} if self.running else {})}

    def prompt(self, text: str) -> np.ndarray:
        r"""The beginning of a sentence or a text as a model reads it: <START> and its words, (1, P) int64.

        Parameters
        ----------
        text : str
            Split as the training sentences were; in running text also at the ends of lines, which are
            "\n" or "\r\n". Without words, sentences begin from nothing.

        Raises
        ------
        ValueError
            If the vocabulary lacks a word. The message names it.
        TypeError
            If ``text`` is not a string.
        """
        if not isinstance(text, str):
            raise InputTypeError(
                f"prompt: text is a {type(text).__name__}, expected a string; the tokenizer splits it"
            )
        words = self._words(text)
        tokens = self.vocabulary.tokens_of(words)
        if UNK in tokens:
            unknown = words[tokens.index(UNK)]
            raise InputError(f"the prompt has {unknown!r}, expected words of the vocabulary")
        return np.array([[START, *tokens]])

    def text(self, tokens: Iterable[int]) -> str:
        """The text of tokens that a model has read or written: their words, or their characters, joined.

        Parameters
        ----------
        tokens : iterable of integers in [0, V)
            Those after the first <END> are left out, and so are <START> and <NULL>.

        Raises
        ------
        IndexError
            If a token is outside the vocabulary.
        TypeError
            If a token is not an integer.
        """
        return self.joined(self.vocabulary.words_of("text", tokens))

    def joined(self, words: Iterable[str]) -> str:
        """The text of the tokenizer's words: characters are joined, words are separated by spaces.

        There is no space at the ends of lines of running text.
        """
        if self.tokenizer == "characters":
            return "".join(words)
        text = " ".join(words)
        return re.sub(f" ?{LINE_END} ?", LINE_END, text) if self.running else text

    def _words(self, text: str) -> list[str]:
        """The words of a text, with those at the ends of all lines but the last, if it is running text."""
        tokenize = TEXT_TOKENIZERS[self.tokenizer]
        if not self.running:
            return tokenize(text)
        first, *further = text.replace("\r\n", LINE_END).split(LINE_END)  # as files are read
        return [*tokenize(first), *(word for line in further for word in (LINE_END, *tokenize(line)))]


def check_tokenizer(function: str, tokenizer: str) -> None:
    """Raise ValueError if there is no such tokenizer."""
    if tokenizer not in TEXT_TOKENIZERS:
        raise InputError(
            f"{function}: tokenizer is {tokenizer!r}, expected one of {', '.join(TEXT_TOKENIZERS)}"
        )
