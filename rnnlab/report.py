"""What people see of a run: captions as text and as pictures, scores as a table and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import rnnlab
from rnnlab import plots
from rnnlab.data import CaptionData, image_from_url
from rnnlab.decoding import Hypothesis
from rnnlab.experiment import Evaluation, Run, written
from rnnlab.files import atomic_write


def captions_text(names: Sequence[str], captions: Sequence[Sequence[Hypothesis]], data: CaptionData) -> str:
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
    data: CaptionData,
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
    data: CaptionData,
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


def scores_table(evaluation: Evaluation) -> str:
    """The corpus scores, a line each, and the notes."""
    rows = [("images", f"{len(evaluation.names):,}"), ("perplexity", f"{evaluation.perplexity:.3f}")]
    rows += [(name, f"{score:.4f}") for name, score in evaluation.scores.corpus.items()]
    lines = [f"{name:<12}{value:>10}" for name, value in rows]
    return "\n".join(lines + [f"note: {note}" for note in evaluation.scores.notes])


def write_scores(path: str | os.PathLike[str], evaluation: Evaluation, run: Run, split: str) -> None:
    """Write corpus scores, and the caption, references and scores of every image, as JSON."""
    scores = evaluation.scores
    report = {
        "rnnlab": rnnlab.__version__,
        "run": os.fspath(run.directory),
        "split": split,
        "corpus": {"perplexity": evaluation.perplexity, **scores.corpus},
        "notes": scores.notes,
        "images": [
            {
                "name": name,
                "caption": sentence,
                "references": references,
                "scores": {metric: values[k] for metric, values in scores.images.items()},
            }
            for k, (name, sentence, references) in enumerate(
                zip(evaluation.names, evaluation.sentences, evaluation.references, strict=True)
            )
        ],
    }
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def checks_table(title: str, rows: Iterable[Any]) -> tuple[str, bool]:
    """The rows of :mod:`rnnlab.gradcheck` as a table, and whether all passed."""
    lines, passed = [f"{title:<44}{'error':>9}  worst"], True
    for row in rows:
        verdict = "ok" if row.passed else "WRONG"
        written_into = f"  writes into {', '.join(row.touched)}" if row.touched else ""
        lines.append(f"{row.name:<44}{row.error:9.1e}  {row.worst:<10}{verdict}{written_into}")
        passed &= row.passed
    return "\n".join(lines), passed
