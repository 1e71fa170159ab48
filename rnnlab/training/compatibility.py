"""Whether a model, data and a checkpoint fit together: configuration, vocabulary, scaling and fingerprint."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Mapping
from itertools import islice
from reprlib import repr as shortened
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.models.parts.losses import LOSSES
from rnnlab.options import as_json, as_plain, described
from rnnlab.parameters import check_parameters
from rnnlab.reading import PathLike
from rnnlab.training.checkpoint import Checkpoint, CheckpointError, check_shapes, describe_model

_SHOWN = 3  # words that differ

# Different machines sum in different orders, so arrays that they compute may differ by rounding.
_TOLERANCE = 1e-4  # relative to a feature's standard deviation, or to another array's largest number
_ROUNDING = 1e-6  # relative to a feature's mean


def check_model(path: PathLike, checkpoint: Checkpoint, model: Any) -> None:
    """Check that a model has the class, the configuration, the shapes and the dtype of a checkpoint's model.

    The weights of the losses may change during training. Those from its beginning are compared. An option
    that the checkpoint lacks, because the library did not have it yet, counts as its default.

    Raises
    ------
    CheckpointError
        If one differs. The message names it.
    """
    described = describe_model(model)
    found, expected = checkpoint.model.get("class"), described["class"]
    if found != expected:
        raise CheckpointError(path, "model: class", found, f"{expected}, as the model given")
    options, given = checkpoint.model.get("config", {}), described["config"]
    options = {**options, **checkpoint.solver.get("loss_weights", {})}
    sizes = [loss.part.size for loss in LOSSES.values() if loss.part]
    for name in {**options, **given}:
        expected = given.get(name)
        found = options[name] if name in options else _default(type(model), name)
        if found == expected or (name in sizes and None in (found, expected)):  # check_shapes compares these
            continue
        if isinstance(found, dict) and isinstance(expected, dict) and name.endswith("word_to_idx"):
            check_words(path, f"model: {name}", found, expected, "model")
        raise CheckpointError(
            path, f"model: {name}", shortened(found), f"{shortened(expected)}, as the model given"
        )
    check_shapes(path, checkpoint.parameters.shapes, model.params.shapes)
    if checkpoint.parameters.dtype != model.params.dtype:
        raise CheckpointError(path, "parameters", checkpoint.parameters.dtype, model.params.dtype)


def _default(model: type, option: str) -> Any:
    """The default of an argument of a model's constructor, or of a base class's; None if there is none."""
    for each in model.__mro__:
        parameter = inspect.signature(each.__init__).parameters.get(option)  # type: ignore[misc]
        if parameter is not None:
            return None if parameter.default is parameter.empty else as_plain(parameter.default)
    return None


def loss_weights(model: Any) -> dict[str, Any]:
    """The current weights of the losses of a model by name, as its configuration has them."""
    config = describe_model(model)["config"]
    return {name: config[name] for name in LOSSES if name in config}


def check_data(path: PathLike, checkpoint: Checkpoint, data: Any, *, same: bool = False) -> None:
    """Check that data have the vocabulary and the preprocessing of those that a model was trained on.

    Data without the methods ``preprocessing`` and ``fingerprint`` are not compared.

    Parameters
    ----------
    path : path
        Of the checkpoint, for messages.
    checkpoint : Checkpoint
    data : Data
    same : bool
        Whether they must be the same data, as a run that resumes needs them: the fingerprints are compared.

    Raises
    ------
    CheckpointError
        If something differs. The message names it.
    """
    vocabulary = getattr(data, "vocabulary", None)
    if checkpoint.vocabulary is not None and vocabulary is not None:
        found = {word: token for token, word in enumerate(checkpoint.vocabulary)}
        check_words(path, "vocabulary", found, vocabulary.word_to_idx, "data")
    if hasattr(data, "preprocessing"):
        _check_preprocessing(path, checkpoint.preprocessing, data.preprocessing())
    if same and checkpoint.fingerprint is not None:
        fingerprint = fingerprint_of(data)
        if fingerprint is None:
            warnings.warn(
                f"{type(data).__name__} has no fingerprint: its data may not be those of {path}",
                stacklevel=2,
            )
            return
        for name in {**checkpoint.fingerprint, **fingerprint}:
            saved, given = checkpoint.fingerprint.get(name), fingerprint.get(name)
            if saved != given and not _same_json(saved, given):
                raise CheckpointError(
                    path,
                    f"fingerprint: {name}",
                    saved,
                    f"{given}, as the data given: resume with the same data",
                )


def fingerprint_of(data: Any) -> dict[str, Any] | None:
    """The fingerprint of data as it returns from JSON; None if they have none.

    Raises
    ------
    TypeError
        If it is not a dict that JSON can hold.
    """
    found = data.fingerprint() if hasattr(data, "fingerprint") else None
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise InputTypeError(f"Solver: data.fingerprint() returned {described(found)}, expected a dict")
    return as_json(found, "Solver: data.fingerprint()")


def _same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where NaN equals NaN."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def check_words(
    path: PathLike, field: str, found: Mapping[str, int], expected: Mapping[str, int], owner: str
) -> None:
    """Check that two vocabularies are equal; ``owner`` names the owner of the expected one in errors.

    Raises
    ------
    CheckpointError
        If they differ: with the number of words of each, and the first that differ.
    """
    if dict(found) != dict(expected):
        raise CheckpointError(
            path,
            field,
            f"{len(found):,} words",
            f"the {len(expected):,} of the {owner}; {_differ(found, expected)}",
        )


def check_fit(model: Any, data: Any, objective: Any) -> None:
    """Check that a model and its training data fit together.

    Raises
    ------
    ValueError, TypeError
        If the model has no Parameters, they have other vocabularies, or the data's ``check_model`` refuses
        the model. It is not called if an objective makes other batches of the data.
    """
    check_parameters("Solver", "model.params", model.params, hint="")
    check_vocabularies(model, data)
    if objective is None and hasattr(data, "check_model"):
        data.check_model(model)


def check_vocabularies(model: Any, data: Any) -> None:
    """Check that a model and its data give the same tokens to words, where both have vocabularies.

    Raises
    ------
    ValueError
        If a word has another token in the model.
    """
    for name, words in (("word_to_idx", "vocabulary"), ("source_word_to_idx", "source_vocabulary")):
        found, expected = getattr(model, name, None), getattr(getattr(data, words, None), "word_to_idx", None)
        if isinstance(found, Mapping) and isinstance(expected, Mapping) and dict(found) != dict(expected):
            raise InputError(
                f"Solver: model.{name} has {len(found):,} words, expected the {len(expected):,} of "
                f"data.{words}; {_differ(found, expected)}"
            )


def _differ(found: Mapping[str, int], expected: Mapping[str, int]) -> str:
    """The first tokens that have different words in two vocabularies."""
    words, others = ({token: word for word, token in each.items()} for each in (found, expected))
    differ = (token for token in sorted({**words, **others}) if words.get(token) != others.get(token))
    listed = ", ".join(
        f"{token} is {_quoted(words.get(token))}, not {_quoted(others.get(token))}"
        for token in islice(differ, _SHOWN)
    )
    return f"the first tokens that differ: {listed}"


def _quoted(word: str | None) -> str:
    return "none" if word is None else repr(word)


def _check_preprocessing(path: PathLike, saved: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    if not saved:
        return  # written by a solver whose data have none
    for name in {**saved, **given}:
        if name.endswith("_path"):
            continue  # the path of a file, which may differ
        found, expected = saved.get(name), given.get(name)
        field = f"preprocessing: {name}"
        if name.endswith("vocabulary") and isinstance(found, list) and isinstance(expected, list):
            words, others = ({word: k for k, word in enumerate(each)} for each in (found, expected))
            check_words(path, name, words, others, "data")
        elif isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
            if found.shape != expected.shape:
                raise CheckpointError(path, field, f"shape {found.shape}", f"{expected.shape}, as the data")
            wrong = np.abs(np.subtract(found, expected, dtype=np.float64)) > _limit(name, given)
            if wrong.any():
                at = tuple(map(int, np.argwhere(wrong)[0]))
                value = f"{expected[at]}, as the data given: the model was trained on other data"
                raise CheckpointError(path, field, f"{found[at]} at {at}", value)
        elif isinstance(found, np.ndarray) != isinstance(expected, np.ndarray) or found != expected:
            raise CheckpointError(path, field, shortened(found), f"{shortened(expected)}, as the data")


def _limit(name: str, given: Mapping[str, Any]) -> Any:
    """The largest difference of a saved array from the one given, or of each of its numbers."""
    expected = given[name]
    if expected.dtype.kind != "f":
        return 0
    field, _, part = name.rpartition("_")
    if part in ("mean", "std") and f"{field}_std" in given:
        mean, std = (np.abs(given.get(f"{field}_{each}", 0)) for each in ("mean", "std"))
        return np.maximum(_TOLERANCE * std, _ROUNDING * mean)
    return _TOLERANCE * np.abs(expected).max(initial=0)
