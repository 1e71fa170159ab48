"""With attention to its past and without, a model writes the same."""

import numpy as np

from benchmarks import target_attention, translation

MODEL = translation.Sizes(4, 8, 6, 12, 10, 20, 30, mean=5, spread=2, least=2, most=9)


def test_both_write_the_same_sentences():
    sizes = target_attention.Sizes(beam=3, least=7, most=7, model=MODEL)
    attending, without = (target_attention.prepare(side, sizes)() for side in target_attention.SIDES)
    assert attending == without
    assert [len(sentence) for sentence in without] == [7] * 4


def test_one_of_them_attends():
    attending, without = (target_attention.model(MODEL, attends=attends) for attends in (True, False))
    assert attending.decoder.context_dim == without.decoder.context_dim + MODEL.H


def test_sentences_are_as_long_as_those_of_multi30k():
    source, target = translation.batch(translation.MULTI30K._replace(N=1000))
    assert (target[:, 0] == 1).all()
    for sentences in (source, target[:, 1:]):
        words = (sentences != 0).sum(axis=1) - 1
        assert abs(words.mean() - 13) < 0.5
        assert words.min() == 4
        assert words.max() <= 40
        assert (sentences[np.arange(1000), words] == 2).all()
