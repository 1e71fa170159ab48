from dataclasses import replace

import numpy as np
import pytest

from rnnlab.data import ParallelData
from rnnlab.decoding import greedy
from rnnlab.metrics import mean_centroid_distance, pointwise_distance
from rnnlab.recipes.recipe import recipe_from_dict
from rnnlab.tasks import task_of
from rnnlab.tasks.discrepancy import discrepancy

LETTERS = "abc"


@pytest.fixture
def given(rng):
    pairs = [(list(rng.choice(list(LETTERS), 3)), list(rng.choice(list(LETTERS), 2))) for _ in range(8)]
    data = ParallelData({"train": pairs, "test": pairs[:5], "empty": []})
    tables = {
        "data": {"kind": "parallel", "directory": "x"},
        "model": {"wordvec_dim": 4, "hidden_dim": 5},
        "training": {"batch_size": 2},
        "decoding": {"method": "beam", "beam_size": 2, "n_best": 2, "max_length": 4},
    }
    recipe = recipe_from_dict(tables)
    return recipe, data, task_of(recipe).new_model(recipe, data)


@pytest.mark.parametrize(("max_length", "finished"), [(4, True), (1, False)])
def test_states_and_distances(max_length, finished, given):
    recipe, data, model = given
    recipe = replace(recipe, decoding=replace(recipe.decoding, max_length=max_length))
    found = discrepancy(recipe, data, model, "test")
    assert found.teacher_forced.shape == found.free_running.shape == (5, 5)
    source, target = data.batch("test", np.arange(5))
    np.testing.assert_allclose(found.teacher_forced, model.last_states(source, target), rtol=1e-5)
    forbid = [model.null_token, model.start_token, model.word_to_idx["<UNK>"]]
    sentences = [best for (best,) in greedy(model, source, max_length=max_length, forbid=forbid)]
    assert [each.finished for each in sentences] == [finished] * 5
    for row, each in enumerate(sentences):
        tokens = [model.start_token, *each.tokens, *[model.end_token] * each.finished]
        expected = model.last_states(source[[row]], np.array([tokens]))[0]
        np.testing.assert_allclose(found.free_running[row], expected, rtol=1e-5)
    assert found.mean_centroid == mean_centroid_distance(found.teacher_forced, found.free_running)
    assert found.pointwise == pointwise_distance(found.teacher_forced, found.free_running)


def test_the_first_sentences_alone(given):
    few, whole = (discrepancy(*given, "test", first=first) for first in (3, None))
    np.testing.assert_allclose(few.free_running, whole.free_running[:3], rtol=1e-5)


def test_an_empty_split(given):
    with pytest.raises(ValueError, match="discrepancy: empty is empty, expected at least one sentence"):
        discrepancy(*given, "empty")


@pytest.mark.parametrize("first", [-1, 0, 2.0])
def test_how_many_sentences(first, given):
    with pytest.raises(ValueError, match=f"^discrepancy: first is {first}, expected an integer of"):
        discrepancy(*given, "test", first=first)
