"""The tables that :mod:`benchmarks.papers` makes: what is trained for each row, and what the columns are."""

from __future__ import annotations

from benchmarks.papers import (
    Column,
    Row,
    Table,
    Training,
    million_parameters,
    peak_megabytes,
    score,
    seconds_an_epoch,
)

_BLEU: dict[str, tuple[Column, str]] = {f"BLEU-{n}": (score(f"BLEU-{n}", 100), ".1f") for n in (1, 2, 3, 4)}
_CAPTIONS = _BLEU | {name: (score(name, 100), ".1f") for name in ("METEOR", "ROUGE-L", "CIDEr")}
_PERPLEXITY: dict[str, tuple[Column, str]] = {"perplexity": (score("perplexity"), ".2f")}
_COST: dict[str, tuple[Column, str]] = {
    "million parameters": (million_parameters, ".2f"),
    "seconds an epoch": (seconds_an_epoch, ".0f"),
}

# ---------------------------------------------------------------- Flickr8k

_LSTM = Training("flickr8k_lstm", "recipes/flickr8k_lstm.toml")
_SIMPLIFIED_GRU = Training(
    "flickr8k_simplified_gru",
    "recipes/flickr8k_lstm.toml",
    ("model.cell_type=simplified_gru", "model.project_cell=false"),
)
_SOFT_ATTENTION = Training("flickr8k_soft_attention", "recipes/flickr8k_soft_attention.toml")


def _val(beam: int) -> tuple[str, ...]:
    return ("--split", "val", "--beam", str(beam))


# ---------------------------------------------------------------- Multi30k


def _translators(variant: str) -> tuple[Training, ...]:
    """With two seeds: trained from the beginning, or trained on with or without attention to the target."""
    starts = [
        Training("multi30k_source_attention", "recipes/multi30k_source_attention.toml", seed=seed)
        for seed in (0, 1)
    ]
    if variant == "start":
        return tuple(starts)
    recipe = "recipes/multi30k_target_attention.toml"
    changes = {"target": (), "source": ("model.target_attention=false",)}[variant]
    name = {"target": "multi30k_target_attention", "source": "multi30k_source_attention_on"}[variant]
    return tuple(Training(name, recipe, changes, start.seed, start) for start in starts)


_TEST = ("--split", "test_2016_flickr", "--beam", "5")

# ---------------------------------------------------------------- the tables

TABLES = {
    "flickr8k": Table(
        "Flickr8k, validation, beam 3: a vector for each image, and soft attention to 7 x 7 (Xu et al. 2015)",
        (
            Row("LSTM 512, global features", (_LSTM,), _val(3)),
            Row("LSTM 512, soft attention", (_SOFT_ATTENTION,), _val(3)),
        ),
        _CAPTIONS | _PERPLEXITY | _COST,
    ),
    "cells": Table(
        "Flickr8k, validation, beam 1: LSTM and simplified GRU (Chen, Dong and Li 2016, table 2)",
        (
            Row("LSTM 512", (_LSTM,), _val(1)),
            Row("simplified GRU 512", (_SIMPLIFIED_GRU,), _val(1)),
        ),
        _BLEU | _PERPLEXITY | _COST | {"peak memory, MB": (peak_megabytes, ",.0f")},
    ),
    "beams": Table(
        "Flickr8k, validation, by the size of the beam (Chen, Dong and Li 2016, table 3)",
        tuple(
            Row(f"{label}, beam {beam}", (training,), _val(beam))
            for label, training in (("LSTM 512", _LSTM), ("soft attention", _SOFT_ATTENTION))
            for beam in (1, 5, 10)
        ),
        _BLEU,
    ),
    "multi30k": Table(
        "Multi30k English to German, test_2016_flickr, beam 5: attention to the target (Xia et al. 2017)",
        (
            Row("source attention", _translators("start"), _TEST),
            Row("trained on without target attention", _translators("source"), _TEST),
            Row("trained on with target attention", _translators("target"), _TEST),
        ),
        {"BLEU": (score("BLEU"), ".2f")} | _PERPLEXITY | _COST,
    ),
}
