import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest

from rnnlab.decoding import Hypothesis
from rnnlab.metrics import TranslationScores
from rnnlab.reporting.translations import (
    aligned_words,
    alignment_picture,
    translations_text,
    with_references,
    write_translations,
)
from rnnlab.tasks.translation import Translation, TranslationEvaluation


def translation(text, score=-1.0, alignment=None, finished=True):
    return Translation(text.split(), Hypothesis((), score, score, finished, alignment))


def test_one_line_for_each_source_or_blocks_of_n_best():
    assert translations_text([[translation("A B")], [translation("")]]) == "A B\n"
    n_best = [translation("A B", -0.25), translation("A", -10.0)]
    two = ["  -0.250  A B", " -10.000  A", ""]
    text = translations_text([n_best, n_best[:1], n_best], lists=True)
    assert text.split("\n") == [*two, "  -0.250  A B", "", *two]


def test_all_translations_are_written(tmp_path):
    run = SimpleNamespace(directory=Path("run"), members=(), inputs=SimpleNamespace(detokenize="-".join))
    found = [[translation("A B", -0.5), translation("A", -2.0)], []]
    write_translations(tmp_path / "found.json", run, ["b a", "c"], found)
    first, second = json.loads((tmp_path / "found.json").read_text())["sentences"]
    assert first["source"] == "b a"
    assert first["translations"] == [
        {"translation": "A-B", "score": -0.5, "log_prob": -0.5},
        {"translation": "A", "score": -2.0, "log_prob": -2.0},
    ]
    assert second == {"source": "c", "translations": []}


def test_translations_with_their_references():
    scores = TranslationScores({"BLEU": 50.0}, "signature", [])
    evaluated = TranslationEvaluation(
        "test",
        [["b", "a"], ["c"]],
        [[translation("A B")], [translation("D")]],
        [[["A", "B"], ["B"]], [["C"]]],
        2.0,
        scores,
    )
    assert with_references(evaluated, 1).splitlines() == [
        "source       b a",
        "translation  A B",
        "reference    A B",
    ]
    assert len(with_references(evaluated, 8).split("\n\n")) == 2
    long = dataclasses.replace(evaluated, sources=[["code"] * 1000, ["c"]])
    source, *_ = with_references(long, 1).splitlines()
    assert source.startswith("source       code code")
    assert source.endswith("code ...")
    assert len(source) < 320
    without = dataclasses.replace(evaluated, translations=None, scores=None)
    assert with_references(without, 1).splitlines() == ["source       b a", "reference    A B"]


@pytest.mark.parametrize("finished", [True, False])
def test_an_alignment_has_a_row_for_each_word_and_the_end(finished, tmp_path):
    found = translation("A B", alignment=np.full((2 + finished, 3), 1 / 3), finished=finished)
    aligned = aligned_words(["b", "a"], found)
    assert aligned.words == ["A", "B", "<END>"][: 2 + finished]
    assert aligned.source == ["b", "a", "<END>"]
    assert aligned.weights is found.hypothesis.alignment
    alignment_picture(tmp_path / "alignment.png", ["b", "a"], found)
    assert matplotlib.image.imread(tmp_path / "alignment.png").ndim == 3
    with pytest.raises(ValueError, match="the translation has no alignment"):
        alignment_picture(tmp_path / "alignment.png", ["b", "a"], translation("A B"))
