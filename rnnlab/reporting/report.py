"""What people see of a run: what a model makes of data, as text and pictures; scores as a table and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import rnnlab
from rnnlab import plots
from rnnlab.data import CaptionData, image_from_url
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.decoding import Hypothesis
from rnnlab.files import atomic_write
from rnnlab.runs import Run
from rnnlab.tasks import classification, translation
from rnnlab.tasks.captioning import written
from rnnlab.tasks.discrepancy import Discrepancy
from rnnlab.tasks.task import Evaluation
from rnnlab.tasks.translation import Translation


def captions_text(
    names: Sequence[str], captions: Sequence[Sequence[Hypothesis]], data: CaptionData | CaptionInputs
) -> str:
    """A line for each image, or, with n-best lists, a line for each caption with its score."""
    lines = []
    for name, found in zip(names, captions, strict=True):
        if len(found) == 1:
            lines.append(f"{name}: {data.vocabulary.decode(found[0].tokens)}")
            continue
        lines.append(f"{name}:")
        lines += [f"  {one.score:8.3f}  {data.vocabulary.decode(one.tokens)}" for one in found]
    return "\n".join(lines)


def captions_picture(
    path: str | os.PathLike[str],
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
    *,
    columns: int = 4,
) -> None:
    """Draw the images with their best captions, in a PNG; an image that is not at hand is a placeholder."""
    images = [image_from_url(name, image_dir=data.image_dir) for name in names]
    figure = plots.caption_grid(images, written(captions, data), columns=columns)
    with atomic_write(path) as temporary:
        plots.save(figure, temporary)


def attention_picture(
    path: str | os.PathLike[str],
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
) -> None:
    """Draw what the model looked at for each word of the best captions, in a PNG.

    Raises
    ------
    ValueError
        If the captions have no alignments.
    """
    best = [found[0] for found in captions]
    if any(one.alignment is None for one in best):
        raise ValueError(
            "attention_picture: captions have no alignments, expected those of a model that attends"
        )
    words = [data.vocabulary.decode(one.tokens).split() for one in best]
    weights = [one.alignment[: len(one.tokens)] for one in best]  # type: ignore[index]
    images = [image_from_url(name, image_dir=data.image_dir) for name in names]
    with atomic_write(path) as temporary:
        plots.save(plots.attention_grid(images, words, weights), temporary)


def translations_text(translations: Sequence[Sequence[Translation]]) -> str:
    """A line for each source, or, with n-best lists, the translations with their scores and an empty line."""
    lines = []
    for found in translations:
        if len(found) == 1:
            lines.append(" ".join(found[0].words))
            continue
        lines += [f"{one.hypothesis.score:8.3f}  {' '.join(one.words)}" for one in found]
        lines.append("")
    return "\n".join(lines)


def beside_references(evaluated: translation.Evaluation, count: int) -> str:
    """The first ``count`` sources, each with its translation and the first of its references."""
    blocks = []
    for source, (best, *_), references in zip(
        evaluated.sources[:count], evaluated.translations, evaluated.references, strict=False
    ):
        rows = {"source": source, "translation": best.words, "reference": references[0]}
        blocks.append("\n".join(f"{name:<13}{' '.join(words)}" for name, words in rows.items()))
    return "\n\n".join(blocks)


def alignment_picture(path: str | os.PathLike[str], source: Sequence[str], found: Translation) -> None:
    """Draw the attention of a translation to its source, in a PNG.

    Raises
    ------
    ValueError
        If the translation was found without alignments.
    """
    alignment = found.hypothesis.alignment
    if alignment is None:
        raise ValueError(
            "alignment_picture: the translation has no alignment, expected one with alignments=True"
        )
    target = [*found.words, *(["<END>"] if found.hypothesis.finished else [])]
    figure = plots.alignment_matrix(alignment, [*source, "<END>"], target)
    with atomic_write(path) as temporary:
        plots.save(figure, temporary)


def confusion_text(confusion: np.ndarray) -> str:
    """A line for each true class: how often it was taken for each class, and how much of it is right."""
    width = max(6, len(f"{confusion.max():,}") + 1)
    columns = "".join(f"{taken:>{width}}" for taken in range(len(confusion)))
    lines = [f"{'true':<6}{columns}{'right':>9}  (columns: taken for)"]
    for true, counts in enumerate(confusion):
        columns = "".join(f"{f'{count:,}' if count else '.':>{width}}" for count in counts)
        right = f"{counts[true] / counts.sum():.1%}" if counts.any() else "-"
        lines.append(f"{true:<6}{columns}{right:>9}")
    return "\n".join(lines)


def scores_table(evaluation: Evaluation) -> str:
    """The scores of a split, one per line, with notes; for classes also the confusion matrix."""
    lines = [f"{name:<12}{value:>10}" for name, value in evaluation.rows()]
    lines += [f"note: {note}" for note in evaluation.notes()]
    if isinstance(evaluation, classification.Evaluation):
        lines += ["", confusion_text(evaluation.confusion)]
    return "\n".join(lines)


def write_scores(path: str | os.PathLike[str], evaluation: Evaluation, run: Run, split: str) -> None:
    """Write the scores and all captions, translations or classes as JSON."""
    report: dict[str, Any] = {
        "rnnlab": rnnlab.__version__,
        "run": os.fspath(run.directory),
        "split": split,
        **evaluation.report(),
    }
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def discrepancy_table(found: Discrepancy) -> str:
    """The distances of states under teacher forcing from those of free running, a line each."""
    rows = [("sentences", f"{len(found.taught):,}")]
    rows += [("d_mc", f"{found.mean_centroid:.4f}"), ("d_pw", f"{found.pointwise:.4f}")]
    return "\n".join(f"{name:<12}{value:>10}" for name, value in rows)


def write_discrepancy(path: str | os.PathLike[str], run: Run, split: str, found: Discrepancy) -> None:
    """Write the distances as JSON: sentences, d_mc and d_pw, and what they are of."""
    numbers = {
        "rnnlab_version": rnnlab.__version__,
        "run": str(run.directory),
        "split": split,
        "sentences": len(found.taught),
        "d_mc": found.mean_centroid,
        "d_pw": found.pointwise,
    }
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


def states_picture(path: str | os.PathLike[str], found: Discrepancy) -> None:
    """Draw the states under teacher forcing and of free running, in a PNG.

    Raises
    ------
    ImportError
        If the extra ``sklearn`` is not installed.
    """
    with atomic_write(path) as temporary:
        plots.save(plots.state_map(found.taught, found.free), temporary)
