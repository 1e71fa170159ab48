"""A recipe brought to life: the data, model and solver that it describes, and the runs that come of it.

>>> config = load_config("recipes/shapes.toml")                      # doctest: +SKIP
>>> run = train(config, "runs/shapes")                               # doctest: +SKIP
>>> evaluate(run, "test").scores.corpus["BLEU-4"]                    # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.config import (
    CocoData,
    Config,
    CourseData,
    DecodingConfig,
    EvaluationConfig,
    KarpathyData,
    ShapesData,
)
from rnnlab.data import CaptionData, open_annotated, open_shapes, read_coco, read_karpathy, tokenize
from rnnlab.data.vocabulary import START, UNK
from rnnlab.decoding import Hypothesis, beam_search, greedy, sample
from rnnlab.metrics import CaptionScores, perplexity, ptb_tokenizer, require_scorers, score_captions
from rnnlab.models import CaptioningRNN
from rnnlab.training import Solver, load_checkpoint, load_model, validation_loss

Array = Any

_ROWS = 250  # images that are decoded together


@dataclass(frozen=True)
class Run:
    """A trained model with the data it was trained on and the recipe that says how."""

    directory: Path
    config: Config
    data: CaptionData
    model: CaptioningRNN
    interrupted: bool = False  # whether its training was ended by Ctrl-C


@dataclass(frozen=True)
class Evaluation:
    """The captions of a split and how good they are.

    Attributes
    ----------
    names : tuple of str
        The images.
    captions : list of list of Hypothesis
        Best first, one list an image.
    sentences : list of str
        The best caption of each image.
    references : list of list of str
        What people wrote.
    perplexity : float
        Of what people wrote of these images, under the model.
    scores : CaptionScores
    """

    names: tuple[str, ...]
    captions: list[list[Hypothesis]]
    sentences: list[str]
    references: list[list[str]]
    perplexity: float
    scores: CaptionScores


def train(config: Config, directory: str | os.PathLike[str], *, progress: bool = True) -> Run:
    """Train what the recipe describes in a new run directory.

    Parameters
    ----------
    config : Config
    directory : path
        Must not hold a run already.
    progress : bool
        Show a progress bar rather than lines.

    Returns
    -------
    Run
        With the best epoch's parameters, if the recipe's ``restore_best`` is on.

    Raises
    ------
    FileExistsError
        If the directory holds a run.
    ImportError
        If the recipe asks for caption scores after every epoch and the extra ``eval`` is not installed.
    """
    data = open_data(config.data)
    model = new_model(config, data)
    options = asdict(config.training)
    solver = Solver(
        model,
        data,
        **options,
        evaluate=_epoch_scores(config, data),
        config=config.to_dict(),
        run_dir=directory,
        progress=progress,
    )
    solver.train()
    return Run(Path(directory), config, data, model, solver.interrupted)


def resume(directory: str | os.PathLike[str], *, progress: bool = True, num_epochs: int | None = None) -> Run:
    """Go on with a run where it stopped, bit for bit; for longer, if ``num_epochs`` is given."""
    path = Path(directory)
    config = _config_of(path / "last.h5")
    changes: dict[str, Any] = {}
    if num_epochs is not None:
        changes["num_epochs"] = num_epochs
        config = replace(config, training=replace(config.training, num_epochs=num_epochs))
    data = open_data(config.data)
    model = new_model(config, data)
    solver = Solver.resume(
        path,
        model,
        data,
        evaluate=_epoch_scores(config, data),
        config=config.to_dict(),
        progress=progress,
        **changes,
    )
    solver.train()
    return Run(path, config, data, model, solver.interrupted)


def load_run(directory: str | os.PathLike[str]) -> Run:
    """Open a run directory: its best checkpoint, or the last where there was no validation.

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    """
    path = Path(directory)
    best, last = path / "best.h5", path / "last.h5"
    checkpoint = best if best.exists() else last
    if not checkpoint.exists():
        raise FileNotFoundError(f"{path} holds no run: found neither best.h5 nor last.h5")
    config = _config_of(checkpoint)
    return Run(path, config, open_data(config.data), load_model(checkpoint))


def _config_of(checkpoint: Path) -> Config:
    tables = load_checkpoint(checkpoint).config
    if tables is None:
        raise ValueError(f"{checkpoint} holds no recipe, expected a run of rnnlab train")
    return Config.from_dict(tables, str(checkpoint))


def open_data(table: ShapesData | CourseData | KarpathyData | CocoData) -> CaptionData:
    """The data that a recipe's table ``[data]`` names."""
    options = asdict(table)
    kind = options.pop("kind")
    if kind == "shapes":
        return open_shapes(**options)
    if kind == "course":
        return CaptionData.from_course(options.pop("directory"), **options)
    if kind == "karpathy":
        return open_annotated(read_karpathy(options.pop("annotations")), **options)
    splits = ("train", "val")
    return open_annotated(
        read_coco({split: options.pop(f"annotations_{split}") for split in splits}), **options
    )


def new_model(config: Config, data: CaptionData) -> CaptioningRNN:
    """A model as the recipe describes it, its parameters drawn from the recipe's seed."""
    return CaptioningRNN(
        data.vocabulary.word_to_idx,
        data.num_features,
        **asdict(config.model),
        rng=np.random.default_rng(config.training.seed),
    )


def decode(
    model: CaptioningRNN,
    features: Array,
    options: DecodingConfig,
    *,
    rng: np.random.Generator | int = 0,
    alignments: bool = False,
) -> list[list[Hypothesis]]:
    """Caption images as the recipe's table ``[decoding]`` says.

    Parameters
    ----------
    model : CaptioningRNN
    features : (N, D), or (N, L, D) for a model that attends
        On the scale that the model was trained on.
    options : DecodingConfig
    rng : numpy Generator or seed
        For ``method = "sample"``.
    alignments : bool
        Whether the hypotheses say what the model attended to, which it then has to do.

    Returns
    -------
    list of N lists of Hypothesis
        Best first.
    """
    rng = np.random.default_rng(rng)
    common: dict[str, Any] = {
        "max_length": options.max_length,
        "forbid": (model.null_token, START, *((UNK,) if options.forbid_unknown else ())),
        "return_alignments": alignments,
    }

    def search(rows: Array) -> list[list[Hypothesis]]:
        if options.method == "greedy":
            return greedy(model, rows, **common)
        if options.method == "sample":
            return sample(model, rows, temperature=options.temperature, rng=rng, **common)
        return beam_search(
            model,
            rows,
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            n_best=options.n_best,
            **common,
        )

    return [
        found for start in range(0, len(features), _ROWS) for found in search(features[start : start + _ROWS])
    ]


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    decoding: DecodingConfig | None = None,
    evaluation: EvaluationConfig | None = None,
) -> Evaluation:
    """Caption a split and score the captions against its references.

    Parameters
    ----------
    run : Run
    split : str, optional
        The recipe's if left out.
    decoding : DecodingConfig, optional
    evaluation : EvaluationConfig, optional
        Instead of the recipe's.

    Raises
    ------
    ImportError
        If the extra ``eval`` is not installed.
    KeyError
        If the data have no such split.
    ValueError
        If its first ``max_images`` images have no captions.
    """
    options = evaluation or run.config.evaluation
    split = split or options.split
    require_scorers()
    images = run.data.split(split)
    count = min(options.max_images or images.num_images, images.num_images)
    captions_perplexity = _perplexity(run, split, count)
    captions = decode(
        run.model, images.features[:count], decoding or run.config.decoding, rng=run.config.training.seed
    )
    sentences = written(captions, run.data)
    references = images.references[:count]
    tokenizer: Callable[[str], Sequence[str]] = tokenize
    if options.tokenizer == "ptb":
        tokenizer = ptb_tokenizer([*sentences, *chain.from_iterable(references)])
    return Evaluation(
        images.names[:count],
        captions,
        sentences,
        references,
        captions_perplexity,
        score_captions(sentences, references, tokenize=tokenizer, metrics=options.metrics),
    )


def _perplexity(run: Run, split: str, count: int) -> float:
    """That of the captions of the first ``count`` images of a split."""
    captions = np.flatnonzero(run.data.split(split).image_idxs < count)
    if not captions.size:
        raise ValueError(
            f"max_images: found no captions of the first {count} images of {split}, expected some"
        )
    size = run.config.training.batch_size
    batches = np.split(captions, range(size, captions.size, size))
    totals = [run.model.nll(*run.data.batch(split, indices)) for indices in batches]
    return perplexity(sum(nats for nats, _ in totals), sum(tokens for _, tokens in totals))


def written(captions: Sequence[Sequence[Hypothesis]], data: CaptionData) -> list[str]:
    """The best caption of each image in words."""
    return [data.vocabulary.decode(best.tokens) for best, *_ in captions]


def _epoch_scores(config: Config, data: CaptionData) -> Any:
    """The function that the solver calls after every epoch; None for its own, which needs no captions."""
    metrics = config.evaluation.each_epoch
    if not metrics:
        return None
    require_scorers()
    images = data.split("val")
    count = min(config.evaluation.max_images or images.num_images, images.num_images)

    def scores(model: CaptioningRNN) -> dict[str, float]:
        captions = decode(model, images.features[:count], config.decoding, rng=config.training.seed)
        scored = score_captions(
            written(captions, data), images.references[:count], tokenize=tokenize, metrics=metrics
        )
        return validation_loss(model, data, config.training.batch_size) | scored.corpus

    return scores
