"""Subword units: sentences as pieces of words, by sentencepiece (Kudo and Richardson 2018).

The pieces are found by byte-pair encoding (Sennrich, Haddow and Birch 2016): starting with single characters,
the most frequent pair of adjacent pieces is merged into a new piece, until there is the requested number. A
piece that begins a word is marked with "▁", so that the sentence can be restored by joining its pieces:

    a didgeridoo .      ▁a ▁di d ger id oo ▁.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from rnnlab.errors import InputError
from rnnlab.extras import Library

SUBWORDS = "sentencepiece"  # the name of the tokenizer, in recipes and checkpoints

_SENTENCEPIECE = Library("sentencepiece", "subword", "a split into pieces of words")
_MARK = "▁"  # U+2581, sentencepiece's sign for a space
_RESERVED = "\u2585"  # reserved by sentencepiece, which would skip a sentence that contains it
_LONGEST = 2**30  # bytes of a sentence, the maximum of sentencepiece, whose default is 4,192


@dataclass(frozen=True)
class Subwords:
    """A model of sentencepiece.

    Parameters
    ----------
    model : bytes
        The content of a .model file of sentencepiece.
    """

    model: bytes

    def __repr__(self) -> str:
        return f"Subwords(a model of {len(self.model):,} bytes)"

    @classmethod
    def fit(cls, sentences: Iterable[str], vocabulary_size: int) -> Self:
        """Find the pieces of a language.

        The same sentences give the same model.

        Parameters
        ----------
        sentences : iterable of str
            The sentences of the training split only.
        vocabulary_size : int
            The number of pieces. They include all characters of the sentences except U+2585, which
            sentencepiece reserves. White space of any kind is replaced by a space.

        Raises
        ------
        ImportError
            If the extra ``subword`` is not installed.
        ValueError
            If the sentences have more characters than ``vocabulary_size``, or too few pieces.

        An exception of ``sentences`` is passed on.
        """
        model, errors = io.BytesIO(), list[BaseException]()

        def read() -> Iterator[str]:
            try:
                for sentence in sentences:
                    yield _normalised(sentence).replace(_RESERVED, " ")
            except (Exception, KeyboardInterrupt) as error:
                errors.append(error)  # sentencepiece makes another one of it
                raise

        try:
            _SENTENCEPIECE.module().SentencePieceTrainer.train(
                sentence_iterator=read(),
                model_writer=model,
                vocab_size=vocabulary_size,
                model_type="bpe",
                normalization_rule_name="identity",  # the text of the references must not change
                character_coverage=1.0,
                max_sentence_length=_LONGEST,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                num_threads=1,  # the result does not depend on the machine
                minloglevel=2,
            )
        except (RuntimeError, ValueError) as error:  # the latter for a number that is no int of C++
            if errors:
                raise errors[0] from None
            raise InputError(
                f"vocabulary_size is {vocabulary_size}, and sentencepiece cannot find as many pieces: {error}"
            ) from None
        return cls(model.getvalue())

    def split(self, sentence: str) -> list[str]:
        """The pieces of a sentence. Characters that the model does not know are pieces, too.

        Raises
        ------
        ImportError
            If the extra ``subword`` is not installed.
        ValueError
            If ``model`` is not a sentencepiece model, or the sentence has a character that UTF-8 cannot
            encode: a surrogate, such as one for a byte of the command line that is not text.
        """
        try:
            return self._processor.encode(_normalised(sentence), out_type=str)
        except RuntimeError as error:
            raise InputError(f"Subwords.split: found {sentence!r:.60}, expected text ({error})") from None

    @property
    def pieces(self) -> list[str]:
        """All pieces of the model, without the one for unknown characters."""
        processor = self._processor
        return [processor.id_to_piece(k) for k in range(len(processor)) if k != processor.unk_id()]

    @cached_property
    def _processor(self) -> Any:
        try:
            processor = _SENTENCEPIECE.module().SentencePieceProcessor()
            processor.LoadFromSerializedProto(self.model)
            return processor
        except RuntimeError as error:
            found = f"{len(self.model)} bytes that sentencepiece cannot read ({error})"
            raise InputError(f"Subwords: model is {found}, expected the content of a .model file") from None


def join_pieces(pieces: Sequence[str]) -> str:
    """The sentence made of these pieces, with one space between words.

    Examples
    --------
    >>> join_pieces(["▁a", "▁di", "d", "ger", "id", "oo", "."])
    'a didgeridoo.'
    """
    return "".join(pieces).replace(_MARK, " ").strip()


def _normalised(sentence: str) -> str:
    """The sentence in composed Unicode form, with one space for any sequence of white space or its marks."""
    return " ".join(unicodedata.normalize("NFC", sentence).replace(_MARK, " ").split())
