"""The scores of a run."""

from dataclasses import replace

import numpy as np
import pytest

from rnnlab import runs
from rnnlab.recipes.tables import CaptioningEvaluationTable
from rnnlab.tasks.search import decode
from rnnlab.training import validation_loss


def test_arguments_that_are_something_else(recipe, tmp_path):
    with pytest.raises(
        TypeError, match="evaluate: run is 'runs/a', expected a Run, such as load_run returns"
    ):
        runs.evaluate("runs/a", "val")
    with pytest.raises(TypeError, match="discrepancy: run is 'runs/a', expected a Run"):
        runs.discrepancy("runs/a")
    run = runs.Run(tmp_path, recipe, None, None)
    with pytest.raises(ValueError, match="was opened without its data"):
        runs.evaluate(run, "val")
    with pytest.raises(ValueError, match="discrepancy: .* was opened without its data"):
        runs.discrepancy(run)
    run = replace(run, data=runs.open_data(recipe.data))
    with pytest.raises(ValueError, match="discrepancy: run is an ensemble of 2 runs, expected one run"):
        runs.discrepancy(replace(run, members=(tmp_path, tmp_path)))
    for name in ("decoding", "evaluation"):
        with pytest.raises(TypeError, match=f"evaluate: {name} is {{}}, expected a .*run.recipe.{name}[.,]"):
            runs.evaluate(run, "val", **{name: {}})


def test_the_perplexity_is_that_of_the_images_that_are_scored(recipe, tmp_path):
    pytest.importorskip("pycocoevalcap")
    data = runs.open_data(recipe.data)
    run = runs.Run(tmp_path, recipe, data, runs.new_model(recipe, data))

    def perplexity(**options):
        options = CaptioningEvaluationTable(metrics=["BLEU"], **options)
        return runs.evaluate(run, "val", evaluation=options).perplexity

    expected = validation_loss(run.model, data, 64)["val_perplexity"]
    assert perplexity() == perplexity(max_images=1000) == pytest.approx(expected, rel=1e-6)
    val = data.split("val")
    nats, tokens = run.model.nll(np.repeat(val.features[:7], 5, axis=0), val.captions[:35])
    assert perplexity(max_images=7) == pytest.approx(np.exp(nats / tokens), rel=1e-6)
    data.splits["val"] = replace(val, captions=val.captions[-5:], image_idxs=val.image_idxs[-5:])
    with pytest.raises(ValueError, match="max_images: found no captions of the first 7 images of val"):
        perplexity(max_images=7)


def test_other_options_of_the_search(recipe, tmp_path):
    pytest.importorskip("pycocoevalcap")
    data = runs.open_data(recipe.data)
    run = runs.Run(tmp_path, recipe, data, runs.new_model(recipe, data))
    run.model.params["b_vocab"][run.model.end_token] = -50.0  # sentences of the maximum length

    def lengths(decoding):
        options = CaptioningEvaluationTable(metrics=["BLEU"], max_images=3)
        captions = runs.evaluate(run, "val", decoding=decoding, evaluation=options).captions
        return [len(best.tokens) for best, *_ in captions]

    assert lengths(None) == [recipe.decoding.max_length] * 3
    assert lengths(replace(recipe.decoding, max_length=2)) == [2] * 3


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_forbidden_words_are_never_written(recipe, method):
    data = runs.open_data(recipe.data)
    model = runs.new_model(recipe, data)
    model.params["b_vocab"][:4] = 5.0  # an untrained model that loves the special words
    captions = decode(model, data.split("val").features[:20], recipe.decoding.changed(method=method))
    assert len(captions) == 20
    for (best,) in captions:
        assert not set(best.tokens) & {0, 1, 2, 3}
