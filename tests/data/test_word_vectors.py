"""Files of word vectors: every format is read alike, and what is wrong with a file is named."""

import gzip
import re
import tracemalloc

import numpy as np
import pytest

from rnnlab.data import load_word_vectors, read_word_vectors, word_vectors
from rnnlab.models import CaptioningRNN, Seq2Seq

WORDS = ["the", "of", "schön", "—", ". . .", "42", "dog"]
VECTORS = np.random.default_rng(5).standard_normal((len(WORDS), 6)).astype(np.float32)


def glove(words=WORDS, vectors=VECTORS):
    lines = [" ".join([word, *map(repr, map(float, row))]) for word, row in zip(words, vectors, strict=True)]
    return "".join(f"{line}\n" for line in lines).encode()


def text(words=WORDS, vectors=VECTORS):
    return b"%d %d\n" % vectors.shape + glove(words, vectors).replace(b"\n", b" \n")  # as word2vec writes it


def binary(words=WORDS, vectors=VECTORS, end=b"\n"):
    records = [
        word.encode() + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, vectors, strict=True)
    ]
    return b"%d %d\n" % vectors.shape + b"".join(records)


def unspaced(content):
    """Words with spaces do not exist in word2vec's binary format."""
    return [word.replace(" ", "_") for word in content]


FORMATS = {
    "glove": glove(),
    "glove with BOM and CRLF": b"\xef\xbb\xbf" + glove().replace(b"\n", b"\r\n"),
    "word2vec text with BOM and CRLF": b"\xef\xbb\xbf" + text().replace(b"\n", b"\r\n"),
    "glove without the last newline": glove().rstrip(b"\n"),
    "text": text(),
    "binary": binary(unspaced(WORDS)),
    "binary without newlines": binary(unspaced(WORDS), end=b""),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_all_formats(tmp_path, name, packed):
    content = FORMATS[name]
    (tmp_path / "vectors").write_bytes(gzip.compress(content) if packed else content)
    found = read_word_vectors(tmp_path / "vectors", ["dog", "schön", "The", "the", "42"], dim=6)
    assert list(found) == ["the", "schön", "42", "dog"]
    for word, vector in found.items():
        assert vector.dtype == np.float32
        np.testing.assert_array_equal(vector, VECTORS[WORDS.index(word)])


def test_records_across_the_parts_that_are_read(tmp_path, monkeypatch):
    (tmp_path / "vectors").write_bytes(binary(unspaced(WORDS)))
    for chunk in (1, 7, 29, 64):
        monkeypatch.setattr(word_vectors, "_CHUNK", chunk)
        found = read_word_vectors(tmp_path / "vectors", unspaced(WORDS))
        np.testing.assert_array_equal(list(found.values()), VECTORS)


@pytest.mark.slow
@pytest.mark.parametrize("write", [text, binary])
def test_memory_is_that_of_the_words_asked_for(tmp_path, write):
    words = [f"w{number}" for number in range(20_000)]
    (tmp_path / "vectors").write_bytes(write(words, np.full((20_000, 100), 0.25, np.float32)))
    tracemalloc.start()
    try:
        assert list(read_word_vectors(tmp_path / "vectors", ["w19999"])) == ["w19999"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6 < (tmp_path / "vectors").stat().st_size


GLOVE = b"the 0.1 0.2 0.3\nof 0.4 0.5 0.6\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "FILE: found an empty file, expected word vectors of GloVe or word2vec"),
        (b"words\n", r"FILE:1: found b'words\\n', expected a word and its numbers, or word2vec's header"),
        (GLOVE + b"a 0.1 0.2\n", "FILE:3: found 2 numbers after 'a', expected 3"),
        (GLOVE + b"a 0.1 0.2 0.3 0.4\n", "FILE:3: found 4 numbers after 'a', expected 3"),
        (GLOVE + b"dog  0.1 0.2 0.3\n", "FILE:3: found 4 numbers after 'dog', expected 3"),
        (GLOVE + b"\n" + GLOVE, "FILE:3: found 0 numbers after '', expected 3"),
        (GLOVE + b"dog 0.1 x 0.3\n", "FILE:3: found the value 'x' of 'dog', expected a number"),
        (GLOVE + b"dog 0.1 \xff 0.3\n", r"FILE:3: found the value '\\\\xff' of 'dog', expected a number"),
        (GLOVE + b"dog 0.1 nan 0.3\n", "FILE:3: found a value of 'dog' that is not finite in float32"),
        (GLOVE + b"dog 0.1 1e39 0.3\n", "FILE:3: found a value of 'dog' that is not finite in float32"),
        (GLOVE + b"the 0 0 0\n", "FILE:3: found 'the' again, after FILE:1, expected every word once"),
        (GLOVE + b"sch\xf6n 0 0 0\n", r"FILE:3: found the word 'sch\\\\xf6n', expected UTF-8"),
        (b"3 3\n" + GLOVE, "FILE:4: found the end of the file after 2 vectors, expected 3, as line 1 says"),
        (b"1 3\n" + GLOVE, "FILE:4: found the end of the file after 2 vectors, expected 1, as line 1 says"),
        (b"2 4\n" + GLOVE, "FILE:2: found 3 numbers after 'the', expected 4"),
        (b"2 0\n" + GLOVE, "FILE:1: found a header of 2 vectors of 0 numbers, expected at most 65,536"),
        (b"2 99999999\n" + GLOVE, "FILE:1: found a header of 2 vectors of 99,999,999 numbers"),
        (b"9" * 9000 + b" 3\n" + GLOVE, "FILE:1: found a header of 9,999,999,999,999,999,999 vectors of 3"),
        (binary()[:-3], "FILE: vector 7: found the end of the file, expected 7 vectors of 6 numbers"),
        (b"8" + binary()[1:], "FILE: vector 8: found the end of the file, expected 8 vectors of 6 numbers"),
        (b"6" + binary(unspaced(WORDS))[1:], "FILE: found more than 6 vectors, expected as many"),
        (
            binary(["the", "a", "the"], VECTORS[:3]),
            "FILE: vector 3: found 'the' again, after FILE: vector 1, expected every word once",
        ),
        (
            binary(["dog"], np.array([[0.5, np.inf, 1]], np.float32)),
            "FILE: vector 1: found a value of 'dog' that is not finite",
        ),
        (binary().replace("schön".encode(), b"sch\xf6n"), r"FILE: vector 3: found the word 'sch\\\\xf6n'"),
        (gzip.compress(GLOVE)[:-9], "FILE: found a damaged gzip file"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_wrong_is_named(tmp_path, content, message):
    path = tmp_path / "vectors.txt"
    path.write_bytes(content.replace(b". . .", b"_____"))
    with pytest.raises(ValueError, match=message.replace("FILE", re.escape(str(path)))):
        read_word_vectors(path, ["the", "dog"])


def test_words_that_no_file_can_have(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(GLOVE)
    with pytest.raises(ValueError, match=r"read_word_vectors: words: found '\\ud800', expected text"):
        read_word_vectors(path, ["the", "\ud800"])


def test_lines_and_words_without_an_end(tmp_path, monkeypatch):
    path = tmp_path / "vectors"
    for name in ("LINE_BYTES", "WORD_BYTES", "_CHUNK"):
        monkeypatch.setattr(word_vectors, name, 100)
    path.write_bytes(b"x" * 1000)
    with pytest.raises(ValueError, match="vectors:1: found a line of more than 100 bytes"):
        read_word_vectors(path, ["a"])
    path.write_bytes(b"2 6\n" + binary()[4:].split(b"of ")[0] + b"x" * 1000)
    with pytest.raises(ValueError, match="vector 2: found a word of more than 100 bytes"):
        read_word_vectors(path, ["a"])


# ------------------------------------------------------------------ models

TARGET = {"<NULL>": 0, "<START>": 1, "<END>": 2, "<UNK>": 3, "dog": 4, "cat": 5, "the": 6}
SOURCE = {"<NULL>": 0, "<START>": 1, "<END>": 2, "<UNK>": 3, "schön": 4}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(glove([*WORDS, "<UNK>"], np.vstack([VECTORS, np.ones(6)])))
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rows_of_words_that_the_file_has(path, dtype):
    model = CaptioningRNN(TARGET, 3, 6, 4, dtype=dtype)
    before = model.params.copy()
    coverage = load_word_vectors(path, model)
    np.testing.assert_array_equal(model.params["W_embed"][[4, 6]], VECTORS[[6, 0]])
    before["W_embed"][[4, 6]] = VECTORS[[6, 0]]
    np.testing.assert_array_equal(model.params.flat, before.flat)
    assert (coverage.found, coverage.missing) == (("dog", "the"), ("cat",))
    done = f"word vectors: 2 of 3 words from {path} to W_embed"
    assert str(coverage) == f"{done}; without a vector, with their initial values: cat."


def test_source_and_target_of_a_translation_model(path):
    model = Seq2Seq(SOURCE, TARGET, 6, 4)
    before = model.params.copy()
    coverage = load_word_vectors(path, model, source=True)
    assert str(coverage) == f"word vectors: 1 of 1 words from {path} to W_source."
    np.testing.assert_array_equal(model.params["W_source"][4], VECTORS[2])
    np.testing.assert_array_equal(model.params["W_embed"], before["W_embed"])


def test_many_words_without_a_vector_are_not_all_named(path):
    words = {"<NULL>": 0, "the": 1} | {f"w{k}": k for k in range(2, 9)}
    said = str(load_word_vectors(path, CaptioningRNN(words, 3, 6, 4)))
    assert said.startswith("word vectors: 1 of 8 words from ")
    assert said.endswith("initial values: w2, w3, w4, w5, w6 and 2 more.")


def test_a_model_that_the_file_does_not_fit(path):
    model = CaptioningRNN(TARGET, 3, 5, 4)
    before = model.params.copy()
    with pytest.raises(
        ValueError, match=r"vectors.txt:1: found vectors of 6 numbers, expected 5, as wordvec_dim"
    ):
        load_word_vectors(path, model)
    strange = CaptioningRNN({"<NULL>": 0, "Katze": 1}, 3, 6, 4)
    with pytest.raises(ValueError, match=r"vectors.txt: found none of the 1 words of word_to_idx"):
        load_word_vectors(path, strange)
    np.testing.assert_array_equal(model.params.flat, before.flat)


def test_a_model_on_a_device(path, simulated):
    model, other = CaptioningRNN(TARGET, 3, 6, 4), CaptioningRNN(TARGET, 3, 6, 4, device="gpu")
    for each in (model, other):
        load_word_vectors(path, each)
    np.testing.assert_array_equal(other.to("cpu").params.flat, model.params.flat)


def test_a_model_without_source_words(tmp_path):
    model = CaptioningRNN({"<NULL>": 0, "<START>": 1, "<END>": 2, "<UNK>": 3}, 3, 6, 4)
    with pytest.raises(TypeError, match="load_word_vectors: a CaptioningRNN has no source_word_to_idx"):
        load_word_vectors(tmp_path / "vectors.txt", model, source=True)
