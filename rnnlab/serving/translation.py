"""Sentences to translations, with the attention of each word to the source."""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.errors import InputError
from rnnlab.reporting.translations import Alignment, aligned_words
from rnnlab.serving.answerer import Answerer
from rnnlab.tasks.translation import translate

_MOST_WORDS = 1000  # maximum words of a source, because other requests wait for its translation


class Translated(NamedTuple):
    """The translations of a sentence."""

    translations: list[tuple[str, float]]  # with their scores, best first
    unknown: list[str]  # words that the model reads as <UNK>
    alignment: Alignment | None  # alignment of the best translation, if the model has attention


class Translator(Answerer):
    """Translations of sentences."""

    def translate(self, text: str, beam_size: int) -> Translated:
        """The translations of a sentence.

        Raises
        ------
        ValueError
            If it has no words or too many, or as :meth:`Answerer.search`.
        """
        model, inputs = self.run.model, self.run.inputs
        words = inputs.tokenize(text)
        if not words:
            raise InputError("there is no text to translate: write some first")
        if len(words) > _MOST_WORDS:
            raise InputError(f"the text has {len(words):,} words, expected at most {_MOST_WORDS:,}")
        (found,) = self.search(
            lambda options: translate(model, [words], options, return_alignments=self.attends), beam_size
        )
        return Translated(
            [(inputs.detokenize(each.words), each.hypothesis.score) for each in found],
            inputs.unknown_words(words),
            aligned_words(words, found[0]) if self.attends else None,
        )
