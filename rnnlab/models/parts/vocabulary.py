"""Check of a model's vocabulary: padding and the special words."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from rnnlab.errors import InputError, InputTypeError
from rnnlab.special_words import SPECIAL_WORDS


def check_vocabulary(function: str, name: str, word_to_idx: Mapping[str, int]) -> None:
    """Check that a vocabulary has ``<NULL>``, that words have distinct tokens, and the special ones' range.

    The tokens of a model are 0 to V - 1, where V is the number of words. Words that are not special may have
    others, as in the course's dictionaries with gaps; a model does not generate them.

    Raises
    ------
    ValueError
        If ``<NULL>`` is missing, a special word has a token outside [0, V), or two words have the same one.
    TypeError
        If it is not a mapping, or a token is not an integer.
    """
    if not isinstance(word_to_idx, Mapping):
        raise InputTypeError(
            f"{function}: {name} is a {type(word_to_idx).__name__}, expected a mapping from words to tokens, "
            "such as the word_to_idx of a Vocabulary"
        )
    if "<NULL>" not in word_to_idx:
        raise InputError(f"{function}: {name} has no <NULL>, the token of padding")
    V, words = len(word_to_idx), dict[int, str]()
    for word, given in word_to_idx.items():
        try:
            token = operator.index(given)
        except TypeError:
            raise InputTypeError(
                f"{function}: {name} has {given!r} for {word}, expected an integer"
            ) from None
        if word in SPECIAL_WORDS and not 0 <= token < V:
            raise InputError(
                f"{function}: {name} has the token {token} for {word}, "
                f"expected one from 0 to {V - 1}, as there are {V} words"
            )
        if token in words:
            raise InputError(
                f"{function}: {name} has the token {token} for both {words[token]} and {word}, expected two"
            )
        words[token] = word
