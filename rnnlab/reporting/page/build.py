"""The page of a report: the variables of its template, and the file.

The page makes no request: it contains its style, script and pictures, and its content security policy allows
no other source. The template escapes all text.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

import rnnlab
from rnnlab.extras import Library
from rnnlab.files import atomic_text
from rnnlab.reporting import seeds
from rnnlab.reporting.curves import charts
from rnnlab.reporting.differences import differences, equality_text, recipe_rows
from rnnlab.reporting.page.axes import NUM_COLORS, plot_of
from rnnlab.reporting.page.captioned import caption_cards
from rnnlab.reporting.page.translated import translation_cards
from rnnlab.reporting.page.written import written_texts
from rnnlab.reporting.record import Record, facts_side_by_side
from rnnlab.reporting.results import Results, notes_of, notes_on_runs, score_rows, splits_of
from rnnlab.tasks import classification

JINJA = Library("jinja2", "report", "a report", "Jinja2")


def write_report(
    path: str | os.PathLike[str],
    records: Sequence[Record],
    results: Sequence[Results] = (),
    *,
    examples: int = 40,
) -> None:
    """Write the page.

    Parameters
    ----------
    path : path
        An HTML file. It is written atomically.
    records : sequence of Record
    results : sequence of Results, optional
        One for each record; without them there are neither scores nor examples.
    examples : int
        The maximum number of images or sentences to show for each task.

    Raises
    ------
    ImportError
        If the extra ``report`` is not installed.
    """
    JINJA.require()
    page = _render(_content(records, results, examples))
    with atomic_text(path) as file:
        file.write(page)


def _content(records: Sequence[Record], results: Sequence[Results], examples: int) -> dict[str, Any]:
    """The variables of the template."""
    names = [record.name for record in records]
    plots = [(chart.is_validation, plot_of(chart, names)) for chart in charts(records)]
    cards, image_notes = caption_cards(results, examples)
    source_cards, sentence_notes = translation_cards(results, examples)
    return {
        "version": rnnlab.__version__,
        "title": " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names),
        "names": names,
        "num_colors": NUM_COLORS,
        "facts": facts_side_by_side(records),
        "notes": notes_on_runs(records, results),
        "scored": bool(results),
        "splits": splits_of(results),
        "scores": score_rows(results),
        "means_title": seeds.TITLE,
        "means": seeds.means_over_seeds(records, results),
        "score_notes": notes_of(names, results),
        "validation_plots": [plot for is_validation, plot in plots if is_validation],
        "training_plots": [plot for is_validation, plot in plots if not is_validation],
        "differences": differences(records) if len(records) > 1 else [],
        "equality": equality_text(records),
        "recipe": recipe_rows(records[0]) if len(records) == 1 else [],
        "cards": cards,
        "image_notes": image_notes,
        "has_scores": any(caption.score for card in cards for caption in card.captions),
        "has_maps": any(caption.side and card.picture for card in cards for caption in card.captions),
        "source_cards": source_cards,
        "sentence_notes": sentence_notes,
        "written": written_texts(results, examples),
        "confusions": [
            (name, _confusion(each.evaluation))
            for name, each in zip(names, results, strict=False)
            if isinstance(each.evaluation, classification.ClassificationEvaluation)
        ],
    }


def _confusion(evaluation: classification.ClassificationEvaluation) -> dict[str, Any]:
    """The rows of a confusion matrix, as shares of the true class, and its most frequent mistakes."""
    counts = evaluation.confusion
    totals = counts.sum(axis=1)
    wrong = [(int(n), i, j) for (i, j), n in np.ndenumerate(counts) if i != j and n]
    return {
        "split": evaluation.split,
        "rows": [
            {
                "counts": [(int(n), round(float(n) / max(1, int(total)), 3)) for n in row],
                "recall": f"{row[true] / total:.1%}" if total else "",
            }
            for true, (row, total) in enumerate(zip(counts, totals, strict=True))
        ],
        "mistakes": [f"{i} as {j} ({n})" for n, i, j in sorted(wrong, key=lambda each: -each[0])[:5]],
    }


def _render(content: dict[str, Any]) -> str:
    """The page, from the template files of this folder."""
    import jinja2
    from markupsafe import Markup

    folder = files("rnnlab.reporting.page")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        content, style=Markup(style), script=Markup(script), script_hash=digest
    )
