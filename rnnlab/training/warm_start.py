"""Warm start: copy those parameters of a checkpoint whose names a model has, too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rnnlab.models.parts.decoders import attended, num_decoder_layers
from rnnlab.ops import ops_for
from rnnlab.reading import PathLike
from rnnlab.training.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from rnnlab.training.compatibility import check_data, check_words


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
    other_data : str or None
        The first difference in how the data are prepared, such as their scaling or the order of pixels.
    """

    path: PathLike
    loaded: tuple[str, ...]
    widened: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]
    other_data: str | None = None

    def __str__(self) -> str:
        parts = [f"Warm start from {self.path}: {len(self.loaded)} parameters loaded"]
        for label, names in (
            ("loaded into the first rows of", self.widened),
            ("new", self.new),
            ("left", self.left),
        ):
            if names:
                parts.append(f"{label} {', '.join(names)}")
        said = "; ".join(parts) + "."
        if self.other_data is None:
            return said
        return f"{said}\nThe data are not prepared as the checkpoint's: {self.other_data}."


def warm_start(path: PathLike, model: Any, data: Any = None) -> WarmStart:
    """Copy the parameters of a checkpoint into those of ``model`` that have the same names.

    With ``data``, on which the model will train, the result says whether they are prepared as those of the
    checkpoint. Other data are not an error: the model may learn them from these parameters.

    An output layer that reads contexts may start from one that reads none of them, or, if it reads those of
    source and target, from one that reads the source's context only: the first rows of the weight are copied.
    All other parameters must have the checkpoint's shapes.

    Raises
    ------
    FileNotFoundError, CheckpointError
        As :func:`~rnnlab.training.load_checkpoint`; also if the vocabularies, the cells, the outputs, the
        readouts, the activations of the initial state, the numbers of layers or the places where an image
        enters differ, if only one model has a reviewer, tied embeddings or classes, if both attend to an
        image and the initial states come from different vectors, if the output layers read other contexts,
        if the shapes of a parameter do not fit, or if no parameter has the same name.
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
        rows = target[name][: source.shapes[name][0]] if name in may_widen else target[name]
        rows[...] = ops_for(rows).asarray(source[name], dtype=rows.dtype)
    widened = tuple(name for name in common if source.shapes[name] != target.shapes[name])
    return WarmStart(
        path,
        tuple(name for name in common if name not in widened),
        widened,
        tuple(name for name in target if name not in source.shapes),
        tuple(name for name in source.shapes if name not in target.shapes),
        None if data is None else _difference(path, checkpoint, data),
    )


def _difference(path: PathLike, checkpoint: Checkpoint, data: Any) -> str | None:
    """How the preparation of data differs from that of the checkpoint's data, if it does."""
    try:
        check_data(path, checkpoint, data)
    except CheckpointError as error:
        return str(error).removeprefix(f"{os.fspath(path)}: ")
    return None


_ATTENTION = {
    (): "none",
    ("attention",): "attention to the source alone",
    ("target_attention",): "attention to the past states alone",
    ("attention", "target_attention"): "attention to the source and to the past states",
}


def _check_contexts(path: PathLike, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Check that the contexts that one output layer reads are the first ones of the other's, or unused."""
    outputs = {found.get("output"), wanted.get("output")}
    contexts, own = attended(found), attended(wanted)
    unused = not own and "concat" not in outputs  # a deep output has a weight of its own for the contexts
    if outputs & {"concat", "deep"} and contexts != own[: len(contexts)] and not unused:
        expected = f"{_ATTENTION[tuple(own)]}, as the model has"
        raise CheckpointError(path, "model: attention", _ATTENTION[tuple(contexts)], expected)


def _check_equal(path: PathLike, option: str, found: Any, wanted: Any) -> None:
    """Raise CheckpointError if an option of the model in the checkpoint is not that of the model."""
    if found != wanted:
        raise CheckpointError(path, f"model: {option}", repr(found), f"{wanted!r}, as the model has")


def _check_same(path: PathLike, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Check that parameters of the same name have the same meaning in both models.

    Rows belong to words, and columns to gates of the cell. ``Wx`` may read words or a sequence to classify.
    ``W_proj`` may map an image to a state or to a word vector; with attention to regions, it maps their mean
    or a global vector. ``W_vocab`` may read a state or a deep output, it or ``W_deep_z`` the contexts of one
    attention or the other, and ``source_`` parameters may attend to the source or to thought vectors.
    ``W_embed`` may be the weight of the scores as well.
    """
    for name in ("cell_type", "image_input", "output", "num_layers", "state_activation", "readout"):
        values = found.get(name), wanted.get(name)
        if None not in values:
            _check_equal(path, name, *values)
    if "word_to_idx" in found and "word_to_idx" in wanted:  # older checkpoints lack these options
        _check_equal(path, "decoder_layers", *map(num_decoder_layers, (found, wanted)))
        _check_equal(
            path, "tied_embeddings", *(bool(each.get("tied_embeddings")) for each in (found, wanted))
        )
    if "reviewer" in found and "reviewer" in wanted:
        blocks = [dict(each["reviewer"] or {}).get("blocks") for each in (found, wanted)]
        if None in blocks:
            _check_equal(path, "reviewer: blocks", *blocks)
    classes = [each.get("num_classes") for each in (found, wanted)]
    if found and wanted and None in classes:
        _check_equal(path, "num_classes", *classes)
    if found.get("attention") and wanted.get("attention"):
        _check_equal(path, "global_dim", found.get("global_dim"), wanted.get("global_dim"))
    if found.get("target_attention") and wanted.get("target_attention"):
        _check_equal(path, "target_delay", found.get("target_delay"), wanted.get("target_delay"))
    _check_contexts(path, found, wanted)
    for name in ("source_word_to_idx", "word_to_idx"):
        if name in found and name in wanted:
            check_words(path, f"model: {name}", found[name], wanted[name], "model")
