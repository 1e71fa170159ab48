import shutil
import subprocess

import pytest

from rnnlab.errors import RnnlabError
from rnnlab.metrics import JavaError, ptb_tokenizer, score_captions

pytest.importorskip("pycocoevalcap")
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")

REFERENCES = [["a dog runs on the beach", "the dog is running"], ["a man on a horse"]]


def meteor(candidates, references=REFERENCES):
    return score_captions(candidates, references, tokenize=str.split, metrics=["BLEU", "METEOR"])


def fake_java(monkeypatch, tmp_path, script):
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


@pytest.fixture
def started(monkeypatch):
    """The processes that a test starts."""
    processes = []
    init = subprocess.Popen.__init__

    def record(self, *args, **kwargs):
        init(self, *args, **kwargs)
        processes.append(self)

    monkeypatch.setattr(subprocess.Popen, "__init__", record)
    return processes


@pytest.mark.slow
@needs_java
def test_meteor(started):
    candidates = ["a dog runs on the beach", "a woman ||| on a horse", ""]
    scores = meteor(candidates, [*REFERENCES, ["nobody"]])
    assert scores.notes == []
    perfect, partial, empty = scores.images["METEOR"]
    assert perfect == pytest.approx(1)
    assert 0 < partial < 1
    assert empty == 0
    assert partial < scores.corpus["METEOR"] < 1
    assert [process.poll() is not None for process in started] == [True]


def test_without_java_the_other_scores_come(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    scores = meteor(["a dog", "a horse"])
    assert "METEOR" not in scores.corpus
    assert scores.corpus["BLEU-1"] > 0
    assert scores.notes == ["METEOR is left out: METEOR needs Java, and there is no java on the PATH"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'Invalid maximum heap size' >&2; exit 1", "Invalid maximum heap size"),
        ("echo 'Exception: no memory' >&2; echo '  the last line' >&2; exit 1", "  the last line"),
        (r"printf 'M\351moire' >&2; exit 1", "M\ufffdmoire"),
        ("exit 1", "no output"),
        ("read line; echo nonsense; read line; echo nonsense; read line; echo nonsense", "no output"),
    ],
)
def test_broken_java_is_a_note_and_leaves_no_process(monkeypatch, tmp_path, started, script, said):
    fake_java(monkeypatch, tmp_path, script)
    scores = meteor(["a dog", "a horse"])
    assert scores.notes == [f"METEOR is left out: METEOR's Java process failed: {said}"]
    assert "BLEU-4" in scores.corpus
    assert [process.poll() is not None for process in started] == [True]


def test_meteor_reads_sentences_without_its_separator(monkeypatch, tmp_path):
    script = f"while read -r line; do echo \"$line\" >> '{tmp_path}/read'; echo 0.5; echo 0.5; done"
    fake_java(monkeypatch, tmp_path, script)
    scores = meteor(["a | dog |||"], [["the ||| dog", "a | cat"]])
    assert scores.corpus["METEOR"] == 0.5
    words, _ = [line.split() for line in (tmp_path / "read").read_text().splitlines()]
    assert words == ["SCORE", "|||", "the", "dog", "|||", "a", "|", "cat", "|||", "a", "|", "dog"]


@needs_java
def test_ptb_tokenizer():
    sentences = ["A dog, running: quickly!", "", "Two \u2028 dogs can't;\nswim…", "café", ""]
    tokenize = ptb_tokenizer(sentences)
    words = [tokenize(sentence) for sentence in sentences]
    assert words == [
        ["a", "dog", "running", "quickly"],
        [],
        ["two", "dogs", "ca", "n't", "swim"],
        ["café"],
        [],
    ]


def test_lines_that_end_as_on_windows(monkeypatch, tmp_path):
    fake_java(monkeypatch, tmp_path, r"printf 'a dog .\r\n\r\nthe end\r\n'")
    tokenize = ptb_tokenizer(["A dog.", "", "The end"])
    assert [tokenize(each) for each in ("A dog.", "", "The end")] == [["a", "dog"], [], ["the", "end"]]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 1", "0 lines for 2 sentences: no output"),
        ("echo one line", "1 lines for 2 sentences: no output"),
        ("echo a; echo b; echo 'no memory' >&2; exit 1", "2 lines for 2 sentences: no memory"),
    ],
)
def test_broken_ptb_tokenizer(monkeypatch, tmp_path, script, said):
    fake_java(monkeypatch, tmp_path, script)
    with pytest.raises(JavaError, match=f"the Penn Treebank tokenizer gave {said}$") as caught:
        ptb_tokenizer(["a", "b"])
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, RnnlabError)


def test_ptb_tokenizer_without_java(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match="the Penn Treebank tokenizer needs Java"):
        ptb_tokenizer(["a"])


def test_text_that_java_cannot_read():
    with pytest.raises(ValueError, match=r"ptb_tokenizer: sentences: found 'a \\ud800', expected text"):
        ptb_tokenizer(["b", "a \ud800"])


@needs_java
def test_meteor_of_text_that_java_cannot_read():
    scores = meteor(["a dog", "a \ud800"])
    assert scores.corpus["BLEU-1"] > 0
    (note,) = scores.notes
    assert note == (
        "METEOR is left out: candidates: found 'a \\ud800', expected text, without lone surrogates"
    )
