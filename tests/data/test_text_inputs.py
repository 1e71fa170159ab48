"""Prompts and texts of a language model, also from what a checkpoint saves."""

import numpy as np
import pytest

from rnnlab.data import RunningText, TextData
from rnnlab.data.text_inputs import TEXT_TOKENIZERS, TextInputs
from rnnlab.data.vocabulary import END, NULL, START


@pytest.mark.parametrize(
    ("tokenizer", "text", "written"),
    [
        ("text", "A man's dog!", "a man 's dog !"),
        ("spaces", "A dog!", "A dog!"),
        ("characters", "Ab b", "Ab b"),
    ],
)
def test_prompts_and_texts(tokenizer, text, written):
    words = TEXT_TOKENIZERS[tokenizer](text)
    data = TextData({"train": [words]}, tokenizer=tokenizer)
    inputs = TextInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    assert inputs == data.inputs
    prompt = inputs.prompt(text)
    assert prompt.shape == (1, 1 + len(words))
    np.testing.assert_array_equal(data.prompt(text), prompt)
    assert inputs.text(prompt[0]) == data.text(prompt[0]) == written
    assert inputs.text([START, *prompt[0, 1:], END, NULL]) == written
    np.testing.assert_array_equal(inputs.prompt(""), [[START]])


def test_a_prompt_of_unknown_words():
    inputs = TextData({"train": [["a", "<UNK>"]]}, tokenizer="spaces").inputs
    for text, word in (("a dog", "dog"), ("<END> a", "<END>"), ("<UNK>", "<UNK>")):
        with pytest.raises(ValueError, match=f"the prompt has '{word}', expected words of the vocabulary"):
            inputs.prompt(text)


def test_composed_characters():
    assert TEXT_TOKENIZERS["characters"]("n\u0303a") == ["ñ", "a"]


def test_wrong_prompts_and_tokens():
    inputs = TextData({"train": [["a"]]}).inputs
    for wrong in (["a"], 3, b"a"):
        with pytest.raises(TypeError, match=f"prompt: text is a {type(wrong).__name__}, expected a string"):
            inputs.prompt(wrong)
    for token in (5, -1):
        with pytest.raises(IndexError, match=f"text: token {token} is outside the vocabulary of 5 words"):
            inputs.text([token])
    with pytest.raises(TypeError, match="text: ids holds a list, expected integers"):
        inputs.text([[4, 4]])
    assert inputs.text([4, END, 4]) == "a"


@pytest.mark.parametrize(
    ("tokenizer", "text", "written"),
    [
        ("text", "A man's  dog!\n\nA\n", "a man 's dog !\n\na\n"),
        ("spaces", "\n A dog!", "\nA dog!"),
        ("characters", "Ab\n b", "Ab\n b"),
    ],
)
def test_prompts_of_running_text_have_lines(tokenizer, text, written):
    data = RunningText({"train": map(TEXT_TOKENIZERS[tokenizer], text.split("\n"))}, tokenizer=tokenizer)
    inputs = TextInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    assert inputs == data.inputs
    assert inputs.running
    np.testing.assert_array_equal(data.prompt(text), [[START, *data.split("train").tokens[:-1]]])
    np.testing.assert_array_equal(data.prompt(text.replace("\n", "\r\n")), data.prompt(text))
    assert inputs.text(data.prompt(text)[0]) == data.text(data.prompt(text)[0]) == written


def test_sentences_have_no_lines():
    data = TextData({"train": [["a"]]}, tokenizer="characters")
    assert data.preprocessing() == {"tokenizer": "characters"}
    with pytest.raises(ValueError, match=r"the prompt has '\\n', expected words of the vocabulary"):
        data.prompt("a\n")
