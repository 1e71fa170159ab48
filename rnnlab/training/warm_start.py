"""Warm start: the parameters of one model from those of another that has some of the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rnnlab.ops import ops_for
from rnnlab.training.checkpoint import CheckpointError, PathLike, load_checkpoint


@dataclass(frozen=True)
class WarmStart:
    """What :func:`warm_start` did.

    Attributes
    ----------
    path : path
        The checkpoint.
    loaded : tuple of str
        Parameters that were copied.
    widened : tuple of str
        Those that have more rows than in the checkpoint: the first ones were copied.
    new : tuple of str
        Those of the model that the checkpoint lacks; they are as they were.
    left : tuple of str
        Those of the checkpoint that the model lacks.
    """

    path: PathLike
    loaded: tuple[str, ...]
    widened: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"Warm start from {self.path}: {len(self.loaded)} parameters loaded"]
        for said, names in (
            ("loaded into the first rows of", self.widened),
            ("new", self.new),
            ("left", self.left),
        ):
            if names:
                parts.append(f"{said} {', '.join(names)}")
        return "; ".join(parts) + "."


def warm_start(path: PathLike, model: Any) -> WarmStart:
    """Copy the parameters of a checkpoint into those of ``model`` that have the same names.

    A parameter that has more rows than the checkpoint's has its first rows overwritten: a deep output over a
    source's context and another one begins as that over the source's alone.

    Raises
    ------
    FileNotFoundError, CheckpointError
        As :func:`~rnnlab.training.load_checkpoint`; if the vocabularies differ, if a parameter of both has a
        shape that does not fit, or if no parameter has the same name.
    """
    checkpoint = load_checkpoint(path)
    _check_vocabularies(path, checkpoint.model.get("config", {}), model.config())
    source, target = checkpoint.parameters, model.params
    common = [name for name in target if name in source.shapes]
    for name in common:
        found, wanted = source.shapes[name], target.shapes[name]
        if len(found) != len(wanted) or found[1:] != wanted[1:] or found[:1] > wanted[:1]:
            raise CheckpointError(path, f"parameters: {name}", f"shape {found}", f"{wanted}, as the model's")
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


def _check_vocabularies(path: PathLike, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """The vocabularies that both models have are the same: a row of a parameter stands for the same word."""
    for name in ("source_word_to_idx", "word_to_idx"):
        if name in found and name in wanted and found[name] != wanted[name]:
            raise CheckpointError(
                path,
                f"model: {name}",
                f"{len(found[name]):,} words",
                f"the {len(wanted[name]):,} of the model",
            )
