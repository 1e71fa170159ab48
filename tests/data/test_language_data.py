"""What sentences and running text have in common; test_text.py and test_running_text.py have the rest."""

import numpy as np
import pytest

from rnnlab.data import RunningText, TextData
from rnnlab.data.language_data import LanguageData, open_lines


@pytest.fixture(params=[TextData, RunningText])
def kind(request):
    return request.param


@pytest.mark.parametrize(("tokenizer", "unit"), [("spaces", "words"), ("characters", "characters")])
def test_tokens_and_texts(kind, tokenizer, unit):
    data = kind({"train": [["a", "b"]]}, tokenizer=tokenizer)
    assert isinstance(data, LanguageData)
    assert data.in_memory
    assert data.unit == unit
    assert data.vocabulary is data.inputs.vocabulary
    np.testing.assert_array_equal(data.prompt(""), [[1]])
    assert data.text(data.prompt("a")[0]) == "a"
    assert data.num_tokens((np.array([[1, 4, 2], [1, 2, 0], [0, 0, 0]]),)) == 3
    assert data.preprocessing()["tokenizer"] == tokenizer


def test_the_beginning_of_a_text():
    assert LanguageData.beginning("a" * 150) == "a" * 150
    assert LanguageData.beginning("a" * 151) == "a" * 150 + " ..."


def test_lines_of_files(tmp_path):
    (tmp_path / "one.txt").write_text("a b\n\nc\n")
    lines, name = open_lines("open", {"train": tmp_path / "one.txt"}, "spaces")
    assert [*lines["train"]] == [["a", "b"], [], ["c"]]
    assert name == "one.txt"


def test_what_is_refused(tmp_path):
    with pytest.raises(TypeError, match="^open: files is a str, expected a dict of files by splits"):
        open_lines("open", "one.txt", "spaces")
    with pytest.raises(ValueError, match="^open: tokenizer is 'words', expected one of text, spaces"):
        open_lines("open", {}, "words")
    with pytest.raises(FileNotFoundError, match="none.txt: found no such file, expected a text file"):
        open_lines("open", {"train": tmp_path / "none.txt"}, "spaces")
