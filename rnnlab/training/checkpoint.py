"""Checkpoints: one HDF5 file with all that a trained model, or a training run, is.

    /               attributes: format, rnnlab_version
    /parameters     (P,) the flat buffer; attribute index: JSON list of [name, shape]
    /optimiser/     attribute steps; one (P,) data set for each array of the update rule
    /losses         (iterations,) float64, the loss of every iteration
    /model, /vocabulary, /config, /history, /solver     JSON

There is no pickle: opening a file from elsewhere runs none of its code. The JSON is in data sets, since an
attribute ends at 64 KiB, and its strings are of fixed length, since HDF5 can loop for ever on a damaged heap
of variable ones. A file is written beside its place, synced and renamed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from reprlib import repr as shortened
from types import NoneType
from typing import Any

import h5py
import numpy as np

import rnnlab
from rnnlab import models
from rnnlab.files import atomic_write
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters

PathLike = str | os.PathLike[str]

_FORMAT = "rnnlab checkpoint 1"
_JSON = {
    "model": (dict,),
    "vocabulary": (list, NoneType),
    "config": (dict, NoneType),
    "history": (list,),
    "solver": (dict,),
}


class CheckpointError(ValueError):
    """A checkpoint is not what it should be; the message names file, field, found and expected."""

    def __init__(self, path: PathLike, field: str, found: object, expected: object) -> None:
        super().__init__(f"{os.fspath(path)}: {field}: found {found}, expected {expected}")


@dataclass
class Checkpoint:
    """What a checkpoint file holds.

    Attributes
    ----------
    parameters : Parameters
    model : dict
        ``class``, the name of the model's class, and ``config``, what its ``from_config`` takes.
    vocabulary : list of str, or None
        The words in the order of their numbers.
    config : dict or None
        The configuration of the run.
    optimiser : dict
        An update rule's state.
    losses : (iterations,) float64
    history : list of dict
        One row per epoch.
    solver : dict
        The solver's options, and the state of its generators, data order, schedule and monitor.
    version : str
        Of the rnnlab that wrote it.
    """

    parameters: Parameters
    model: dict[str, Any]
    vocabulary: list[str] | None = None
    config: dict[str, Any] | None = None
    optimiser: dict[str, Any] = field(default_factory=lambda: {"steps": 0})
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))
    history: list[dict[str, Any]] = field(default_factory=list)
    solver: dict[str, Any] = field(default_factory=dict)
    version: str = rnnlab.__version__


def describe_model(model: Any) -> dict[str, Any]:
    """What :func:`load_model` rebuilds a model from: ``class`` and ``config``."""
    return {"class": type(model).__name__, "config": json.loads(json.dumps(model.config()))}


def check_model(path: PathLike, checkpoint: Checkpoint, model: Any) -> None:
    """Raise CheckpointError unless ``model`` is of the checkpoint's class, configuration and dtype."""
    described = describe_model(model)
    found, expected = checkpoint.model.get("class"), described["class"]
    if found != expected:
        raise CheckpointError(path, "model: class", found, f"{expected}, as the model given")
    options, given = checkpoint.model.get("config", {}), described["config"]
    for name in {**options, **given}:
        if options.get(name) != given.get(name):
            found, expected = shortened(options.get(name)), shortened(given.get(name))
            raise CheckpointError(path, f"model: {name}", found, f"{expected}, as the model given")
    _check_shapes(path, checkpoint.parameters, model.params)
    if checkpoint.parameters.dtype != model.params.dtype:
        raise CheckpointError(path, "parameters", checkpoint.parameters.dtype, model.params.dtype)


def save_checkpoint(path: PathLike, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; ``path`` holds the previous file or the new one at every moment."""
    with atomic_write(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["format"] = np.bytes_(_FORMAT)
        file.attrs["rnnlab_version"] = np.bytes_(checkpoint.version)
        parameters = file.create_dataset("parameters", data=_on_host(checkpoint.parameters.flat))
        parameters.attrs["index"] = np.bytes_(json.dumps(list(checkpoint.parameters.shapes.items())))
        optimiser = file.create_group("optimiser")
        for name, value in checkpoint.optimiser.items():
            if name == "steps":
                optimiser.attrs[name] = value
            else:
                optimiser.create_dataset(name, data=_on_host(value))
        file.create_dataset("losses", data=np.asarray(checkpoint.losses, np.float64))
        for name in _JSON:
            file.create_dataset(name, data=np.bytes_(json.dumps(getattr(checkpoint, name))))


def _on_host(array: Any) -> np.ndarray:
    return ops_for(array).asnumpy(array)


def load_checkpoint(path: PathLike) -> Checkpoint:
    """Read a checkpoint.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    CheckpointError
        If it is not HDF5, truncated, not a checkpoint of this library, or lacks a field or has a bad one.
    """
    with _open(path) as file:
        parameters = _read_parameters(path, file)
        optimiser = _get(path, file, "optimiser", h5py.Group)
        steps = optimiser.attrs.get("steps")
        if not isinstance(steps, np.integer) or steps < 0:
            raise CheckpointError(path, "optimiser: attribute steps", steps, "a number of updates")
        return Checkpoint(
            parameters=parameters,
            optimiser={"steps": int(steps)}
            | {name: _get(path, optimiser, name, h5py.Dataset)[()] for name in optimiser},
            losses=_read_losses(path, file),
            version=file.attrs["rnnlab_version"].decode(),
            **{name: _read_json(path, file, name, kind) for name, kind in _JSON.items()},
        )


def load_model(path: PathLike, known: Mapping[str, Any] | None = None) -> Any:
    """Rebuild the model of a checkpoint, with its parameters.

    Parameters
    ----------
    path : path
    known : mapping of str to class, optional
        Classes by name, beside those of :mod:`rnnlab.models`; each has ``from_config(config)``.

    Raises
    ------
    FileNotFoundError, CheckpointError
        As :func:`load_checkpoint`, and if the class is not known, or its parameters are others.
    """
    with _open(path) as file:
        parameters = _read_parameters(path, file)
        described = _read_json(path, file, "model", (dict,))
    classes = {name: getattr(models, name) for name in models.__all__} | dict(known or {})
    name = described.get("class")
    if name not in classes:
        raise CheckpointError(path, "model: class", repr(name), f"one of {', '.join(classes)}")
    try:
        model = classes[name].from_config(described["config"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            path, "model: config", f"{type(error).__name__}: {error}", f"a {name}"
        ) from error
    _assign(path, parameters, model.params)
    return model


def load_parameters(path: PathLike, model: Any) -> None:
    """Copy the parameters of a checkpoint into ``model.params``; other dtypes are converted.

    Raises
    ------
    FileNotFoundError, CheckpointError
        As :func:`load_checkpoint`, and if the names or the shapes are not those of the model.
    """
    with _open(path) as file:
        parameters = _read_parameters(path, file)
    _assign(path, parameters, model.params)


def _assign(path: PathLike, source: Parameters, target: Parameters) -> None:
    _check_shapes(path, source, target)
    for name in target:
        target[name] = source[name]


def _check_shapes(path: PathLike, source: Parameters, target: Parameters) -> None:
    for name, shape in target.shapes.items():
        if name not in source.shapes:
            raise CheckpointError(path, "parameters", ", ".join(source.shapes), f"one called {name}")
        if source.shapes[name] != shape:
            raise CheckpointError(path, f"parameters: {name}", f"shape {source.shapes[name]}", f"{shape}")
    for name in source.shapes:
        if name not in target.shapes:
            raise CheckpointError(path, "parameters", name, f"only {', '.join(target.shapes)}")


@contextmanager
def _open(path: PathLike) -> Iterator[h5py.File]:
    """Open a checkpoint; whatever HDF5 finds wrong with the file is told with the file's name."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)}: no such checkpoint")
    try:
        with h5py.File(path, "r") as file:
            found = file.attrs.get("format")
            if found != np.bytes_(_FORMAT):
                raise CheckpointError(path, "attribute format", found, _FORMAT)
            if "rnnlab_version" not in file.attrs:
                raise CheckpointError(path, "attribute rnnlab_version", "nothing", "a version")
            yield file
    except CheckpointError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:  # h5py raises any of these
        raise CheckpointError(
            path, "file", f"what HDF5 cannot read ({error})", "a whole checkpoint"
        ) from error


def _get(path: PathLike, file: h5py.File, name: str, kind: type) -> Any:
    found = file.get(name)
    if not isinstance(found, kind):
        raise CheckpointError(path, name, "nothing" if found is None else found, f"an HDF5 {kind.__name__}")
    return found


def _read_json(path: PathLike, file: h5py.File, name: str, kinds: tuple[type, ...]) -> Any:
    text = _get(path, file, name, h5py.Dataset)[()]
    expected = " or ".join(kind.__name__ for kind in kinds)
    try:
        value = json.loads(text)
    except (TypeError, ValueError) as error:
        raise CheckpointError(path, name, f"no JSON ({error})", f"{expected} as JSON") from None
    if not isinstance(value, kinds):
        raise CheckpointError(path, name, f"{type(value).__name__} as JSON", expected)
    return value


def _read_losses(path: PathLike, file: h5py.File) -> np.ndarray:
    losses = _get(path, file, "losses", h5py.Dataset)
    if losses.dtype.kind != "f" or losses.ndim != 1:
        raise CheckpointError(path, "losses", f"{losses.dtype} {losses.shape}", "floats in one dimension")
    return losses[()]


def _read_parameters(path: PathLike, file: h5py.File) -> Parameters:
    dataset = _get(path, file, "parameters", h5py.Dataset)
    try:
        shapes = {str(name): tuple(map(int, shape)) for name, shape in json.loads(dataset.attrs["index"])}
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            path, "parameters: attribute index", repr(error), "[[name, shape], ...]"
        ) from None
    size = sum(map(prod, shapes.values()))
    if dataset.shape != (size,) or dataset.dtype.kind != "f":
        raise CheckpointError(
            path, "parameters", f"{dataset.dtype} {dataset.shape}", f"floats ({size},), as the index says"
        )
    return Parameters(shapes, dataset.dtype, flat=dataset[()])
