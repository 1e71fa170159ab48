"""The encoder and the decoder that the options of a translation model choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.models.parts.decoders import AttentiveDecoder, RecurrentDecoder, build_attentive_decoder
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.models.parts.reviewer import NoReviewer, Reviewer
from rnnlab.models.parts.token_encoder import TokenEncoder


def memory_dim(options: Mapping[str, Any]) -> int:
    """The size of a vector of the encoder's memory: the states of its directions side by side."""
    return _encoder_dim(options) * (2 if options["bidirectional"] else 1)


def build_encoder(
    recurrence: Recurrence, vocabulary_size: int, decoder_states: int, options: Mapping[str, Any]
) -> TokenEncoder:
    """The encoder of the source."""
    return TokenEncoder(
        recurrence,
        vocabulary_size,
        options["wordvec_dim"],
        _encoder_dim(options),
        decoder_states=decoder_states,
        decoder_dim=options["hidden_dim"],
        **{name: options[name] for name in ("num_layers", "bidirectional", "word_dropout", "layer_dropout")},
    )


def build_decoder(
    recurrence: Recurrence, reviewer: Reviewer | NoReviewer, options: Mapping[str, Any]
) -> AttentiveDecoder | RecurrentDecoder:
    """The decoder: one that attends to the source, to its own past states or to both, or a plain one."""
    if options["attention"] or options["target_attention"]:
        return build_attentive_decoder(recurrence, reviewer.memory_dim, options)
    return RecurrentDecoder(recurrence, options["wordvec_dim"], options["hidden_dim"])


def _encoder_dim(options: Mapping[str, Any]) -> int:
    """The units of a direction of the encoder."""
    return options["encoder_dim"] or options["hidden_dim"]
