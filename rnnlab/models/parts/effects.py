"""Options that would have no effect in a model, because what they belong to is absent: an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.errors import InputError
from rnnlab.models.parts.initialisation import INIT_SCALE

_RECONSTRUCTIONS = (
    "reconstruction",
    "reconstructor_dim",
    "encoder_reconstruction",
    "encoder_reconstructor_dim",
)


def check_effects(model: str, options: Mapping[str, Any]) -> None:
    """Check that every option of a model that differs from its default has an effect.

    Parameters
    ----------
    model : str
        Errors begin with it.
    options : mapping of str to any
        The options of a model by name, or some of them.

    Raises
    ------
    ValueError
        If an option has no effect. The error names it and what it needs.
    """
    for name in ("global_dim", "selector", "doubly_stochastic"):
        if options.get(name) and not options["attention"]:
            raise InputError(
                f"{model}: {name} is {options[name]}, which needs attention: set it to 'additive', 'dot' or "
                "'bilinear'"
            )
    if options.get("attention_dim") is not None:
        _check_attention_dim(model, options)
    if options.get("detach_target") and not any(map(options.get, _RECONSTRUCTIONS)):
        raise InputError(
            f"{model}: detach_target is True, which needs an ARNet: set reconstruction or reconstructor_dim"
        )
    if options.get("layer_dropout") and options["num_layers"] == 1:
        raise InputError(
            f"{model}: layer_dropout is {options['layer_dropout']}, which needs num_layers of at least 2: "
            "it is dropout between layers"
        )
    if options["init_scale"] != INIT_SCALE and options["initialisation"] != "uniform":
        raise InputError(
            f"{model}: init_scale is {options['init_scale']}, which needs initialisation 'uniform', found "
            f"{options['initialisation']!r}"
        )


def _check_attention_dim(model: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError if no attention of the model has additive scores. Those of a reviewer always are."""
    attention, given = options["attention"], f"{model}: attention_dim is {options['attention_dim']}"
    if attention == "additive" or dict(options["reviewer"] or {}).get("blocks"):
        return
    if attention:
        raise InputError(f"{given}, which needs additive scores, found attention {attention!r}: leave it out")
    if not options["target_attention"]:
        raise InputError(f"{given}, which needs attention or target_attention: set one, or leave it out")
