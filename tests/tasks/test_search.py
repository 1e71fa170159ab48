"""A recipe's table [decoding]: every key of it reaches the search."""

from dataclasses import fields

import numpy as np
import pytest

from rnnlab.data.padding import PaddedRows
from rnnlab.decoding import Ensemble
from rnnlab.decoding.method_options import METHOD_OPTIONS
from rnnlab.models import Seq2Seq
from rnnlab.recipes.tables import DecodingTable
from rnnlab.tasks import search

WORDS = {"x": 0, "<UNK>": 1, "<NULL>": 2, "<END>": 3, "<START>": 4}  # not in the usual order
NOT_DEFAULT = {"max_length": 9, "min_length": 2, "no_repeat_ngram": 3, "beam_size": 4, "n_best": 2}
NOT_DEFAULT |= {"length_penalty": 0.7, "normalisation": "gnmt", "num_groups": 2, "diversity": 1.5}
NOT_DEFAULT |= {"temperature": 0.6, "top_k": 3, "top_p": 0.9}
FUNCTIONS = {"greedy": "greedy", "beam": "beam_search", "sample": "sample"}


@pytest.mark.parametrize("method", FUNCTIONS)
def test_every_key_reaches_the_search(method, monkeypatch):
    asked = []
    monkeypatch.setattr(search, FUNCTIONS[method], lambda _, rows, **options: asked.append(options) or rows)
    of_others = {key for other, keys in METHOD_OPTIONS.items() if other != method for key in keys}
    given = {key: value for key, value in NOT_DEFAULT.items() if key not in of_others}
    options = DecodingTable(method=method, **given)
    found = search.decode(Seq2Seq(WORDS, WORDS, 2, 2), np.zeros((300, 1), int), options, rng=5)
    assert len(found) == 300
    for options in asked:
        assert {key: options[key] for key in given} == given
        assert options["forbid"] == [WORDS["<NULL>"], WORDS["<START>"], WORDS["<UNK>"]]
        assert options.keys() - given.keys() == {"forbid", "return_alignments"} | (
            {"rng"} if method == "sample" else set()
        )


def test_samples_need_a_seed():
    model, rows = Seq2Seq(WORDS, WORDS, 2, 2), np.zeros((2, 1), int)
    with pytest.raises(TypeError, match="^decode: rng is None, expected a numpy Generator or a seed"):
        search.decode(model, rows, DecodingTable(method="sample"), rng=None)


@pytest.mark.parametrize("method", FUNCTIONS)
def test_how_many_rows_are_decoded_together(method, device, monkeypatch):
    """More on a GPU; samples are drawn for the same blocks everywhere."""
    asked = []
    monkeypatch.setattr(search, FUNCTIONS[method], lambda _, rows, **options: asked.append(len(rows)) or rows)
    model, options = Seq2Seq(WORDS, WORDS, 2, 2), DecodingTable(method=method)
    pair = Ensemble([model, Seq2Seq(WORDS, WORDS, 2, 2, rng=1)])
    search.decode(model, np.zeros((600, 1), int), options)
    assert asked == [250, 250, 100]
    model.to("gpu")
    for each in (model, pair):
        asked.clear()
        search.decode(each, np.zeros((2100, 1), int), options)
        assert asked == [250] * 8 + [100] if method == "sample" else asked == [2000, 100]


def test_a_very_long_sentence_pads_no_others(monkeypatch):
    asked = []
    monkeypatch.setattr(
        search, "greedy", lambda _, rows, **options: asked.append(rows.shape) or [None] * len(rows)
    )
    model, options = Seq2Seq(WORDS, WORDS, 2, 2), DecodingTable(method="greedy")
    rows = [np.zeros(length, np.int32) for length in [5] * 300 + [60_000, 3] + [400] * 200]
    found = search.decode(model, PaddedRows(rows), options)
    assert len(found) == len(rows)
    assert asked == [(250, 5), (50, 5), (1, 60_000), (125, 400), (76, 400)]


def test_no_key_is_left_out_here():
    assert {field.name for field in fields(DecodingTable)} == {*NOT_DEFAULT, "method", "forbid_unknown"}


def test_unknown_words_may_be_allowed(monkeypatch):
    asked = []
    monkeypatch.setattr(search, "greedy", lambda _, rows, **options: asked.append(options) or rows)
    model = Seq2Seq(WORDS, WORDS, 2, 2)
    search.decode(model, np.zeros((1, 1), int), DecodingTable(method="greedy", forbid_unknown=False))
    assert asked[0]["forbid"] == [WORDS["<NULL>"], WORDS["<START>"]]
