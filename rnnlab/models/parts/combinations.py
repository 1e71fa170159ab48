"""Errors for combinations of a model's options that contradict each other, or leave one without effect.

The constructors of the models check their options here, and so do recipes, before the data are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.errors import InputError
from rnnlab.layers.recurrent.cell import cell_for, cell_name
from rnnlab.models.parts.decoders import num_decoder_layers
from rnnlab.models.parts.initialisation import INIT_SCALE, check_forget_bias
from rnnlab.models.parts.reviewer import ReviewerOptions
from rnnlab.models.parts.token_encoder import memory_dim

_RECONSTRUCTIONS = (
    "reconstruction",
    "reconstructor_dim",
    "encoder_reconstruction",
    "encoder_reconstructor_dim",
)
_SCORES = "'additive', 'dot' or 'bilinear'"


def check_combinations(model: str, options: Mapping[str, Any]) -> None:
    """Check that the options of a model agree, and that each one that differs from its default has an effect.

    Parameters
    ----------
    model : str
        Errors begin with it.
    options : mapping of str to any
        All options of a model by name. A class may lack some.

    Raises
    ------
    ValueError, TypeError
        If two options contradict each other, or an option has no effect. The error names it and what it
        needs.
    """
    reviewer = ReviewerOptions.of(model, options.get("reviewer"))
    for name in ("global_dim", "selector", "doubly_stochastic"):
        if options.get(name) and not options["attention"]:
            raise InputError(f"{model}: {name} is {options[name]}, which needs attention {_SCORES}")
    if options.get("target_delay") is not None and not options["target_attention"]:
        raise InputError(
            f"{model}: target_delay is {options['target_delay']}, which needs target_attention, found False"
        )
    _check_reviewer(model, reviewer, options)
    if options.get("attention_dim") is not None:
        _check_attention_dim(model, reviewer, options)
    _check_dot(model, reviewer, options)
    _check_image_input(model, reviewer, options)
    if options.get("detach_target") and not any(map(options.get, _RECONSTRUCTIONS)):
        raise InputError(
            f"{model}: detach_target is True, which needs an ARNet: set reconstruction or reconstructor_dim"
        )
    _check_layers(model, options)
    _check_tied(model, options)
    if options["init_scale"] != INIT_SCALE and options["initialisation"] != "uniform":
        raise InputError(
            f"{model}: init_scale is {options['init_scale']}, which needs initialisation 'uniform', found "
            f"{options['initialisation']!r}"
        )
    if options.get("forget_bias"):
        cell = cell_for(model, options["cell_type"], "cell_type")
        check_forget_bias(model, cell, options["forget_bias"])


def has_dropout(options: Mapping[str, Any]) -> bool:
    """Whether a model with these options has any dropout, zoneout or DropConnect."""
    return any(
        has_dropout(value) if isinstance(value, Mapping) else isinstance(value, float) and value > 0
        for name, value in options.items()
        if isinstance(value, Mapping) or "dropout" in name or "zoneout" in name
    )


def _check_layers(model: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError if there are too few layers for the image, or for dropout between layers."""
    if options.get("image_input") == "second_layer" and options.get("decoder_layers") == 1:
        raise InputError(
            f"{model}: decoder_layers is 1, expected at least 2 with image_input 'second_layer', whose "
            "image needs a second layer: increase or remove decoder_layers"
        )
    counts = {"num_layers": options.get("num_layers"), "decoder_layers": num_decoder_layers(options)}
    counts = {name: count for name, count in counts.items() if name in options}
    if options.get("layer_dropout") and set(counts.values()) == {1}:
        raise InputError(
            f"{model}: layer_dropout is {options['layer_dropout']}, which needs {' or '.join(counts)} of at "
            "least 2: it is dropout between layers"
        )


def _check_tied(model: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError if word vectors cannot be the weight of the scores, because of their size."""
    if not options.get("tied_embeddings") or options["output"] == "deep":
        return
    if options["output"] == "concat":
        raise InputError(
            f"{model}: tied_embeddings is True, expected False with output 'concat', whose weight "
            "has rows for the word and the contexts as well: use output 'linear' or 'deep'"
        )
    if options["hidden_dim"] != options["wordvec_dim"]:
        raise InputError(
            f"{model}: tied_embeddings is True, which needs hidden_dim and wordvec_dim to be equal with "
            f"output 'linear', found {options['hidden_dim']} and {options['wordvec_dim']}: set "
            "them equal, or use output 'deep'"
        )


def _check_reviewer(model: str, reviewer: ReviewerOptions, options: Mapping[str, Any]) -> None:
    """Raise ValueError if a reviewer or its loss lacks what it needs, or has an option without effect."""
    if reviewer.blocks is None:
        for name in ("discriminative", "discriminative_words"):
            if options.get(name):
                raise InputError(
                    f"{model}: {name} is {options[name]}, which needs the thought vectors of a reviewer: "
                    "set reviewer.blocks"
                )
        return
    if not options["attention"]:
        raise InputError(f"{model}: reviewer.blocks is {reviewer.blocks}, which needs attention {_SCORES}")
    for name, size, joined in (("inter", "blocks", "blocks"), ("intra", "steps", "the steps of a block")):
        if not getattr(reviewer, name) and getattr(reviewer, size) == 1:
            raise InputError(
                f"{model}: reviewer.{name} is False, which needs reviewer.{size} of at least 2: it removes "
                f"the connections between {joined}"
            )


def _check_attention_dim(model: str, reviewer: ReviewerOptions, options: Mapping[str, Any]) -> None:
    """Raise ValueError if no attention of the model has additive scores. Those of a reviewer always are."""
    attention, given = options.get("attention"), f"{model}: attention_dim is {options['attention_dim']}"
    if attention == "additive" or reviewer.blocks:
        return
    if attention:
        raise InputError(f"{given}, which needs attention 'additive', found {attention!r}: remove it")
    if not options["target_attention"]:
        raise InputError(
            f"{given}, which needs attention or target_attention: set one of these, or remove attention_dim"
        )
    if options.get("target_delay") is not None:
        raise InputError(f"{given}, which has no effect with target_delay and no attention: remove it")


def _check_dot(model: str, reviewer: ReviewerOptions, options: Mapping[str, Any]) -> None:
    """Raise ValueError if the score "dot" cannot compare the hidden state with the memory.

    The memory of a captioning model has ``input_dim``, which a recipe does not have: the data decide it.
    """
    if options.get("attention") != "dot" or reviewer.blocks:
        return
    size = memory_dim(options) if "bidirectional" in options else options.get("input_dim")
    if size not in (None, options["hidden_dim"]):
        raise InputError(
            f"{model}: attention is 'dot', which needs hidden_dim and the memory's size to be equal, found "
            f"{options['hidden_dim']} and {size}: use 'additive' or 'bilinear'"
        )


def _check_image_input(model: str, reviewer: ReviewerOptions, options: Mapping[str, Any]) -> None:
    """Raise ValueError if an option of the decoder or of its initial state does not fit ``image_input``."""
    image_input = options.get("image_input", "initial_state")
    if image_input != "initial_state":
        for name in ("attention", "target_attention"):
            if options[name]:
                raise InputError(
                    f"{model}: image_input is {image_input!r}, expected 'initial_state' with {name}"
                )
        for name, default in (("state_activation", "none"), ("project_cell", False)):
            if options[name] != default:
                raise InputError(
                    f"{model}: {name} is {options[name]!r}, expected {default!r} with image_input "
                    f"{image_input!r}, because the state then starts at zero"
                )
    if options.get("project_cell") and not reviewer.blocks:  # the LSTMs of a reviewer have a cell state
        cell = cell_for(model, options["cell_type"], "cell_type")
        if cell.num_states == 1:
            raise InputError(
                f"{model}: project_cell is True, but cell {cell_name(cell)!r} has no cell state, expected "
                "False"
            )
