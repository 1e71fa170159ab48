import numpy as np
import pytest

from rnnlab import cli
from rnnlab.serving.translation import Translator


def test_a_sentence_has_the_translations_of_the_command(letters, answerer, capsys):
    found = answerer(Translator, letters).translate("a b c", 4)
    capsys.readouterr()
    assert cli.main(["translate", str(letters), "a b c", "--beam", "4", "--n-best", "4"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    expected = [(" ".join(words), float(score)) for score, *words in lines]
    assert [(text, round(score, 3)) for text, score in found.translations] == expected
    assert len(expected) == 4
    assert found.unknown == []


def test_the_attention_of_the_best_translation(letters, answerer):
    found = answerer(Translator, letters).translate("a b c", 3)
    assert found.alignment.source == ["a", "b", "c", "<END>"]
    assert found.alignment.words[: len(found.translations[0][0].split())] == found.translations[0][0].split()
    assert found.alignment.weights.shape == (len(found.alignment.words), 4)
    np.testing.assert_allclose(found.alignment.weights.sum(axis=1), 1, rtol=1e-5)


def test_unknown_words_are_named_once(letters, answerer):
    assert answerer(Translator, letters).translate("a zebra b zebra ox", 1).unknown == ["zebra", "ox"]


def test_a_model_without_attention(letters, answerer):
    translator = answerer(Translator, letters)
    expected = translator.translate("a b", 2)
    translator.attends = False
    found = translator.translate("a b", 2)
    assert found == (expected.translations, [], None)


def test_a_text_of_as_many_words_as_are_allowed(letters, answerer, monkeypatch):
    monkeypatch.setattr("rnnlab.serving.translation._MOST_WORDS", 3)
    assert answerer(Translator, letters).translate("a b c", 1).translations


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no text to translate: write some first"),
        (" \n", "there is no text to translate"),
        ("a " * 1001, "the text has 1,001 words, expected at most 1,000"),
    ],
)
def test_texts_without_words_or_with_too_many(letters, answerer, text, message):
    with pytest.raises(ValueError, match=message):
        answerer(Translator, letters).translate(text, 1)
