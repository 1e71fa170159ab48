"""Splits that several ranks decode and score together, with the results of one process to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.decoding import greedy
from rnnlab.metrics import CAPTION_SCORERS, TRANSLATION_SCORERS, JavaError
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.tasks import captioning, search, task_of
from rnnlab.tasks.search import decode
from rnnlab.tasks.translation import translate

from ..faults.small_runs import recipes
from ..training.ranks import on_ranks

pytest.importorskip("sklearn")

CAPTIONS, TRANSLATION, DIGITS = "captions, dropout, zoneout", "translation", "digits"
SCORERS = {CAPTIONS: CAPTION_SCORERS, TRANSLATION: TRANSLATION_SCORERS}
EVALUATION = {
    CAPTIONS: {"split": "val", "each_epoch": ["BLEU", "CIDEr"], "metrics": ["BLEU", "CIDEr"]},
    TRANSLATION: {"split": "val", "each_epoch": ["BLEU"], "metrics": ["BLEU", "CS-k"]},
    DIGITS: {"split": "val"},
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The recipes by name, and their data, which the ranks share."""
    found = recipes(tmp_path_factory.mktemp("data"))
    chosen = {name: recipe_from_dict(found[name] | {"evaluation": EVALUATION[name]}) for name in EVALUATION}
    return {name: (recipe, runs.open_data(recipe.data)) for name, recipe in chosen.items()}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(search, "_ROWS", 3)


def untrained(tables, name):
    """A run whose model has random parameters: it writes long sentences."""
    if name in SCORERS and not SCORERS[name].installed:
        pytest.skip("needs the scorers")
    recipe, data = tables[name]
    return runs.Run(Path("none"), recipe, data, runs.new_model(recipe, data))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", [CAPTIONS, TRANSLATION, DIGITS])
def test_an_evaluation_is_that_of_one_process(name, ranks, tables):
    expected = runs.evaluate(untrained(tables, name), "val")
    for found in on_ranks(
        ranks, lambda communicator: runs.evaluate(untrained(tables, name), "val", communicator=communicator)
    ):
        assert found.report() == expected.report()
        assert found.rows() == expected.rows()


@pytest.mark.parametrize("name", [CAPTIONS, TRANSLATION, DIGITS])
def test_the_scores_after_an_epoch_are_those_of_one_process(name, tables):
    def scores(communicator):
        run = untrained(tables, name)
        evaluate = task_of(run.recipe).epoch_scores(run.recipe, run.data, communicator)
        return dict(evaluate(run.model))

    run = untrained(tables, name)
    expected = dict(task_of(run.recipe).epoch_scores(run.recipe, run.data)(run.model))
    assert on_ranks(3, scores) == [expected] * 3


@pytest.mark.parametrize("name", [CAPTIONS, TRANSLATION])
def test_a_discrepancy_is_that_of_one_process(name, tables):
    expected = runs.discrepancy(untrained(tables, name), "train")
    for found in on_ranks(
        2, lambda communicator: runs.discrepancy(untrained(tables, name), "train", communicator=communicator)
    ):
        assert (found.mean_centroid, found.pointwise) == (expected.mean_centroid, expected.pointwise)
        np.testing.assert_array_equal(found.teacher_forced, expected.teacher_forced)
        np.testing.assert_array_equal(found.free_running, expected.free_running)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_captions_are_those_of_one_process(method, tables):
    def captions(communicator=search.ALONE):
        run = untrained(tables, CAPTIONS)
        options = run.recipe.decoding.changed(method=method, n_best=1)
        images = run.data.split("train").model_inputs
        return decode(run.model, images, options, rng=5, first=11, communicator=communicator)

    expected = captions()
    assert len({best.tokens for best, *_ in expected}) > 1
    assert on_ranks(3, captions) == [expected] * 3


def test_alignments_are_those_of_one_process(tables):
    def translations(communicator=search.ALONE):
        run = untrained(tables, TRANSLATION)
        sources = [*run.data.split("train").source[:10], []]
        options = run.recipe.decoding.changed(method="greedy")
        return translate(run.model, sources, options, return_alignments=True, communicator=communicator)

    expected = translations()
    for found in on_ranks(2, translations):
        for (one,), (other,) in zip(found, expected, strict=True):
            assert one.words == other.words
            np.testing.assert_array_equal(one.hypothesis.alignment, other.hypothesis.alignment)


def test_each_rank_decodes_its_own_blocks(tables, monkeypatch):
    def counted(model, rows, **options):
        decoded[-1].append(len(rows))
        return greedy(model, rows, **options)

    def captions(communicator):
        run = untrained(tables, CAPTIONS)
        decoded.append([])
        images = run.data.split("train").model_inputs
        options = run.recipe.decoding.changed(method="greedy")
        return len(decode(run.model, images, options, first=11, communicator=communicator))

    decoded = []
    monkeypatch.setattr(search, "greedy", counted)
    assert on_ranks(2, captions) == [11, 11]
    assert sorted(decoded) == [[3, 2], [3, 3]]


def test_a_machine_without_java_is_an_error_of_all_ranks(tables, monkeypatch):
    def check(program):
        raise JavaError(f"{program} needs Java")

    def evaluated(communicator):
        run = untrained(tables, CAPTIONS)
        evaluation = replace(run.recipe.evaluation, tokenizer="ptb")
        with pytest.raises(JavaError, match="needs Java"):
            runs.evaluate(run, "val", evaluation=evaluation, communicator=communicator)

    monkeypatch.setattr(captioning, "check_java", check)
    on_ranks(2, evaluated)
