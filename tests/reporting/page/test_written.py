import pytest

from rnnlab.reporting.page.written import written_texts
from rnnlab.tasks import language


def test_texts_are_those_of_the_recipe(writing):
    results = writing()
    run = results.run
    ((number, texts),) = written_texts([results], 5)
    drawn = language.write(run.model, run.inputs, "", run.recipe.decoding, count=5, rng=0)
    assert number == 0
    assert texts == [run.inputs.text(each.tokens) for each in drawn]
    assert len(set(texts)) > 1
    assert [len(each.texts) for each in written_texts([results], 40)] == [8]
    assert written_texts([results], 0) == []


def test_searches_have_their_n_best(writing):
    found = written_texts([writing(method="beam", beam_size=3, n_best=3)], 2)
    assert [len(each.texts) for each in found] == [2]
    (greedy,) = written_texts([writing(method="greedy", kind="running_text", max_length=4)], 40)
    assert [len(text) for text in greedy.texts] == [4]


@pytest.mark.parametrize("count", [0, 5])
def test_other_models_write_nothing(captioned, translated, writing, count):
    results = [captioned(), translated(), writing("three"), writing("four", kind="running_text")]
    assert [each.run for each in written_texts(results, count)] == ([2, 3] if count else [])
