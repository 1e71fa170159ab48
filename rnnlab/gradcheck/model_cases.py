"""The models that :mod:`rnnlab.gradcheck.run` checks: every cell in every kind of model, with dropout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np

from rnnlab.gradcheck.cases import CELLS, LENGTHS, A, D, H, L, N, T
from rnnlab.gradcheck.recurrent_cases import allows
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier
from rnnlab.models.captioning import IMAGE_INPUTS
from rnnlab.models.classification import READOUTS
from rnnlab.types import Array


class ModelCase(NamedTuple):
    """A model to check under dropout, and a batch for it."""

    name: str
    model: Any
    batch: tuple[Array, ...]


def model_cases(rng: np.random.Generator, cells: Sequence[str] = CELLS) -> Iterator[ModelCase]:
    """Every cell in every kind of model."""
    return starmap(ModelCase, _models(rng, cells))


def _models(rng: np.random.Generator, cells: Sequence[str]) -> Iterator[tuple[str, Any, tuple[Array, ...]]]:
    words = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "b"])}
    captions = np.array([[1, 4, 5, 4, 2], [1, 5, 2, 0, 0], [0, 0, 0, 0, 0]])
    image, regions = rng.standard_normal((N, D)), rng.standard_normal((N, L, D))
    source = np.array([[4, 5, 5, 2], [5, 2, 0, 0], [2, 0, 0, 0]])
    common: dict[str, Any] = {
        "dtype": np.float64,
        "word_dropout": 0.2,
        "output_dropout": 0.2,
        "initialisation": "uniform",
        "rng": rng,
    }

    def captioner(cell: str, **options: Any) -> CaptioningRNN:
        return CaptioningRNN(words, D, 3, H, cell, feature_dropout=0.2, **common, **options)

    for cell, image_input in product(cells, IMAGE_INPUTS):
        options: dict[str, Any] = {"image_input": image_input, "init_scale": 0.8}
        if image_input == "initial_state":
            options |= {
                "state_activation": "tanh",
                "project_cell": cell_for("model_cases", cell).num_states == 2,
            }
        yield f"CaptioningRNN {cell} {image_input}", captioner(cell, **options), (image, captions)
    common["init_scale"] = 2.0  # larger vectors, so that the loss depends on the attention weights
    to_regions = {"attention": "additive", "doubly_stochastic": 0.5, "output": "deep"}
    for cell in cells:
        name = f"CaptioningRNN {cell} attention to"
        yield f"{name} regions", captioner(cell, **to_regions, selector=True), (regions, captions)
        yield f"{name} its past", captioner(cell, target_attention=True), (image, captions)
        delayed = captioner(cell, target_attention=True, target_delay=2)
        yield f"{name} a delayed state", delayed, (image, captions)
        yield f"{name} both", captioner(cell, **to_regions, target_attention=True), (regions, captions)
    for cell, target in product(cells, (False, True)):
        options = {"num_layers": 2, "layer_dropout": 0.2, "target_attention": target}
        name = f"Seq2Seq {cell} attention to {'both' if target else 'the source'}"
        yield name, Seq2Seq(words, words, 3, 2, cell, **common, **options), (source, captions)
    for cell in cells:
        options = {"decoder_layers": 2, "layer_dropout": 0.2, **to_regions}
        yield f"CaptioningRNN {cell} attention, two layers", captioner(cell, **options), (regions, captions)
        options = {"decoder_layers": 3, "layer_dropout": 0.2, "attention": None}
        options |= {"tied_embeddings": True, "output": "linear"}
        translating = Seq2Seq(words, words, 3, 3, cell, **common, **options)
        yield f"Seq2Seq {cell} three layers, tied", translating, (source, captions)
    for cell in cells:
        rates = {"zoneout_h": 0.2, "recurrent_dropout": 0.2, "weight_dropout": 0.2}
        regularisation = {name: rate for name, rate in rates.items() if allows(cell, {name: rate})}
        regularised = captioner(cell, regularisation=regularisation)
        yield f"CaptioningRNN {cell} regularised", regularised, (image, captions)
    for cell in cells:
        concat = captioner(cell, attention="additive", target_attention=True, output="concat")
        yield f"CaptioningRNN {cell} concatenated output", concat, (regions, captions)
    arnet: dict[str, Any] = {"reconstruction": 0.3, "reconstructor_dim": A}
    for cell in cells:
        yield f"CaptioningRNN {cell} ARNet", captioner(cell, **arnet), (image, captions)
    of_encoder: dict[str, Any] = {"encoder_reconstruction": 0.2, "encoder_reconstructor_dim": A}
    cell = "lstm" if "lstm" in cells else cells[0]
    model = Seq2Seq(words, words, 3, 2, cell, **common, **arnet, **of_encoder)
    yield f"Seq2Seq {cell} ARNet on both sides", model, (source, captions)
    yield from _language_models(words, cells, captions, common, arnet)
    reviewer: dict[str, Any] = {
        "attention": "additive",
        "reviewer": {"blocks": 2, "steps": 2, "dropout": 0.2},
        "discriminative": 2.0,
    }
    common["init_scale"] = 1.5  # larger weights saturate the thought vectors
    for cell in cells:
        captioning = captioner(cell, **reviewer, target_attention=True, output="deep")
        yield f"CaptioningRNN {cell} reviewer", captioning, (regions, captions)
        translating = Seq2Seq(words, words, 3, 2, cell, **common, **reviewer)
        yield f"Seq2Seq {cell} reviewer", translating, (source, captions)
    del common["word_dropout"]
    common["init_scale"] = 0.8
    labelled = rng.standard_normal((N, T, D)), np.array([1, 0, 2]), LENGTHS
    yield from _classifiers(cells, labelled, common, arnet)


def _language_models(
    words: dict[str, int],
    cells: Sequence[str],
    sentences: Array,
    common: dict[str, Any],
    arnet: dict[str, Any],
) -> Iterator[tuple[str, Any, tuple[Array, ...]]]:
    for cell in cells:
        options: dict[str, Any] = {"decoder_layers": 2, "layer_dropout": 0.2, "output": "deep"}
        attending = LanguageModel(words, 3, H, cell, target_attention=True, **common, **options)
        yield f"LanguageModel {cell} attention to its past, two layers", attending, (sentences,)
        tied = LanguageModel(words, H, H, cell, tied_embeddings=True, **common, **arnet)
        yield f"LanguageModel {cell} tied, ARNet", tied, (sentences,)


def _classifiers(
    cells: Sequence[str], labelled: tuple[Array, ...], common: dict[str, Any], arnet: dict[str, Any]
) -> Iterator[tuple[str, Any, tuple[Array, ...]]]:
    for cell, readout in product(cells, READOUTS):
        classifier = SequenceClassifier(3, D, H, cell, num_layers=2, readout=readout, **common)
        yield f"SequenceClassifier {cell} {readout}", classifier, labelled
    for cell in cells:
        options: dict[str, Any] = {"num_layers": 2, "bidirectional": True, "layer_dropout": 0.2}
        classifier = SequenceClassifier(3, D, H, cell, **options, **common, **arnet)
        yield f"SequenceClassifier {cell} both directions, ARNet", classifier, labelled
