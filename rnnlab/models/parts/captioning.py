"""The encoder and the decoder that the options of a captioning model choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from rnnlab.models.parts.decoders import (
    AttentiveDecoder,
    FactoredDecoder,
    FirstInputDecoder,
    RecurrentDecoder,
    build_attentive_decoder,
)
from rnnlab.models.parts.encoders import ImageVectorEncoder, InitialStateEncoder, RegionEncoder
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.reviewer import NoReviewer, Reviewer

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


def build_decoder(
    recurrence: Recurrence, reviewer: Reviewer | NoReviewer, options: Mapping[str, Any]
) -> RecurrentDecoder | FirstInputDecoder | FactoredDecoder | AttentiveDecoder:
    """The decoder: one that attends, or the one for ``image_input``."""
    if options["attention"] or options["target_attention"]:
        return build_attentive_decoder(recurrence, reviewer.memory_dim, options)
    image_input, word_dim, hidden_dim = (
        options[name] for name in ("image_input", "wordvec_dim", "hidden_dim")
    )
    if image_input == "first_input":
        return FirstInputDecoder(recurrence, word_dim, hidden_dim)
    if image_input == "every_step":
        return RecurrentDecoder(recurrence, word_dim, hidden_dim, image_dim=word_dim)
    if image_input == "second_layer":
        return FactoredDecoder(recurrence, word_dim, hidden_dim, image_dim=word_dim)
    return RecurrentDecoder(recurrence, word_dim, hidden_dim)
