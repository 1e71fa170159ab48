"""RunningText: streams, windows, text files and errors; test_text_inputs.py has prompts."""

import numpy as np
import pytest

from rnnlab.data import RunningText, open_running_text
from rnnlab.data.sentences import Sentences
from rnnlab.data.text_inputs import TEXT_TOKENIZERS
from rnnlab.data.vocabulary import END, NULL, START, UNK

LINES = {"train": [["a", "b"], [], ["b", "c", "b", "a"]], "val": [["b", "d"], []]}


def letters(count, window):
    """A text of ``count`` words, all different and in the order of their tokens."""
    words = [f"{k:03}" for k in range(count - 1)]
    return RunningText({"train": [words]}, window=window, tokenizer="spaces")


def test_the_ends_of_lines_are_words():
    data = RunningText(LINES)
    assert data.vocabulary.idx_to_word[4:] == ["\n", "b", "a", "c"]
    np.testing.assert_array_equal(data.split("train").tokens, [6, 5, 4, 4, 5, 7, 5, 6, 4])
    np.testing.assert_array_equal(data.split("val").tokens, [5, UNK, 4, 4])
    assert [data.text(split.tokens) for split in data.splits.values()] == ["a b\n\nb c b a\n", "b <UNK>\n\n"]
    assert repr(data) == "RunningText(text: words: train 9, val 4; windows of 35; vocabulary of 8)"
    assert repr(data.split("val")) == "RunningSplit(4 words)"
    assert RunningText(LINES, min_count=3).vocabulary.idx_to_word[4:] == ["\n", "b"]
    assert RunningText(LINES, max_size=1).vocabulary.idx_to_word[4:] == ["\n"]


def test_rows_continue_those_of_the_batch_before():
    """Two streams of 5 and 4 words, in windows of 3."""
    data = RunningText(LINES, window=3)
    first, last = data.epoch("train", 2)
    (one,), (other,) = data.batch("train", first), data.batch("train", last)
    np.testing.assert_array_equal(one, [[START, 6, 5, 4], [START, 7, 5, 6]])
    np.testing.assert_array_equal(other, [[4, 4, 5], [6, 4, NULL]])
    assert one.dtype == np.int32
    assert [data.num_tokens(batch) for batch in ((one,), (other,))] == [6, 3]
    np.testing.assert_array_equal(data.row_lengths("train", last), [2, 1])
    np.testing.assert_array_equal(data.batch("train", last[1:])[0], [[6, 4]])
    np.testing.assert_array_equal(
        data.streams("train", 2), [[START, 6, 5, 4, 4, 5], [START, 7, 5, 6, 4, NULL]]
    )
    assert len(data.batch("train", first[:0])[0]) == 0


@pytest.mark.parametrize("window", [1, 3, 7, 100])
@pytest.mark.parametrize("streams", [1, 2, 5, 23, 24, 40])
@pytest.mark.parametrize("count", [1, 2, 23, 24])
def test_an_epoch_has_every_word_once(count, streams, window):
    data = letters(count, window)
    text = data.split("train").tokens.tolist()
    N = min(count, streams)
    rows = [[] for _ in range(N)]
    for number, windows in enumerate(data.epoch("train", streams, np.random.default_rng(1))):
        (batch,) = data.batch("train", windows)
        assert 2 <= batch.shape[1] <= window + 1
        for row, found in zip(rows, batch.tolist(), strict=True):
            before, *words = found
            assert before == (row[-1] if number else START)
            row += [word for word in words if word != NULL]
        np.testing.assert_array_equal(data.row_lengths("train", windows), (batch[:, 1:] != NULL).sum(axis=1))
    assert [word for row in rows for word in row] == text
    assert {len(row) for row in rows} <= {count // N, count // N + 1}
    streamed = data.streams("train", streams)
    assert [[word for word in row[1:] if word != NULL] for row in streamed.tolist()] == rows


def test_a_window_of_any_size():
    whole = letters(9, 2**80)
    (windows,) = whole.epoch("train", 2)
    np.testing.assert_array_equal(whole.batch("train", windows)[0], whole.streams("train", 2))


def test_a_split_without_words_has_no_batch():
    data = RunningText(LINES | {"val": []})
    assert data.epoch("val", 3) == []
    assert data.streams("val", 3).shape[0] == 0


def test_fingerprints_tell_data_apart():
    expected = RunningText(LINES).fingerprint()
    assert expected == RunningText({name: map(list, some) for name, some in LINES.items()}).fingerprint()
    changed = RunningText(LINES | {"val": [["b", "a"], []]}).fingerprint()
    assert changed["train"] == expected["train"]
    assert changed["val"] != expected["val"]
    assert RunningText(LINES, window=3).fingerprint() != expected
    apart = RunningText(LINES)
    apart.carries_state = False
    assert apart.fingerprint() != expected


def test_a_summary():
    assert RunningText(LINES, tokenizer="spaces", name="letters").describe().splitlines() == [
        "letters: 8 words, windows of 35",
        "split                  lines         words   <UNK>",
        "train                      3             9    0.0%",
        "val                        2             4   25.0%",
        "train: a b b c b a",
        "val: b d",
    ]
    data = RunningText({"train": [list("ab " * 70)], "val": []}, tokenizer="characters", window=3)
    assert data.describe().splitlines() == [
        "text: 8 characters, windows of 3",
        "split                  lines    characters   <UNK>",
        "train                      1           211    0.0%",
        "val                        0             0    0.0%",
        f"train: {'ab ' * 50} ...",
    ]


def test_a_summary_does_not_read_a_long_line(monkeypatch):
    """The list of its words could take more memory than the data."""
    data = RunningText({"train": [["word"] * 100_000]}, tokenizer="spaces")
    monkeypatch.delattr(Sentences, "__getitem__")
    assert data.describe().splitlines()[-1] == f"train: {'word ' * 30} ..."


def test_an_epoch_needs_no_seed():
    with pytest.raises(TypeError, match="epoch: rng is 3, expected a numpy Generator or None"):
        RunningText(LINES).epoch("train", 2, 3)


def test_lines_of_files(tmp_path):
    (tmp_path / "a.txt").write_bytes("Zwei Hunde.\r\n\n n\u0303a".encode())
    (tmp_path / "b.txt").write_text("ein\n")
    files = {"train": tmp_path / "a.txt", "val": str(tmp_path / "b.txt")}
    text, characters = open_running_text(files), open_running_text(files, tokenizer="characters", window=4)
    assert list(text.split("train").sentences) == [["zwei", "hunde", ".", "\n"], ["\n"], ["ña", "\n"]]
    assert characters.text(characters.split("train").tokens) == "Zwei Hunde.\n\n ña\n"
    assert (characters.name, characters.window) == ("a.txt, b.txt", 4)
    assert END not in characters.split("train").tokens


@pytest.mark.parametrize("tokenizer", ["text", "characters"])
def test_a_line_of_any_length(tmp_path, tokenizer):
    line = "".join(f"Word{k} " for k in range(200_000))  # of two megabytes
    (tmp_path / "a.txt").write_text(f"{line}\nend\n")
    data = open_running_text({"train": tmp_path / "a.txt"}, tokenizer=tokenizer)
    train = data.split("train")
    assert len(train.sentences) == 2
    words = [*TEXT_TOKENIZERS[tokenizer](line), "\n", *TEXT_TOKENIZERS[tokenizer]("end"), "\n"]
    assert [data.vocabulary.idx_to_word[token] for token in train.tokens] == words


def test_wrong_files(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(TypeError, match="^open_running_text: files is a PosixPath, expected a dict of files"):
        open_running_text(path)
    with pytest.raises(FileNotFoundError, match="a.txt"):
        open_running_text({"train": path})
    path.write_bytes(b"fine\n\xff\n")
    with pytest.raises(ValueError, match=r"a\.txt:2: "):
        open_running_text({"train": path})
    path.write_text("")
    with pytest.raises(
        ValueError, match="RunningText: a.txt: found train 0, expected lines of a split train"
    ):
        open_running_text({"train": path})
    (tmp_path / "b.txt").write_text("fine\n")
    with pytest.raises(ValueError, match=r"a\.txt: found no line, expected those of the split val"):
        open_running_text({"train": tmp_path / "b.txt", "val": path})
    with pytest.raises(
        ValueError, match="^open_running_text: tokenizer is 'words', expected one of text, spaces"
    ):
        open_running_text({"train": path}, tokenizer="words")


@pytest.mark.parametrize(
    ("lines", "options", "error", "message"),
    [
        ([["a"]], {}, TypeError, "lines is a list, expected a dict of lines by splits"),
        ({}, {}, ValueError, "text: found no split, expected lines of a split train"),
        ({"val": [["a"]]}, {}, ValueError, "text: found val 1, expected lines of a split train"),
        ({"train": ["ab"]}, {}, TypeError, "a sentence is the string 'ab', expected a list"),
        ({"train": [[3]]}, {}, TypeError, "a sentence has 3, expected words, which are strings"),
        (LINES, {"window": 0}, ValueError, "window is 0"),
        (LINES, {"window": 2.5}, (ValueError, TypeError), r"window is 2\.5"),
        (LINES, {"min_count": 0}, ValueError, "min_count is 0"),
        (LINES, {"tokenizer": "sentencepiece"}, ValueError, "tokenizer is 'sentencepiece', expected one of"),
    ],
)
def test_wrong_arguments(lines, options, error, message):
    with pytest.raises(error, match=message):
        RunningText(lines, **options)


def test_batches_are_of_windows():
    data = RunningText(LINES)
    with pytest.raises(TypeError, match="RunningText.batch: indices are int64, expected windows as epoch"):
        data.batch("train", np.array([0, 1]))
    with pytest.raises(TypeError, match="RunningText.batch: indices are list, expected windows"):
        data.batch("train", [0])
    for count in (0, 2.5):
        with pytest.raises(ValueError, match=f"epoch: batch_size is {count}, expected an integer"):
            data.epoch("train", count)
        with pytest.raises(ValueError, match=f"streams: count is {count}, expected an integer"):
            data.streams("train", count)
    with pytest.raises(KeyError, match="not 'test'"):
        data.epoch("test", 2)
