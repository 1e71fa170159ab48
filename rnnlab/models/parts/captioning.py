"""The encoder and the decoder that the options of a captioning model choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from rnnlab.models.parts.encoders import ImageVectorEncoder, InitialStateEncoder, RegionEncoder

ImageInput: TypeAlias = Literal["initial_state", "first_input", "every_step", "second_layer"]
StateActivation: TypeAlias = Literal["none", "tanh"]

IMAGE_INPUTS = get_args(ImageInput)


def build_encoder(
    num_states: int, decoder_states: int, options: Mapping[str, Any]
) -> InitialStateEncoder | ImageVectorEncoder | RegionEncoder:
    """The encoder of the image."""
    dropout = options["feature_dropout"]
    if options["image_input"] == "initial_state":
        global_dim, attends = options["global_dim"], options["attention"]
        initial_state = InitialStateEncoder(
            global_dim or options["input_dim"],
            options["hidden_dim"],
            num_states,
            activation=options["state_activation"],
            project_cell=options["project_cell"],
            dropout=0.0 if attends and not global_dim else dropout,
        )
        return RegionEncoder(initial_state, dropout=dropout) if attends else initial_state
    return ImageVectorEncoder(
        options["input_dim"], options["wordvec_dim"], options["hidden_dim"], decoder_states, dropout=dropout
    )
