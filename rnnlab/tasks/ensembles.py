"""The members of an ensemble, and checks that they are compatible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from reprlib import repr as shortened
from typing import Any, NamedTuple

from rnnlab.data.vocabulary import Vocabulary
from rnnlab.errors import InputError
from rnnlab.training.compatibility import check_words


class Member(NamedTuple):
    """A run that is part of an ensemble."""

    name: str  # the directory, for messages
    model: Any
    inputs: Any  # CaptionInputs, TranslationInputs or PixelInputs, from the checkpoint
    data: Any = None  # CaptionData, ParallelData or PixelData; None if not opened


class Combined(NamedTuple):
    """The members as one model, with the data and the inputs that it reads."""

    model: Any
    inputs: Any
    data: Any = None


def check_same_words(
    members: Sequence[Member], name: str, vocabulary_of: Callable[[Any], Vocabulary]
) -> None:
    """Check that the inputs of all members have the same vocabulary.

    Parameters
    ----------
    members : sequence of Member
    name : str
        The name of the vocabulary, for the message.
    vocabulary_of : callable
        The vocabulary of a member's inputs.

    Raises
    ------
    ValueError
        If one differs from the first. The message names both runs, their numbers of words, and the first
        words that differ.
    """
    first, *others = members
    expected = vocabulary_of(first.inputs).word_to_idx
    for member in others:
        found = vocabulary_of(member.inputs).word_to_idx
        check_words(member.name, name, found, expected, f"run {first.name}")


def check_same(members: Sequence[Member], name: str, value_of: Callable[[Any], Any]) -> None:
    """Check that a value is the same for the inputs of all members.

    Raises
    ------
    ValueError
        If one differs from the first. The message names both runs and both values.
    """
    first, *others = members
    expected = value_of(first.inputs)
    for member in others:
        found = value_of(member.inputs)
        if found != expected:
            raise InputError(
                f"{member.name}: {name}: found {shortened(found)}, expected {shortened(expected)} as "
                f"{first.name}: the models of an ensemble read the same inputs"
            )


def check_same_splits(members: Sequence[Member], things: str, same: Callable[[Any, Any], bool]) -> None:
    """Check that the data of all members have the same splits.

    The split ``train`` may differ, because the models may be trained on different examples.

    Parameters
    ----------
    members : sequence of Member
    things : str
        The kind of input, for the message: "images" or "sentences".
    same : callable
        Whether two splits are the same.

    Raises
    ------
    ValueError
        If a member lacks a split of the first, or has a different split of that name. The message names both
        runs and the split.
    """
    first, *others = members
    for member in others:
        if member.data is first.data:
            continue
        for name, expected in first.data.splits.items():
            found = member.data.splits.get(name)
            if name != "train" and (found is None or not same(found, expected)):
                raise InputError(
                    f"{member.name}: data: found {'no' if found is None else 'another'} split {name}, "
                    f"expected that of {first.name}: the models of an ensemble read the same {things}"
                )
