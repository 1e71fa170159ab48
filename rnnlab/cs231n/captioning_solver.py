"""The course's ``captioning_solver``: rnnlab's solver with the course's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.cs231n.own_model import OwnModel
from rnnlab.data import CaptionData
from rnnlab.parameters import Parameters
from rnnlab.training import Solver

__all__ = ["CaptioningSolver"]


def CaptioningSolver(
    model: Any,
    data: Mapping[str, Any],
    *,
    update_rule: str = "sgd",
    optim_config: Mapping[str, float] | None = None,
    lr_decay: float = 1.0,
    batch_size: int = 100,
    num_epochs: int = 10,
    print_every: int = 10,
    verbose: bool = True,
    **options: Any,
) -> Solver:
    """A solver for the dictionary of ``load_coco_data``, without validation, like the course's.

    Parameters
    ----------
    model : CaptioningRNN, or a model with the course's interface
        The latter has ``params``, a dict of arrays, and ``loss(features, captions)``, which returns the loss
        and a dict of gradients; see :class:`~rnnlab.cs231n.own_model.OwnModel`.
    data : dict
    update_rule : str
        One of rnnlab's names, or the course's "sgd_momentum".
    optim_config : dict
    lr_decay : float
        The learning rate is multiplied by it after every epoch.
    batch_size, num_epochs, print_every, verbose
        As in :class:`~rnnlab.training.Solver`; the defaults are the course's.
    **options
        Any other option of :class:`~rnnlab.training.Solver`.
    """
    train = {key: value for key, value in data.items() if not key.startswith(("val_", "test_"))}
    params, solved = getattr(model, "params", None), model
    if params is not None and not isinstance(params, Parameters):
        solved = OwnModel(model)
    return Solver(
        solved,
        CaptionData.from_arrays(train),
        update_rule={"sgd_momentum": "momentum"}.get(update_rule, update_rule),
        optim_config=optim_config,
        schedule={"name": "exponential", "decay": lr_decay},
        batch_size=batch_size,
        num_epochs=num_epochs,
        print_every=print_every,
        verbose=verbose,
        **options,
    )
