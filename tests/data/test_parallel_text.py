import gzip
import os
from pathlib import Path

import pytest

from rnnlab.data import open_habeas, open_parallel, read_code_comments, read_parallel, tokenize_text
from rnnlab.data.parallel_text import with_references

real = pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")


def write(path, text):
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("Two young, White males.", ["two", "young", ",", "white", "males", "."]),
        ("A woman's T-shirt", ["a", "woman", "'s", "t-shirt"]),
        ("the “big” one - here", ["the", "“", "big", "”", "one", "-", "here"]),
        ("95.000 für 2,50 um 11:27.", ["95.000", "für", "2,50", "um", "11:27", "."]),
        ("Saftig-grünes GRAS, Straße", ["saftig-grünes", "gras", ",", "straße"]),
        ("u\u0308ber", ["über"]),  # the umlaut as a mark of its own
        (
            "\u092e\u0947\u0902, \u0130stanbul's",
            ["\u092e\u0947\u0902", ",", "i\u0307stanbul", "'s"],
        ),  # vowel signs
        ("two\u00a0words\u2028three", ["two", "words", "three"]),
        ("'quoted'", ["'", "quoted", "'"]),
        ("", []),
    ],
)
def test_words_and_marks(sentence, tokens):
    assert tokenize_text(sentence) == tokens


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_files_are_read_side_by_side(tmp_path, ending):
    source = write(tmp_path / f"a.en{ending}", "\ufeffOne two.\r\nLine\u2028three\n")
    target = write(tmp_path / f"a.de{ending}", "Eins zwei.\nDrei")
    expected = [(["one", "two", "."], ["eins", "zwei", "."]), (["line", "three"], ["drei"])]
    assert read_parallel(source, target) == expected


def test_files_of_different_lengths(tmp_path):
    source, target = write(tmp_path / "a.en", "a\nb\n"), write(tmp_path / "a.de", "a\n\nb\n")
    with pytest.raises(ValueError, match=r"a\.en has 2 lines and .*a\.de 3, expected one line per pair"):
        read_parallel(source, target)


def test_bad_utf8_names_file_and_line(tmp_path):
    source, target = write(tmp_path / "a.en", b"a\nb\xff\n"), write(tmp_path / "a.de", "a\nb\n")
    with pytest.raises(ValueError, match=r"a\.en:2: found bytes that are not UTF-8"):
        read_parallel(source, target)


def test_a_damaged_gzip_file_is_named(tmp_path):
    whole = gzip.compress(b"some sentence\n" * 50)
    (tmp_path / "a.en.gz").write_bytes(whole[:-12])
    target = write(tmp_path / "a.de", "a\n")
    with pytest.raises(ValueError, match=r"a\.en\.gz: found a damaged gzip file"):
        read_parallel(tmp_path / "a.en.gz", target)
    with pytest.raises(FileNotFoundError):
        read_parallel(tmp_path / "no.en", target)


def test_further_references(tmp_path):
    for split in ("train", "val", "test"):
        for ending in ("en", "de"):
            write(tmp_path / f"{split}.{ending}", "A.\nB.\n")
    write(tmp_path / "test.de1", "Ein A.\nEin B.\n")
    write(tmp_path / "test.de2.gz", "Das A\nDas B\n")
    data = open_parallel(tmp_path, references=["de1", "de2"])
    assert data.split("test").references[1] == [["b", "."], ["ein", "b", "."], ["das", "b"]]
    assert data.split("val").references[1] == [["b", "."]]
    write(tmp_path / "val.de1", "A\nB\n")
    with pytest.raises(FileNotFoundError, match=r"found no val\.de2, expected all of \['de1', 'de2'\]"):
        open_parallel(tmp_path, references=["de1", "de2"])
    with pytest.raises(FileNotFoundError, match=r"found no references, expected files SPLIT\.de9"):
        open_parallel(tmp_path, references=["de9"])
    with pytest.raises(TypeError, match="references is 'de1', expected a list of endings of files"):
        open_parallel(tmp_path, references="de1")


def test_references_from_files(tmp_path):
    for split in ("train", "val"):
        for ending in ("en", "de"):
            write(tmp_path / f"{split}.{ending}", "A.\nB.\n")
    write(tmp_path / "one", "Ein A.\nEin B.\n")
    write(tmp_path / "two.gz", "Das A\nDas B\n")
    data = with_references(open_parallel(tmp_path), "val", [tmp_path / "one", tmp_path / "two.gz"])
    assert data.split("val").references[1] == [["b", "."], ["ein", "b", "."], ["das", "b"]]
    write(tmp_path / "short", "A\n")
    with pytest.raises(ValueError, match=r"short: found 1 lines, expected 2, one for each source of val"):
        with_references(data, "val", [tmp_path / "short"])


def test_a_folder_of_splits(tmp_path):
    for split in ("train", "val", "test_2016_flickr"):
        write(tmp_path / f"{split}.en.gz", f"A {split} .\n")
        write(tmp_path / f"{split}.de", f"Ein {split} .\n")
        write(tmp_path / f"{split}.fr.gz", f"Un {split} .\n")
    write(tmp_path / "._train.en", "of macOS")
    data = open_parallel(tmp_path)
    assert list(data.splits) == ["train", "val", "test_2016_flickr"]
    assert data.split("test_2016_flickr").target == [["ein", "test_2016_flickr", "."]]
    assert data.split("val").further == ()
    data = open_parallel(tmp_path, "fr", "en", tokenizer="spaces", min_count=1)
    assert data.split("train").source == [["Un", "train", "."]]
    assert data.preprocessing()["tokenizer"] == "spaces"


def test_an_empty_split_of_a_folder(tmp_path):
    for name, text in (("train", "a\n"), ("test", "")):
        for language in ("en", "de"):
            write(tmp_path / f"{name}.{language}", text)
    with pytest.raises(ValueError, match="the files of the split test are empty, expected pairs"):
        open_parallel(tmp_path)


def test_what_is_missing_in_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such folder"):
        open_parallel(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"found nothing, expected train\.en and train\.de"):
        open_parallel(tmp_path)
    write(tmp_path / "train.en", "a\n")
    with pytest.raises(FileNotFoundError, match=r"found train\.en, expected train\.en and train\.de, or"):
        open_parallel(tmp_path)
    write(tmp_path / "train.de", "a\n")
    write(tmp_path / "test.en", "a\n")  # a test set that German lacks
    assert list(open_parallel(tmp_path).splits) == ["train"]
    write(tmp_path / "val.de", "a\n")
    with pytest.raises(FileNotFoundError, match=r"expected val\.en and val\.de, or \.gz of both"):
        open_parallel(tmp_path)
    with pytest.raises(ValueError, match="tokenizer is 'bpe', expected one of text, spaces"):
        open_parallel(tmp_path, tokenizer="bpe")


def test_a_file_beside_its_gzipped_form(tmp_path):
    """Nothing says which of the two is meant: they may differ."""
    for language in ("en", "de"):
        write(tmp_path / f"train.{language}", "a\n")
    write(tmp_path / "train.en.gz", "b\n")
    with pytest.raises(ValueError, match=r": found both train\.en and train\.en\.gz, expected one of them"):
        open_parallel(tmp_path)
    for name in ("train.tsv.gz", "dev.tsv", "dev.tsv.gz", "test.tsv"):
        write(tmp_path / name, "x\ty\n")
    with pytest.raises(ValueError, match=r": found both dev\.tsv\.gz and dev\.tsv, expected one of them"):
        open_habeas(tmp_path)


def test_code_and_comments(tmp_path):
    for name in ("train", "dev", "test"):
        write(tmp_path / f"{name}.tsv.gz", f"TokenNameint {name} x\treturns x\n")
    data = open_habeas(tmp_path)
    assert list(data.splits) == ["train", "val", "test"]
    assert data.split("val").source == [["TokenNameint", "dev", "x"]]
    assert data.split("val").target == [["returns", "x"]]
    (tmp_path / "dev.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"found neither dev\.tsv\.gz nor dev\.tsv"):
        open_habeas(tmp_path)


@pytest.mark.parametrize(("line", "tabs"), [("no comment", 0), ("a\tb\tc", 2), ("", 0)])
def test_a_line_of_code_has_one_tab(tmp_path, line, tabs):
    path = write(tmp_path / "train.tsv.gz", f"a\tb\n{line}\n")
    with pytest.raises(ValueError, match=rf"train\.tsv\.gz:2: found {tabs} tabs, expected code, one tab"):
        read_code_comments(path)


@pytest.mark.slow
@real
def test_multi30k():
    data = open_parallel(Path(os.environ["RNNLAB_DATA"]) / "multi30k", min_count=2, max_length=50)
    sizes = {name: len(split) for name, split in data.splits.items()}
    assert (sizes["val"], sizes["test_2016_flickr"]) == (1014, 1000)
    assert sizes["train"] + data.num_long == 29000
    assert " ".join(data.split("val").target[1]) == "ein mann schläft in einem grünen raum auf einem sofa ."


@real
def test_habeas():
    data = open_habeas(Path(os.environ["RNNLAB_DATA"]) / "habeascorpus", min_count=5)
    assert [len(split) for split in data.splits.values()] == [5370, 702, 662]
