import numpy as np
import pytest

from rnnlab.reporting.page.translated import translation_cards
from rnnlab.tasks.translation import translate


def test_translations_have_the_attention_of_decoding(translated):
    results = translated()
    cards, notes = translation_cards([results], 5)
    run = results.run
    pairs = run.data.split("val")
    assert notes == ["The first 5 of 9 sentences."]
    found = translate(run.model, pairs.source[:5], run.recipe.decoding, return_alignments=True)
    for k, card in enumerate(cards):
        assert card.source == [*pairs.source[k], "<END>"]
        assert card.references == [" ".join(pairs.target[k])]
        (sentence,) = card.translations
        assert [word.text for word in sentence.words] == found[k][0].words
        for word, expected in zip(sentence.words, found[k][0].hypothesis.alignment, strict=False):
            weights = np.frombuffer(bytes.fromhex(word.weights), np.uint8)
            np.testing.assert_allclose(weights, 255 * expected / expected.max(), atol=1)


def test_a_model_without_attention_has_no_maps(translated):
    cards, notes = translation_cards([translated(), translated("two", attention=None)], 2)
    assert [word.weights for word in cards[0].translations[1].words] == [""] * len(
        cards[0].translations[1].words
    )
    assert notes[-1] == "two: its model does not attend to the source, so it has no maps."


def test_runs_with_other_sentences_are_left_out(translated):
    cards, notes = translation_cards([translated(), translated("two", seed=5)], 2)
    assert [len(card.translations) for card in cards] == [1, 1]
    assert notes[-1] == "two: its split has other sentences, so its translations are left out."


@pytest.mark.parametrize("count", [0, 5])
def test_nothing_is_shown_where_nothing_translates(captioned, translated, count):
    assert translation_cards([captioned()] if count else [translated()], count) == ([], [])
