"""The tables that :mod:`benchmarks.papers` makes: what is trained for each row, and what the columns are."""

from __future__ import annotations

from benchmarks.papers import (
    Column,
    Row,
    Table,
    Training,
    best,
    distance,
    last,
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

_LSTMS = tuple(Training("flickr8k_lstm", "recipes/flickr8k_lstm.toml", seed=seed) for seed in (0, 1, 2))
_LSTM = _LSTMS[0]
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
    """With two seeds: trained from the beginning, or continued with or without attention to the target."""
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

# ---------------------------------------------------------------- ARNet and what it is compared with

_SECOND_STAGE = (
    "training.num_epochs=3",
    "training.optim_config.learning_rate=1e-4",
    "training.schedule={name='constant'}",
)
_ON_FLICKR8K = {  # what differs between the second stages, which have equally many updates
    "plain": (),
    "zoneout": ("model.regularisation.zoneout_h=0.1", "model.regularisation.zoneout_c=0.1"),
    "scheduled_sampling": ("training.scheduled_sampling={name='constant', value=0.25}",),
    "arnet": ("model.reconstruction=0.01",),
}


def _second_stage(start: Training, name: str, changes: tuple[str, ...]) -> Training:
    return Training(f"{start.name}_{name}", start.recipe, (*_SECOND_STAGE, *changes), start.seed, start)


def _flickr8k_rows(label: str, starts: tuple[Training, ...]) -> tuple[Row, ...]:
    """Before the second stage; then each kind of it, the plain one and ARNet's from all starts."""
    rows = [Row(f"{label}, before the second stage", starts, _val(3))]
    for name, changes in _ON_FLICKR8K.items():
        used = starts if name in ("plain", "arnet") else starts[:1]
        trainings = tuple(_second_stage(start, name, changes) for start in used)
        rows.append(Row(f"{label}, {name.replace('_', ' ')}", trainings, _val(3)))
    return tuple(rows)


def _weight(value: str) -> Training:
    """The second stage with this weight of ARNet's loss."""
    if value in ("0", "0.01"):
        name = "plain" if value == "0" else "arnet"
        return _second_stage(_LSTM, name, _ON_FLICKR8K[name])
    return _second_stage(_LSTM, f"arnet_{value}", (f"model.reconstruction={value}",))


_PIXELS = Training("pmnist_start", "recipes/pmnist_lstm.toml", ("training.num_epochs=2",))
_ON_PIXELS = {
    "LSTM": ("pmnist_lstm", ()),
    "LSTM, recurrent dropout": ("pmnist_recurrent_dropout", ()),
    "LSTM, zoneout": ("pmnist_zoneout", ()),
    "LSTM, ARNet": ("pmnist_lstm", ("model.reconstruction=0.001",)),
}


def _pixels(recipe: str, changes: tuple[str, ...]) -> Training:
    """Four more epochs from the same start."""
    given = ("training.num_epochs=4", "training.optim_config.learning_rate=5e-4", *changes)
    name = "pmnist_arnet" if changes else recipe
    return Training(name, f"recipes/{recipe}.toml", given, start=_PIXELS)


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
            Row("continued without target attention", _translators("source"), _TEST),
            Row("continued with target attention", _translators("target"), _TEST),
        ),
        {"BLEU": (score("BLEU"), ".2f")} | _PERPLEXITY | _COST,
    ),
    "arnet": Table(
        "Flickr8k, validation, beam 3: ARNet and others in a second stage (Chen et al. 2018, tables 1 and 2)",
        (
            *_flickr8k_rows("encoder-decoder", _LSTMS),
            *_flickr8k_rows("attentive", (_SOFT_ATTENTION,)),
        ),
        _CAPTIONS | _PERPLEXITY | {name: (distance(name), ".3f") for name in ("d_mc", "d_pw")},
        discrepancy=True,
    ),
    "lambda": Table(
        "Flickr8k, validation, beam 3: the weight of ARNet's loss (Chen et al. 2018, figure 5)",
        tuple(
            Row(f"encoder-decoder, {value}", (_weight(value),), _val(3))
            for value in ("0", "0.001", "0.005", "0.01", "0.05", "0.1")
        ),
        _CAPTIONS | _PERPLEXITY | {name: (distance(name), ".3f") for name in ("d_mc", "d_pw")},
        discrepancy=True,
    ),
    "pmnist": Table(
        "Permuted sequential MNIST, test: 2 epochs, then 4 of each kind (Chen et al. 2018, table 5)",
        (
            Row("LSTM, the first 2 epochs", (_PIXELS,), ("--split", "test")),
            *(
                Row(label, (_pixels(recipe, changes),), ("--split", "test"))
                for label, (recipe, changes) in _ON_PIXELS.items()
            ),
        ),
        {
            "test accuracy, %": (score("accuracy", 100), ".2f"),
            "test loss": (score("loss"), ".3f"),
            "validation accuracy, %": (best("val_accuracy", 100), ".2f"),
            "training loss, last epoch": (last("train_loss"), ".3f"),
        },
    ),
}
