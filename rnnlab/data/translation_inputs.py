"""The inputs of a translation model without its training data, from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rnnlab.data.parallel_text import TOKENIZERS
from rnnlab.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class TranslationInputs:
    """What new sentences need before a model can translate them.

    Attributes
    ----------
    source_vocabulary, vocabulary : Vocabulary
        Of the source and of the target.
    tokenizer : str
        The name of the tokenizer that split the training sentences, a key of ``TOKENIZERS``.
    """

    source_vocabulary: Vocabulary
    vocabulary: Vocabulary
    tokenizer: str

    @classmethod
    def from_saved(cls, vocabulary: list[str], preprocessing: Mapping[str, Any]) -> Self:
        """From the fields ``vocabulary`` and ``preprocessing`` of a checkpoint."""
        source = Vocabulary(preprocessing["source_vocabulary"])
        return cls(source, Vocabulary(vocabulary), preprocessing["tokenizer"])

    def tokenize(self, sentence: str) -> list[str]:
        """The words of a sentence, split as the training sentences were."""
        return TOKENIZERS[self.tokenizer](sentence)

    def unknown_words(self, words: Sequence[str]) -> list[str]:
        """The words that the source vocabulary lacks, each once. The model reads them as <UNK>."""
        return list(dict.fromkeys(word for word in words if word not in self.source_vocabulary))
