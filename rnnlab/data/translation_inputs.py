"""The inputs of a translation model without its training data, from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rnnlab.data.padding import pad, source_row
from rnnlab.data.parallel_text import TOKENIZERS, detokenize
from rnnlab.data.subwords import Subwords
from rnnlab.data.vocabulary import Vocabulary
from rnnlab.errors import InputTypeError
from rnnlab.special_words import SPECIAL_WORDS


@dataclass(frozen=True)
class TranslationInputs:
    """The preprocessing of new sentences for a translation model, and the vocabulary of its translations.

    Attributes
    ----------
    source_vocabulary, vocabulary : Vocabulary
        The vocabularies of the source and of the target.
    tokenizer : str
        The name of the tokenizer that split the training sentences, a key of ``TOKENIZERS`` or ``SUBWORDS``.
    source_subwords : Subwords or None
        The model that splits sources into pieces of words, if the tokenizer is ``SUBWORDS``.
    """

    source_vocabulary: Vocabulary
    vocabulary: Vocabulary
    tokenizer: str
    source_subwords: Subwords | None = None

    @classmethod
    def from_saved(cls, vocabulary: list[str], preprocessing: Mapping[str, Any]) -> Self:
        """From the fields ``vocabulary`` and ``preprocessing`` of a checkpoint."""
        source = Vocabulary(preprocessing["source_vocabulary"])
        model = preprocessing.get("source_subwords")
        subwords = None if model is None else Subwords(model.tobytes())
        return cls(source, Vocabulary(vocabulary), preprocessing["tokenizer"], subwords)

    def tokenize(self, sentence: str) -> list[str]:
        """The words of a sentence, split as the training sentences were."""
        if self.source_subwords is not None:
            return self.source_subwords.split(sentence)
        return TOKENIZERS[self.tokenizer](sentence)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Sentences as a model reads them: the tokens of words and <END>, then <NULL>, (N, L) int32.

        Raises
        ------
        TypeError
            If ``sentences`` is a string instead of a list of strings.
        """
        _check_list("encode", "sentences", sentences)
        return pad([source_row(self.source_vocabulary, self.tokenize(each)) for each in sentences])

    def detokenize(self, words: Sequence[str]) -> str:
        """The sentence made of the words that a model generates.

        Raises
        ------
        TypeError
            If ``words`` is a string instead of a list of words.
        """
        _check_list("detokenize", "words", words)
        return detokenize(words, self.tokenizer)

    def unknown_words(self, words: Sequence[str]) -> list[str]:
        """The words that the model reads as <UNK>, each once: unknown words, and text of special words."""
        known = self.source_vocabulary
        return list(dict.fromkeys(word for word in words if word not in known or word in SPECIAL_WORDS))


def _check_list(function: str, name: str, given: Sequence[str]) -> None:
    """Refuse a string, which is a sequence of its letters."""
    if isinstance(given, str):
        raise InputTypeError(f"{function}: {name} is the string {given!r}, expected a list of {name}")
