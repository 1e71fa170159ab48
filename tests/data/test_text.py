"""TextData: vocabulary, rows, batches, text files and errors; test_text_inputs.py has prompts."""

import gzip

import numpy as np
import pytest

from rnnlab.data import TextData, open_text
from rnnlab.data.vocabulary import END, NULL, START, UNK

SENTENCES = {"train": [["a", "b"], ["a"], ["b", "c", "b", "a"]], "val": [["b", "d"], []]}


def test_the_vocabulary_is_that_of_the_training_split():
    assert TextData(SENTENCES).vocabulary.idx_to_word[4:] == ["a", "b", "c"]
    assert TextData(SENTENCES, min_count=2).vocabulary.idx_to_word[4:] == ["a", "b"]
    assert TextData(SENTENCES, max_size=1).vocabulary.idx_to_word[4:] == ["a"]


def test_a_batch_has_the_tokens_and_padding():
    data = TextData(SENTENCES)
    (train,), (val,) = data.batch("train", [2, 1]), data.batch("val", np.array([0, 1]))
    np.testing.assert_array_equal(train, [[START, 5, 6, 5, 4, END], [START, 4, END, NULL, NULL, NULL]])
    np.testing.assert_array_equal(val, [[START, 5, UNK, END], [START, END, NULL, NULL]])
    assert train.dtype == np.int32
    assert (data.num_tokens((train,)), data.num_tokens((val,))) == (5 + 2, 3 + 1)
    np.testing.assert_array_equal(data.row_lengths("train", np.array([0, 2])), [4, 6])
    assert data.batch("val", [])[0].shape == (0, 0)
    assert repr(data) == "TextData(text: train 3 sentences, val 2 sentences; 7 words)"
    assert repr(data.split("val")) == "TextSplit(2 sentences)"


def test_long_training_sentences_are_left_out():
    data = TextData(SENTENCES, max_length=2)
    assert list(data.split("train").sentences) == [["a", "b"], ["a"]]
    assert data.num_long == 1
    assert "c" not in data.vocabulary
    assert len(TextData(SENTENCES, max_length=1).split("val")) == 2


def test_some_training_sentences():
    data = TextData(SENTENCES, max_train=2)
    assert len(data.split("train")) == 2
    assert len(data.split("val")) == 2
    assert data.vocabulary.idx_to_word[4:] == ["a", "b", "c"]


def test_an_epoch_has_every_sentence_once(rng):
    data = TextData({"train": [["w"] * int(length) for length in rng.integers(1, 40, 100)]})
    shuffled = data.epoch("train", 7, np.random.default_rng(1))
    assert [len(rows) for rows in shuffled] == [7] * 14 + [2]
    assert sorted(np.concatenate(shuffled)) == list(range(100))
    np.testing.assert_array_equal(np.concatenate(data.epoch("train", 64)), np.arange(100))
    with pytest.raises(ValueError, match="batch_size is 0"):
        data.epoch("train", 0, rng)


def test_fingerprints_tell_data_apart():
    expected = TextData(SENTENCES).fingerprint()
    assert expected == TextData({name: map(list, some) for name, some in SENTENCES.items()}).fingerprint()
    changed = TextData(SENTENCES | {"val": [["b", "a"], []]}).fingerprint()
    assert changed["train"] == expected["train"]
    assert changed["val"] != expected["val"]


def test_a_summary():
    data = TextData(SENTENCES, max_length=3, tokenizer="spaces", name="letters")
    assert data.describe().splitlines() == [
        "letters: 6 words",
        "1 training sentences of more than 3 words were dropped",
        "split              sentences       words  longest   <UNK>",
        "train                      2         1.5        2    0.0%",
        "val                        2         1.0        2   50.0%",
        "train: a b",
        "val: b d",
    ]
    data = TextData({"train": [list("ab " * 51)], "val": []}, tokenizer="characters")
    assert data.describe().splitlines() == [
        "text: 7 characters",
        "split              sentences  characters  longest   <UNK>",
        "train                      1       153.0      153    0.0%",
        "val                        0         0.0        0    0.0%",
        f"train: {'ab ' * 50} ...",
    ]


# ---------------------------------------------------------------- files


def test_lines_of_files(tmp_path):
    (tmp_path / "a.txt").write_bytes("Zwei Hunde.\r\n\n  \nn\u0303a\n".encode())
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("ein Hund")
    files = {"train": tmp_path / "a.txt", "val": str(tmp_path / "b.txt.gz")}
    text, characters = open_text(files), open_text(files, tokenizer="characters", min_count=1, name="mine")
    assert list(text.split("train").sentences) == [["zwei", "hunde", "."], ["ña"]]
    assert list(text.split("val").sentences) == [["ein", "hund"]]
    assert list(characters.split("train").sentences) == [list("Zwei Hunde."), list("  "), ["ñ", "a"]]
    assert (text.name, characters.name) == ("a.txt, b.txt.gz", "mine")


def test_wrong_files(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(
        TypeError, match="open_text: files is a PosixPath, expected a dict of files by splits"
    ):
        open_text(path)
    with pytest.raises(FileNotFoundError, match="a.txt"):
        open_text({"train": path})
    with pytest.raises(TypeError, match="found None as the path of a file, expected a text file"):
        open_text({"train": None})
    path.write_bytes(b"fine\n\xff\n")
    with pytest.raises(ValueError, match=r"a\.txt:2: "):
        open_text({"train": path})
    path.write_text("\n\n")
    with pytest.raises(
        ValueError, match="TextData: a.txt: found train 0, expected sentences of a split train"
    ):
        open_text({"train": path})
    (tmp_path / "b.txt").write_text("fine\n")
    with pytest.raises(ValueError, match=r"a\.txt: found no sentence, expected those of the split val"):
        open_text({"train": tmp_path / "b.txt", "val": path})
    with pytest.raises(
        ValueError, match="open_text: tokenizer is 'words', expected one of text, spaces, char"
    ):
        open_text({"train": path}, tokenizer="words")


@pytest.mark.parametrize(
    ("sentences", "options", "error", "message"),
    [
        ([["a"]], {}, TypeError, "sentences is a list, expected a dict of sentences by splits"),
        ({}, {}, ValueError, "text: found no split, expected sentences of a split train"),
        ({"val": [["a"]]}, {}, ValueError, "text: found val 1, expected sentences of a split train"),
        (
            {"train": [["a", "b"]]},
            {"max_length": 1},
            ValueError,
            "and 1 training sentences longer than max_len",
        ),
        ({"train": ["ab"]}, {}, TypeError, "a sentence is the string 'ab', expected a list"),
        ({"train": [[3]]}, {}, TypeError, "a sentence has 3, expected words, which are strings"),
        (SENTENCES, {"min_count": 0}, ValueError, "min_count is 0"),
        (SENTENCES, {"max_length": True}, ValueError, "max_length is True"),
        (
            SENTENCES,
            {"tokenizer": "sentencepiece"},
            ValueError,
            "tokenizer is 'sentencepiece', expected one of",
        ),
    ],
)
def test_wrong_sentences(sentences, options, error, message):
    with pytest.raises(error, match=message):
        TextData(sentences, **options)


@pytest.mark.parametrize("indices", [[0.0], ["a"]])
def test_wrong_indices(indices):
    with pytest.raises(TypeError, match="TextData.batch: indices have dtype"):
        TextData(SENTENCES).batch("train", indices)
