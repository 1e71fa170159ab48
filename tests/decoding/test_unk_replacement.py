import numpy as np
import pytest

from rnnlab.decoding import build_lexicon, read_lexicon, replace_unknown, write_lexicon

SOURCE = ["ein", "Hund", "läuft"]
ALIGNMENT = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.4, 0.6], [0.3, 0.3, 0.4]])  # <END> last


def test_unknown_words_are_replaced():
    words = ["a", "<UNK>", "<UNK>"]
    lexicon = {"Hund": "dog", "ein": "one"}
    assert replace_unknown(words, ALIGNMENT, SOURCE, lexicon) == ["a", "dog", "läuft"]
    assert words == ["a", "<UNK>", "<UNK>"]
    assert replace_unknown(["a", "?"], ALIGNMENT, SOURCE, lexicon, unk="?") == ["a", "dog"]
    assert replace_unknown([], ALIGNMENT, SOURCE, lexicon) == []


def test_no_words_of_no_source():
    assert replace_unknown([], np.zeros((0, 0)), [], {}) == []
    with pytest.raises(ValueError, match="expected a row for each of 1 words and a column for each of 0"):
        replace_unknown(["a"], np.zeros((1, 0)), [], {})


def test_padding_has_no_part():
    assert replace_unknown(["<UNK>"], np.array([[0.1, 0.2, 0.7]]), ["ein", "Hund"], {}) == ["Hund"]


@pytest.mark.parametrize("alignment", [ALIGNMENT[:1], ALIGNMENT[:, :2], ALIGNMENT[0], np.zeros((3, 0))])
def test_an_alignment_that_does_not_fit(alignment):
    message = r"replace_unknown: alignment has shape .*, expected a row for each of 2 words and a column for"
    with pytest.raises(ValueError, match=message):
        replace_unknown(["a", "<UNK>"], alignment, SOURCE, {})


def test_a_lexicon_from_alignments():
    def pair(source, target, *attended):
        weights = np.zeros((len(attended), len(source)))
        weights[range(len(attended)), attended] = 1
        return source, target, weights

    pairs = [
        pair(["ein", "Hund"], ["a", "hound"], 0, 1, 1),  # the last row is that of <END>
        pair(["ein", "Hund"], ["a", "dog"], 0, 1),
        pair(["Hund", "ein"], ["dog", "one", "<UNK>"], 0, 1, 1),
        pair(["<UNK>", "rot"], ["red", "a"], 0, 0),
    ]
    assert build_lexicon(pairs) == {"ein": "a", "Hund": "dog"}
    assert build_lexicon(pairs, ignore=())["<UNK>"] == "red"  # as often as "a", and before it
    assert build_lexicon([]) == {}
    with pytest.raises(ValueError, match="build_lexicon: alignment has shape"):
        build_lexicon([(["ein"], ["a", "b"], np.ones((1, 1)))])


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_lexicon_from_a_file(encoding, tmp_path):
    text = "Hund\thound\t2\nHund\tdog\t3.5\r\n\nHund\tcur\t3.5\nläuft\truns\nläuft\twalks\t0.2\n"
    path = write(tmp_path / "lexicon.tsv", text, encoding)
    assert read_lexicon(path) == {"Hund": "dog", "läuft": "runs"}
    assert read_lexicon(write(path, "")) == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Hund", "found 'Hund', expected a source word, a tab, a target word and"),
        ("Hund dog", "found 'Hund dog'"),
        ("Hund\t", ".*, expected a source word, a tab, a target word"),
        ("\tdog", ".*, expected a source word, a tab, a target word"),
        ("Hund\tdog\t3\t4", ".*, expected a source word, a tab, a target word"),
        ("Hund\tdog\tmany", "found 'many' in the third column, expected a finite number of at least 0"),
        ("Hund\tdog\t-1", "found '-1' in the third column"),
        ("Hund\tdog\tnan", "found 'nan' in the third column"),
    ],
)
def test_a_line_that_is_something_else(line, message, tmp_path):
    path = write(tmp_path / "lexicon.tsv", f"ein\ta\n{line}\n")
    with pytest.raises(ValueError, match=f"lexicon.tsv:2: {message}"):
        read_lexicon(path)


def test_a_file_in_another_encoding(tmp_path):
    path = write(tmp_path / "lexicon.tsv", "ein\ta\nläuft\truns\n", "latin-1")
    with pytest.raises(ValueError, match="lexicon.tsv:2: found bytes that are not UTF-8"):
        read_lexicon(path)


def test_a_lexicon_that_is_written_is_read_again(tmp_path):
    lexicon = {"läuft": "runs", "Hund": "dog", "New York": "Neu York"}
    write_lexicon(tmp_path / "lexicon.tsv", lexicon)
    assert read_lexicon(tmp_path / "lexicon.tsv") == lexicon
    assert (tmp_path / "lexicon.tsv").read_text(encoding="utf-8").splitlines()[0] == "Hund\tdog"


@pytest.mark.parametrize("word", ["", " ", "a\tb", "a\nb", "a "])
def test_a_word_that_a_lexicon_cannot_hold(word, tmp_path):
    for lexicon in ({word: "a"}, {"a": word}):
        with pytest.raises(ValueError, match="write_lexicon: "):
            write_lexicon(tmp_path / "lexicon.tsv", lexicon)
    assert list(tmp_path.iterdir()) == []
