"""Sentences of a language model as text, and as JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from rnnlab.decoding import Hypothesis
from rnnlab.reporting.json_file import write_json
from rnnlab.runs import Run


def sentences_text(run: Run, prompt: np.ndarray, found: Sequence[Hypothesis], *, lists: bool = False) -> str:
    """One line for each sentence, with its prompt (1, P); in n-best lists also its score."""
    texts = _texts(run, prompt, found)
    if not lists:
        return "\n".join(texts)
    return "\n".join(f"{one.score:8.3f}  {text}" for one, text in zip(found, texts, strict=True))


def write_sentences(
    path: str | os.PathLike[str], run: Run, prompt: np.ndarray, found: Sequence[Hypothesis]
) -> None:
    """Write all sentences with their scores; see :func:`write_json`."""
    sentences = [
        {"sentence": text, "score": one.score, "log_prob": one.log_prob, "finished": one.finished}
        for one, text in zip(found, _texts(run, prompt, found), strict=True)
    ]
    write_json(path, run, {"prompt": run.inputs.text(prompt[0].tolist()), "sentences": sentences})


def _texts(run: Run, prompt: np.ndarray, found: Sequence[Hypothesis]) -> list[str]:
    return [run.inputs.text([*prompt[0].tolist(), *one.tokens]) for one in found]
