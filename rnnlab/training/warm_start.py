"""Warm start: copy the parameters of a checkpoint that a model has by the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rnnlab.ops import ops_for
from rnnlab.reading import PathLike
from rnnlab.training.checkpoint import CheckpointError, load_checkpoint
from rnnlab.training.compatibility import check_words


@dataclass(frozen=True)
class WarmStart:
    """The result of :func:`warm_start`.

    Attributes
    ----------
    path : path
        The checkpoint.
    loaded : tuple of str
        The parameters that were copied.
    widened : tuple of str
        Parameters with more rows than in the checkpoint: the first rows were copied.
    new : tuple of str
        Parameters of the model that the checkpoint lacks. They are unchanged.
    left : tuple of str
        Parameters of the checkpoint that the model lacks.
    """

    path: PathLike
    loaded: tuple[str, ...]
    widened: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"Warm start from {self.path}: {len(self.loaded)} parameters loaded"]
        for label, names in (
            ("loaded into the first rows of", self.widened),
            ("new", self.new),
            ("left", self.left),
        ):
            if names:
                parts.append(f"{label} {', '.join(names)}")
        return "; ".join(parts) + "."


def warm_start(path: PathLike, model: Any) -> WarmStart:
    """Copy the parameters of a checkpoint into those of ``model`` that have the same names.

    A deep output over the contexts of source and target may begin as one over the source's alone, which are
    the first rows of its weight. All other parameters must have the checkpoint's shapes.

    Raises
    ------
    FileNotFoundError, CheckpointError
        As :func:`~rnnlab.training.load_checkpoint`; also if the vocabularies or the cells differ, if the
        shapes of a parameter do not fit, or if no parameter has the same name.
    """
    checkpoint = load_checkpoint(path)
    config = checkpoint.model.get("config", {})
    _check_same(path, config, model.config())
    source, target = checkpoint.parameters, model.params
    common = [name for name in target if name in source.shapes]
    may_widen = model.widened_from(config) if hasattr(model, "widened_from") else ()
    for name in common:
        found, wanted = source.shapes[name], target.shapes[name]
        is_part = name in may_widen and found[1:] == wanted[1:] and found[0] < wanted[0]
        if found != wanted and not is_part:
            expected = f"{wanted}, by the sizes of the model"
            raise CheckpointError(path, f"parameters: {name}", f"shape {found}", expected)
    if not common:
        raise CheckpointError(path, "parameters", ", ".join(source.shapes), f"some of {', '.join(target)}")
    for name in common:
        rows = target[name][: source.shapes[name][0]]
        rows[...] = ops_for(rows).asarray(source[name], dtype=rows.dtype)
    widened = tuple(name for name in common if source.shapes[name] != target.shapes[name])
    return WarmStart(
        path,
        tuple(name for name in common if name not in widened),
        widened,
        tuple(name for name in target if name not in source.shapes),
        tuple(name for name in source.shapes if name not in target.shapes),
    )


def _check_same(path: PathLike, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Check what the places in a parameter mean: a row belongs to a word, a column to a gate of the cell."""
    cells = found.get("cell_type"), wanted.get("cell_type")
    if None not in cells and cells[0] != cells[1]:
        raise CheckpointError(path, "model: cell_type", repr(cells[0]), f"{cells[1]!r}, as the model has")
    for name in ("source_word_to_idx", "word_to_idx"):
        if name in found and name in wanted:
            check_words(path, f"model: {name}", found[name], wanted[name], "model")
