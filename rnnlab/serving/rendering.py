"""Captions and translations as HTML, by the template ``answer.html``."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

import jinja2

from rnnlab.data.images import data_url
from rnnlab.plots.images import attention_shade
from rnnlab.serving.captioning import Attention, Captioned
from rnnlab.serving.translation import Translated


def captions_html(found: Captioned, about_scores: str) -> str:
    """The captions of a picture, and the attention of the best one."""
    return _render(
        sentences=found.captions,
        heading="Caption",
        about_scores=about_scores,
        notes=found.notes,
        references=found.references,
        **(_maps(found.attention) if found.attention is not None else {}),
    )


def translations_html(found: Translated, about_scores: str) -> str:
    """The translations of a sentence, and the attention of the best one."""
    unknown = [f"Not in the vocabulary, so read as <UNK>: {', '.join(found.unknown)}"]
    return _render(
        sentences=found.translations,
        heading="Translation",
        about_scores=about_scores,
        notes=unknown if found.unknown else [],
        alignment=found.alignment,
    )


def _maps(attention: Attention) -> dict[str, Any]:
    """The picture, and for each word a shade that darkens regions with little attention."""
    height, width = attention.picture.shape[:2]
    return {
        "picture": data_url(attention.picture),
        "shape": f"{width} / {height}",
        "equal_weight": 1 / attention.weights.shape[1],
        "tiles": [
            {"word": word, "shade": data_url(attention_shade(weights), lossless=True), "peak": weights.max()}
            for word, weights in zip(attention.words, attention.weights, strict=True)
        ],
    }


def _render(**content: Any) -> str:
    return _template().render(content)


@functools.cache
def _template() -> jinja2.Template:
    source = files("rnnlab.serving").joinpath("answer.html").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
