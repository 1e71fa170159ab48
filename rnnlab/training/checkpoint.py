"""Checkpoints: an HDF5 file with a trained model, or with the complete state of a training run.

    /                 attributes: format, rnnlab_version
    /parameters/      one dataset per parameter, by name; attribute index: JSON list of [name, shape] in order
    /preprocessing/   what new inputs need: arrays and JSON of the data set's ``preprocessing``
    /optimiser/       attribute steps; one (P,) dataset for each array of the update rule
    /average          (P,), the moving average of the parameters, if there is one
    /state/           the arrays of the state that the next batch of a running text begins at, if there is one
    /losses           (iterations,) float64, the loss of every iteration
    /model, /vocabulary, /config, /fingerprint, /history, /solver     JSON

There is no pickle: opening a file from elsewhere runs none of its code. JSON is stored in datasets, because
an attribute holds at most 64 KiB. Its strings have a fixed length, because HDF5 may loop forever on a damaged
heap of strings of variable length.

HDF5 stores a checksum of every dataset (the Fletcher-32 filter) and, in its latest format, of everything else
in the file. A changed byte is therefore an error, unless it is in a gap between objects. A file is written
under a temporary name, synced and renamed.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

import h5py
import numpy as np

import rnnlab
from rnnlab import models
from rnnlab.errors import InputError, InputTypeError
from rnnlab.files import atomic_hdf5
from rnnlab.hdf5_objects import check_readable, describe_hdf5_error
from rnnlab.importing import is_built_in
from rnnlab.models.base import Model
from rnnlab.ops import ops_for, ops_on
from rnnlab.parameters import Parameters
from rnnlab.reading import PathLike
from rnnlab.training.run_directory import checkpoint_of
from rnnlab.types import Array, Shapes

_FORMAT = "rnnlab checkpoint 3"
# Format 1 had all parameters in one array; format 2 had no checksums.
_FORMER_FORMATS = ("rnnlab checkpoint 1", "rnnlab checkpoint 2")
_LIBRARY = tuple(getattr(models, name) for name in models.__all__)
_CHUNK_BYTES = 1 << 30  # HDF5 allows chunks of less than 4 GiB
_JSON = {
    "model": (dict,),
    "vocabulary": (list, NoneType),
    "config": (dict, NoneType),
    "fingerprint": (dict, NoneType),
    "history": (list,),
    "solver": (dict,),
}


class CheckpointError(InputError):
    """A checkpoint is damaged or does not fit. The message names file, field, found and expected."""

    def __init__(self, path: PathLike, field: str, found: object, expected: object) -> None:
        super().__init__(f"{os.fspath(path)}: {field}: found {found}, expected {expected}")


class FormerFormatError(CheckpointError):
    """A checkpoint is intact, but an earlier version of rnnlab wrote it in another format."""


@dataclass
class Checkpoint:
    """The content of a checkpoint file.

    Attributes
    ----------
    parameters : Parameters
    model : dict
        ``class``, the name of the model's class, and ``config``, the argument of its ``from_config``.
    vocabulary : list of str, or None
        The words in the order of their tokens.
    config : dict or None
        The configuration of the run.
    preprocessing : dict of str to array or JSON value
        How to prepare new inputs for the model, from the data's ``preprocessing()``: the scaling of features,
        the name of the tokenizer, the order of pixels.
    fingerprint : dict or None
        Sizes and hashes of the training data, from the data's ``fingerprint()``.
    optimiser : dict
        The state of the update rule.
    average : (P,) array, or None
        The moving average of the parameters.
    state : sequence of arrays
        The model's state at the end of the last batch, at which the next one begins: of running text.
    losses : (iterations,) float64
    history : list of dict
        One entry per epoch.
    solver : dict
        The solver's options, and the state of its generators, data order, schedule and monitor.
    version : str
        The version of rnnlab that wrote the file.
    """

    parameters: Parameters
    model: dict[str, Any]
    vocabulary: list[str] | None = None
    config: dict[str, Any] | None = None
    preprocessing: dict[str, Any] = field(default_factory=dict)
    fingerprint: dict[str, Any] | None = None
    optimiser: dict[str, Any] = field(default_factory=lambda: {"steps": 0})
    average: Any = None
    state: Sequence[Array] = ()
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))
    history: list[dict[str, Any]] = field(default_factory=list)
    solver: dict[str, Any] = field(default_factory=dict)
    version: str = rnnlab.__version__

    def __repr__(self) -> str:
        size = f"{self.parameters.flat.size:,} {self.parameters.flat.dtype} parameters"
        steps = f"{len(self.history)} epochs, {len(self.losses):,} iterations"
        return f"Checkpoint({self.model['class']}, {size}; {steps}; rnnlab {self.version})"


def describe_model(model: Any) -> dict[str, Any]:
    """The entries from which :func:`load_model` rebuilds a model: ``class`` and ``config``.

    Raises
    ------
    TypeError
        If the ``config`` of a subclass of one of rnnlab's models are not the arguments of its constructor.
    """
    _check_config(model)
    return {"class": type(model).__name__, "config": json.loads(_json_text("model", model.config()))}


def _check_config(model: Any) -> None:
    """Refuse a model whose ``config`` has not all arguments of its constructor, or others."""
    own = type(model)
    if not isinstance(model, Model) or is_built_in(own):
        return
    parameters = inspect.signature(own).parameters.values()
    named = {each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
    config, takes_all = set(model.config()), any(each.kind is each.VAR_KEYWORD for each in parameters)
    lost, refused = named - config - {"rng", "device"}, set() if takes_all else config - named
    if lost or refused:
        differ = f"leaves out {', '.join(sorted(lost))}" if lost else f"has {', '.join(sorted(refused))}"
        raise InputTypeError(
            f"{own.__name__}: config() {differ}, expected the arguments of __init__ by name, from which a "
            'model is loaded: def config(self): return {**super().config(), "argument": self.argument}'
        )


def save_checkpoint(
    path: PathLike, checkpoint: Checkpoint, *, before_rename: Callable[[], None] | None = None
) -> None:
    """Write a checkpoint. At every moment ``path`` is the complete previous file or the complete new one.

    Parameters
    ----------
    path : path
    checkpoint : Checkpoint
    before_rename : callable, optional
        Called when the new file is complete under its temporary name.

    Raises
    ------
    WriteError
        If it cannot be written, because the disk is full for example. The previous file stays.
    TypeError
        If ``path`` is no path, or the history or another field has a value that JSON cannot represent. The
        previous file stays.
    """
    _check_path("save_checkpoint", path)
    with atomic_hdf5(path, before_rename=before_rename, libver="latest") as file:
        file.attrs["format"] = np.bytes_(_FORMAT)
        file.attrs["rnnlab_version"] = np.bytes_(checkpoint.version)
        _write_parameters(file, checkpoint.parameters)
        preprocessing = file.create_group("preprocessing")
        for name, value in checkpoint.preprocessing.items():
            is_array = isinstance(value, np.ndarray)
            _write(preprocessing, name, value if is_array else np.bytes_(_json_text("preprocessing", value)))
        optimiser = file.create_group("optimiser")
        for name, value in checkpoint.optimiser.items():
            if name == "steps":
                optimiser.attrs[name] = value
            else:
                _write(optimiser, name, _on_host(value))
        if checkpoint.average is not None:
            _write(file, "average", _on_host(checkpoint.average))
        if checkpoint.state:
            state = file.create_group("state")
            for number, array in enumerate(checkpoint.state):
                _write(state, str(number), _on_host(array))
        _write(file, "losses", np.asarray(checkpoint.losses, np.float64))
        for name in _JSON:
            _write(file, name, np.bytes_(_json_text(name, getattr(checkpoint, name))))


def _json_text(name: str, value: Any) -> str:
    """A field as JSON text. NumPy's numbers, which a callback may put into the history, become Python's."""

    def plain(part: Any) -> Any:
        if isinstance(part, np.generic):
            return part.item()
        raise InputTypeError(f"checkpoint: {name} holds {part!r}, expected texts, numbers, lists and tables")

    return json.dumps(value, default=plain)


def _write_parameters(file: h5py.File, parameters: Parameters) -> None:
    group = file.create_group("parameters")
    group.attrs["index"] = np.bytes_(json.dumps(list(parameters.shapes.items())))
    on_host = parameters.on(_on_host)  # one transfer from a GPU
    for name in on_host:
        _write(group, name, on_host[name])


def _write(group: h5py.Group, name: str, data: np.ndarray | np.bytes_) -> None:
    """Write a dataset with a checksum, which HDF5 has for chunks and for data in an object's header."""
    array = np.asarray(data)
    if array.ndim == 0 and array.nbytes > 1024:
        array = array[None]  # long JSON
    if array.ndim == 0:
        in_header = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        in_header.set_layout(h5py.h5d.COMPACT)
        kind, scalar = h5py.h5t.py_create(array.dtype, logical=True), h5py.h5s.create(h5py.h5s.SCALAR)
        h5py.Dataset(h5py.h5d.create(group.id, name.encode(), kind, scalar, in_header))[()] = array
    elif array.size == 0:
        group.create_dataset(name, data=array)
    else:
        rows = max(1, _CHUNK_BYTES * len(array) // array.nbytes)
        chunks = (min(rows, len(array)), *array.shape[1:])
        group.create_dataset(name, data=array, chunks=chunks, fletcher32=True)


def _on_host(array: Any) -> np.ndarray:
    return ops_for(array).asnumpy(array)


def load_checkpoint(path: PathLike) -> Checkpoint:
    """Read a checkpoint.

    Parameters
    ----------
    path : path
        A file or a run directory. In a directory, the best checkpoint is read, or the last if there is none.

    Raises
    ------
    FileNotFoundError
        If there is no such file, or no checkpoint in the directory.
    OSError
        If it may be intact, but cannot be read now: permission is denied, for example.
    CheckpointError
        If it is not HDF5, truncated, not a checkpoint of this version, or a field is missing or damaged.
    TypeError
        If ``path`` is no path.
    """
    path = _file_of("load_checkpoint", path)
    with _open(path) as file:
        optimiser = _get(file, "optimiser", h5py.Group)
        steps = optimiser.attrs.get("steps")
        if not isinstance(steps, np.integer) or steps < 0:
            raise _error(optimiser, "attribute steps", steps, "a number of updates")
        return Checkpoint(
            parameters=_read_parameters(file),
            preprocessing=_read_preprocessing(file),
            optimiser={"steps": int(steps)} | {name: _values(optimiser, name) for name in optimiser},
            average=_values(file, "average") if "average" in file else None,
            state=_read_state(file) if "state" in file else (),
            losses=_read_losses(file),
            version=file.attrs["rnnlab_version"].decode(),
            **{name: _read_json(file, name, kinds) for name, kinds in _JSON.items()},
        )


def _read_state(file: h5py.File) -> list[np.ndarray]:
    group = _get(file, "state", h5py.Group)
    return [_values(group, str(number)) for number in range(len(group))]


def save_model(path: PathLike, model: Any) -> None:
    """Write a checkpoint with nothing but a model, from which :func:`load_model` rebuilds it.

    Parameters
    ----------
    path : path
        An existing file is replaced, once the new one is complete.
    model : Model

    Raises
    ------
    WriteError
        If it cannot be written. The previous file stays.
    TypeError
        If ``path`` is no path or ``model`` no model; as :func:`describe_model`.
    """
    _check_path("save_model", path)
    if not hasattr(model, "params"):
        raise InputTypeError(
            f"save_model: model is a {type(model).__name__} without params, expected a model: "
            "save_model(path, model)"
        )
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))


def load_model(path: PathLike, known: Mapping[str, Any] | None = None) -> Any:
    """Rebuild the model of a checkpoint, with its parameters.

    Parameters
    ----------
    path : path
        A checkpoint or a run directory, as in :func:`load_checkpoint`.
    known : mapping of str to class, optional
        Classes by name in addition to those of :mod:`rnnlab.models`; each has ``from_config(config)``.

    Raises
    ------
    OSError, CheckpointError
        As :func:`load_checkpoint`; also if the class is unknown or has other parameters.
    """
    path = _file_of("load_model", path)
    with _open(path) as file:
        checkpoint = Checkpoint(_read_parameters(file), _read_json(file, "model", _JSON["model"]))
    return model_of(path, checkpoint, known)


def model_of(path: PathLike, checkpoint: Checkpoint, known: Mapping[str, Any] | None = None) -> Any:
    """Rebuild the model of a checkpoint that was read from ``path``; ``known`` as in :func:`load_model`.

    Raises
    ------
    CheckpointError
        If the class is unknown or has other parameters.
    """
    parameters, described = checkpoint.parameters, checkpoint.model
    if known is not None and not isinstance(known, Mapping):
        raise InputTypeError(f"load_model: known is {known!r}, expected a mapping of names to classes")
    classes = {each.__name__: each for each in _LIBRARY} | dict(known or {})
    name = described.get("class")
    if name not in classes:
        raise CheckpointError(
            path,
            "model: class",
            repr(name),
            f"one of {', '.join(classes)}, or a class in load_model(known=...)",
        )
    made: Any = classes[name]

    def check(shapes: Shapes) -> None:
        """Before memory is allocated, because a damaged size could ask for all of it."""
        found = parameters.shapes
        if made not in _LIBRARY:  # it may add parameters of its own later
            found = {name: found[name] for name in shapes if name in found}
        check_shapes(path, found, shapes)

    ops_on("cpu")  # a mistake in the variables that choose the kernels is none of the file
    checks = getattr(made.from_config, "__func__", None) is Model.from_config.__func__  # type: ignore[attr-defined]
    try:
        model = made.from_config(described["config"], **({"check_shapes": check} if checks else {}))
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            path, "model: config", f"{type(error).__name__}: {error}", f"a {name}"
        ) from error
    _assign(path, parameters, model.params)
    return model


def load_parameters(path: PathLike, model: Any) -> None:
    """Copy the parameters of a checkpoint into ``model.params``, converted to its dtype.

    Raises
    ------
    OSError, CheckpointError
        As :func:`load_checkpoint`; also if names or shapes differ from those of the model.
    """
    path = _file_of("load_parameters", path)
    with _open(path) as file:
        parameters = _read_parameters(file)
    _assign(path, parameters, model.params)


def _assign(path: PathLike, source: Parameters, target: Parameters) -> None:
    check_shapes(path, source.shapes, target.shapes)
    for name in target:
        target[name] = source[name]


def check_shapes(path: PathLike, found: Shapes, expected: Shapes) -> None:
    """Raise CheckpointError unless the parameters of a checkpoint have the names and shapes of a model's."""
    for name, shape in expected.items():
        if name not in found:
            raise CheckpointError(path, "parameters", ", ".join(found), f"one called {name}")
        if found[name] != shape:
            raise CheckpointError(path, f"parameters: {name}", f"shape {found[name]}", f"{shape}")
    for name in found:
        if name not in expected:
            raise CheckpointError(path, "parameters", name, f"only {', '.join(expected)}")


def _check_path(function: str, path: Any) -> None:
    """Raise TypeError if ``path`` is no path, such as an argument in another place."""
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(
            f"{function}: path is a {type(path).__name__}, expected the path of a checkpoint"
        )


def _file_of(function: str, path: PathLike) -> PathLike:
    """The file of a checkpoint, or of a run directory."""
    _check_path(function, path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)}: no such checkpoint")
    return checkpoint_of(path) if os.path.isdir(path) else path


@contextmanager
def _open(path: PathLike) -> Iterator[h5py.File]:
    """Open a checkpoint. Errors of HDF5 become a CheckpointError.

    A lock is not needed, since a checkpoint is replaced as a whole.
    """
    try:
        with h5py.File(path, "r", locking=False) as file:
            found = file.attrs.get("format")
            if found in map(np.bytes_, _FORMER_FORMATS):
                expected = f"{_FORMAT}: an earlier version of rnnlab wrote this file, train the model again"
                raise FormerFormatError(path, "attribute format", found.decode(), expected)
            if found != np.bytes_(_FORMAT):
                raise CheckpointError(path, "attribute format", found, _FORMAT)
            if "rnnlab_version" not in file.attrs:
                raise CheckpointError(path, "attribute rnnlab_version", "nothing", "a version")
            yield file
    except CheckpointError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:  # h5py raises any of these
        check_readable(path, error)
        found = describe_hdf5_error(error, path)
        raise CheckpointError(path, "file", found, "a whole checkpoint") from error


def _error(group: h5py.Group, name: str, found: object, expected: object) -> CheckpointError:
    """The error of an object or an attribute in ``group``."""
    field = f"{group.name}/{name}".strip("/").replace("/", ": ")
    return CheckpointError(group.file.filename, field, found, expected)


def _get(group: h5py.Group, name: str, kind: type) -> Any:
    """A group or a dataset in ``group``."""
    found = None
    if name in group:
        try:
            found = group[name]
        except KeyError as error:
            raise _error(group, name, describe_hdf5_error(error), "a whole object") from None
    if not isinstance(found, kind):
        raise _error(group, name, "nothing" if found is None else found, f"an HDF5 {kind.__name__}")
    return found


def _values(group: h5py.Group, name: str) -> Any:
    """The values of a dataset in ``group``."""
    dataset = _get(group, name, h5py.Dataset)
    try:
        return dataset[()]
    except OSError as error:
        raise _damaged(group, name, error) from None


def _damaged(group: h5py.Group, name: str, error: OSError) -> CheckpointError:
    """The error of a dataset whose values do not match its checksum; OSError if they cannot be read now."""
    check_readable(group.file.filename, error)
    return _error(group, name, f"damaged values ({error})", "those that were written")


def _read_json(group: h5py.Group, name: str, kinds: tuple[type, ...]) -> Any:
    text = _values(group, name)
    expected = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(text, np.ndarray) and text.dtype.kind == "S" and text.shape == (1,):
        text = text[0]
    try:
        value = json.loads(text)
    except (TypeError, ValueError) as error:
        raise _error(group, name, f"no JSON ({error})", f"{expected} as JSON") from None
    if not isinstance(value, kinds):
        raise _error(group, name, f"{type(value).__name__} as JSON", expected)
    return value


def _read_losses(file: h5py.File) -> np.ndarray:
    losses = _get(file, "losses", h5py.Dataset)
    if losses.dtype.kind != "f" or losses.ndim != 1:
        raise _error(file, "losses", f"{losses.dtype} {losses.shape}", "floats in one dimension")
    return _values(file, "losses")


def _read_preprocessing(file: h5py.File) -> dict[str, Any]:
    group = _get(file, "preprocessing", h5py.Group)
    kinds = (dict, list, str, int, float, NoneType)
    read: dict[str, Any] = {}
    for name in group:
        is_json = _get(group, name, h5py.Dataset).dtype.kind == "S"
        read[name] = _read_json(group, name, kinds) if is_json else _values(group, name)
    return read


def _read_parameters(file: h5py.File) -> Parameters:
    group = _get(file, "parameters", h5py.Group)
    try:
        shapes = {str(name): tuple(map(int, shape)) for name, shape in json.loads(group.attrs["index"])}
    except (KeyError, TypeError, ValueError) as error:
        raise _error(group, "attribute index", repr(error), "[[name, shape], ...]") from None
    datasets = {name: _get(group, name, h5py.Dataset) for name in shapes}
    dtypes = {dataset.dtype for dataset in datasets.values()}
    dtype = dtypes.pop() if len(dtypes) == 1 else np.dtype(np.float32)
    for name, dataset in datasets.items():
        if dataset.shape != shapes[name] or dataset.dtype != dtype or dtype.kind != "f":
            found, expected = f"{dataset.dtype} {dataset.shape}", f"{shapes[name]}, as the index says"
            raise _error(group, name, found, f"floats {expected}")
    parameters = Parameters(shapes, dtype)
    for name, dataset in datasets.items():
        if dataset.size:
            try:
                dataset.read_direct(parameters[name])
            except OSError as error:
                raise _damaged(group, name, error) from None
    return parameters
