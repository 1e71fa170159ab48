"""Random configurations of the models: options, parameters, a batch, and the arguments of ``loss``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rnnlab.gradcheck.cases import CELLS
from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier
from rnnlab.models.captioning import IMAGE_INPUTS
from rnnlab.models.classification import READOUTS

SCORES = ("additive", "dot", "bilinear")


class Configuration(NamedTuple):
    """A model and one call of its ``loss``."""

    model: Any
    batch: tuple[Any, ...]  # the positional arguments of loss
    given: dict[str, Any]  # its keyword arguments
    seed: int | None  # of the generator that it draws from; None for inference


class Draws:
    """Random choices."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def one_of(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def size(self, most: int = 5) -> int:
        return int(self.rng.integers(1, most + 1))

    def rate(self, p: float = 0.4) -> float:
        """A probability or the weight of a loss; 0 with probability 1 - p."""
        return round(float(self.rng.uniform(0.1, 0.9)), 2) if self.chance(p) else 0.0

    def optional(self, draw: Callable[[], Any], p: float = 0.4) -> Any:
        """None with probability 1 - p."""
        return draw() if self.chance(p) else None

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape)


def configuration(seed: int) -> Configuration:
    """The configuration of a seed."""
    draws = Draws(seed)
    kind = draws.one_of(captioning, captioning, translation, translation, language, classification)
    model, batch, given = kind(draws)
    model.params.flat[...] = draws.rng.uniform(-0.8, 0.8, model.params.flat.size)  # biases too
    return Configuration(model, batch, given, seed if draws.chance(0.6) else None)


# ---------------------------------------------------------------- models


def captioning(draws: Draws) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A CaptioningRNN with a batch."""
    attention, target = draws.optional(lambda: draws.one_of(*SCORES), 0.6), draws.chance(0.4)
    attends = attention is not None or target
    options = recurrence(draws) | {
        "image_input": "initial_state" if attends else draws.one_of(*IMAGE_INPUTS),
        "attention": attention,
        "target_attention": target,
        "target_delay": draws.optional(lambda: 1 + draws.size(2), 0.3) if target else None,
        "input_dim": draws.size(),
        "decoder_layers": draws.optional(lambda: 1 + draws.size(2), 0.3),
        "layer_dropout": draws.rate(),
        "feature_dropout": draws.rate(),
        "loss_average": draws.one_of("batch", "token"),
    }
    options |= sentences(draws, attention)
    if attention == "dot" and not options["reviewer"]:
        options["input_dim"] = options["hidden_dim"]
    if attention:
        options["global_dim"] = draws.optional(draws.size)
        options["selector"] = draws.chance(0.4)
        options["doubly_stochastic"] = draws.rate()
    if options["image_input"] == "initial_state":
        options["state_activation"] = draws.one_of("none", "tanh")
        has_cell_state = options["cell_type"] == "lstm" or options["reviewer"]
        options["project_cell"] = bool(has_cell_state) and draws.chance(0.5)
    model = CaptioningRNN(vocabulary(draws, options), dtype=np.float64, **with_effect(options))
    N = rows(draws)
    features: Any = draws.normal(N, *([draws.size()] if attention else []), options["input_dim"])
    if options.get("global_dim"):
        features = features, draws.normal(N, options["global_dim"])
    captions, given = tokens(draws, model, N)
    return model, (features, captions), given


def translation(draws: Draws) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A Seq2Seq with a batch."""
    attention, bidirectional = draws.optional(lambda: draws.one_of(*SCORES), 0.7), draws.chance(0.6)
    target = draws.chance(0.4)
    options = recurrence(draws) | {
        "attention": attention,
        "target_attention": target,
        "target_delay": draws.optional(lambda: 1 + draws.size(2), 0.3) if target else None,
        "bidirectional": bidirectional,
        "num_layers": draws.size(3),
        "decoder_layers": draws.size(3) if draws.chance(0.4) else 1,
        "encoder_dim": draws.optional(draws.size, 0.6),
        "layer_dropout": draws.rate(),
        "encoder_reconstruction": draws.rate(),
        "encoder_reconstructor_dim": draws.optional(draws.size),
        "loss_average": draws.one_of("batch", "token"),
    }
    options |= sentences(draws, attention)
    if attention == "dot" and not options["reviewer"]:
        encoder_dim = options["encoder_dim"] = draws.size(3)
        options["hidden_dim"] = encoder_dim * (1 + bidirectional)
    words = {word: token for token, word in enumerate(draws.rng.permutation(["<NULL>", *"abcd"]).tolist())}
    model = Seq2Seq(words, vocabulary(draws, options), dtype=np.float64, **with_effect(options))
    N, L = rows(draws), draws.size(6)
    source = draws.rng.integers(0, len(words), (N, L))  # <NULL> may be anywhere
    source[np.arange(L) >= draws.rng.integers(0, L + 1, (N, 1))] = words["<NULL>"]
    target, given = tokens(draws, model, N)
    return model, (source, target), given


def language(draws: Draws) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A LanguageModel with a batch."""
    target = draws.chance(0.4)
    options = recurrence(draws) | {
        "target_attention": target,
        "target_delay": draws.optional(lambda: 1 + draws.size(2), 0.3) if target else None,
        "decoder_layers": draws.size(3),
        "layer_dropout": draws.rate(),
        "loss_average": draws.one_of("batch", "token"),
    }
    options |= sentences(draws, None)
    del options["reviewer"]
    model = LanguageModel(vocabulary(draws, options), dtype=np.float64, **with_effect(options))
    found, given = tokens(draws, model, rows(draws))
    given = {name: given[name] for name in given if name == "part_of"}
    found = found.reshape(-1, found.shape[-1])
    if not target and draws.chance(0.5):
        count = options["decoder_layers"] * model.decoder.num_states
        given["state"] = [*draws.rng.uniform(-0.9, 0.9, (count, len(found), options["hidden_dim"]))]
    return model, (found,), given


def classification(draws: Draws) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A SequenceClassifier with a batch."""
    options = recurrence(draws) | {
        "num_classes": 1 + draws.size(),
        "input_dim": draws.size(),
        "readout": draws.one_of(*READOUTS),
        "num_layers": draws.size(3),
        "bidirectional": draws.chance(0.5),
        "layer_dropout": draws.rate(),
    }
    model = SequenceClassifier(dtype=np.float64, **with_effect(options))
    N, T = rows(draws), draws.size(6)
    x, labels = draws.normal(N, T, options["input_dim"]), draws.rng.integers(0, options["num_classes"], N)
    lengths = draws.optional(lambda: draws.rng.integers(0, T + 1, N), 0.7)
    given = {"part_of": (N + draws.size(), N + draws.size())} if draws.chance(0.2) else {}
    return model, (x, labels, lengths), given


# ---------------------------------------------------------------- options


def recurrence(draws: Draws) -> dict[str, Any]:
    """The options that all models have."""
    cell = draws.one_of(*CELLS)
    return {
        "cell_type": cell,
        "hidden_dim": draws.size(),
        "output_dropout": draws.rate(),
        "label_smoothing": draws.rate(),
        "reconstruction": draws.rate(),
        "reconstructor_dim": draws.optional(draws.size),
        "detach_target": draws.chance(0.4),
        "regularisation": draws.optional(lambda: regularisation(draws, cell), 0.5),
    }


def regularisation(draws: Draws, cell: str) -> dict[str, Any]:
    """Dropout and zoneout of a cell that allows them."""
    options = {name: draws.rate(0.5) for name in ("zoneout_h", "recurrent_dropout", "weight_dropout")}
    if cell == "lstm":
        options["zoneout_c"] = draws.rate(0.5)
    if cell != "rnn":
        options["recurrent_dropout_on"] = draws.one_of("state", "candidate")
    return options


def sentences(draws: Draws, attention: str | None) -> dict[str, Any]:
    """The options that models of sentences have in common."""
    options: dict[str, Any] = {
        "wordvec_dim": draws.size(),
        "attention_dim": draws.optional(draws.size),
        "output": draws.one_of("linear", "concat", "deep"),
        "word_dropout": draws.rate(),
        "tied_embeddings": draws.chance(0.3),
        "reviewer": None,
    }
    if attention and draws.chance(0.4):
        options["reviewer"] = {
            "blocks": draws.size(3),
            "steps": draws.size(3),
            "inter": draws.chance(0.6),
            "intra": draws.chance(0.6),
            "dropout": draws.rate(),
        }
        options["discriminative"] = draws.rate(0.6)
        options["discriminative_words"] = draws.optional(lambda: draws.size(3))
    return options


def with_effect(options: dict[str, Any]) -> dict[str, Any]:
    """The options but those that a model refuses because they would have no effect beside the others."""
    attends_to_past = options.get("target_attention") and not options["target_delay"]
    score = options.get("attention") or ("additive" if attends_to_past else None)
    arnets = [
        options.get(f"{part}reconstruct{end}") for part in ("", "encoder_") for end in ("ion", "or_dim")
    ]
    left_out = {
        "attention_dim": score != "additive" and not options.get("reviewer"),
        "detach_target": not any(arnets),
        "layer_dropout": options.get("num_layers", 1) == 1
        and options.get("decoder_layers") in (None, 1)
        and options.get("image_input") != "second_layer",
        "tied_embeddings": options.get("output") == "concat"
        or (options.get("output") == "linear" and options.get("wordvec_dim") != options["hidden_dim"]),
    }
    kept = {name: value for name, value in options.items() if not left_out.get(name)}
    if options["regularisation"] and not options["regularisation"]["recurrent_dropout"]:
        kept["regularisation"] = options["regularisation"] | {"recurrent_dropout_on": "state"}
    if reviewer := options.get("reviewer"):
        joined = {"inter": reviewer["blocks"] == 1, "intra": reviewer["steps"] == 1}
        kept["reviewer"] = reviewer | {name: True for name, alone in joined.items() if alone}
    return kept


def vocabulary(draws: Draws, options: dict[str, Any]) -> dict[str, int]:
    """The words in any order, but the special ones first for discriminative supervision; <UNK> or not."""
    special = ["<NULL>", "<START>", "<END>", "<UNK>"][: draws.one_of(3, 4)]
    words = [f"word{number}" for number in range(draws.one_of(3, 4, 7))]
    for some in (special, words):
        draws.rng.shuffle(some)
    order = [*special, *words]
    if "discriminative" not in options:
        draws.rng.shuffle(order)
    return {word: token for token, word in enumerate(order)}


# ---------------------------------------------------------------- batches


def rows(draws: Draws) -> int:
    """The size of a batch; 1 is frequent, 0 is rare."""
    return draws.one_of(1, 1, 2, 3, 3, 4, 5) if draws.chance(0.97) else 0


def tokens(draws: Draws, model: Any, N: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Sentences for N inputs, and arguments of ``loss`` about them."""
    shape = (N, draws.size(3)) if draws.chance(0.25) else (N,)  # several sentences of each input
    L = 1 + draws.size(6)
    found = draws.rng.integers(0, len(model.word_to_idx), (*shape, L))  # <NULL> may be anywhere
    found[..., 0] = model.start_token
    found[np.arange(L) >= draws.rng.integers(0, L + 1, (*shape, 1))] = model.null_token
    if draws.chance(0.05):
        found[...] = model.null_token
    given: dict[str, Any] = {}
    if draws.chance(0.2):
        given["sentence_lengths"] = draws.rng.integers(0, L, shape)
    if draws.chance(0.2):
        given["sentence_weights"] = draws.normal(*shape)
    if draws.chance(0.2):
        examples = int(np.prod(shape))
        given["part_of"] = (examples + draws.size(), examples * (L - 1) + draws.size())
    return found, given
