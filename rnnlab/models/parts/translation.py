"""The encoder and the decoder that the options of a translation model choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.models.parts.decoders import AttentiveDecoder, RecurrentDecoder, check_dot
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
    word_dim, hidden_dim, attention = (options[name] for name in ("wordvec_dim", "hidden_dim", "attention"))
    if not attention and not options["target_attention"]:
        return RecurrentDecoder(recurrence, word_dim, hidden_dim)
    check_dot("Seq2Seq", options, reviewer.memory_dim)
    return AttentiveDecoder(
        recurrence,
        word_dim,
        hidden_dim,
        memory_dim=reviewer.memory_dim if attention else 0,
        attention_dim=options["attention_dim"] or hidden_dim,
        score=attention or "additive",
        target=options["target_attention"],
    )


def _encoder_dim(options: Mapping[str, Any]) -> int:
    """The units of a direction of the encoder."""
    return options["encoder_dim"] or options["hidden_dim"]
