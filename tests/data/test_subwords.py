"""Pieces of words: what is found, what is put together again, and what is refused."""

import numpy as np
import pytest

from rnnlab.data import ParallelData, Subwords, open_parallel
from rnnlab.data.parallel_text import detokenize
from rnnlab.data.subwords import join_pieces
from rnnlab.data.translation_inputs import TranslationInputs
from rnnlab.data.vocabulary import UNK

pytest.importorskip("sentencepiece")

SENTENCES = [
    f"{a} {b}grün {a}, “{b}lich”!" for a in ("auto", "Haus", "baum") for b in ("tief", "hell", "dunkel")
]


def test_frequent_pairs_become_pieces():
    subwords = Subwords.fit(SENTENCES, 60)
    assert "grün" in subwords.split("tiefgrün")
    assert not {"<s>", "</s>", "<pad>", "<unk>"} & set(subwords.pieces)
    assert len(subwords.split("Haus")) < len(subwords.split("uasH")) == len("▁uasH")


@pytest.mark.parametrize("sentence", [*SENTENCES[:3], "Neu: 日本 <unk> x", "ℌ ½ …", "", "Hausgrün"])
def test_a_sentence_is_put_together_again(sentence):
    pieces = Subwords.fit(SENTENCES, 60).split(sentence)
    assert join_pieces(pieces) == detokenize(pieces, "sentencepiece") == sentence


def test_a_byte_of_the_command_line_that_is_no_text():
    with pytest.raises(ValueError, match=r"Subwords.split: found 'a \\udcff', expected text"):
        Subwords.fit(SENTENCES, 60).split("a \udcff")


def test_spaces_and_composed_characters_are_unified():
    subwords = Subwords.fit(SENTENCES, 60)
    assert join_pieces(subwords.split("  ein  gru\u0308n ")) == "ein grün"
    assert join_pieces(subwords.split("ein ▁grün▁")) == "ein grün"  # the mark of a space is one
    decomposed = [sentence.replace("ü", "u\u0308") for sentence in SENTENCES]
    assert Subwords.fit(decomposed, 60) == subwords


def test_the_model_is_its_bytes():
    subwords = Subwords.fit(SENTENCES, 60)
    assert Subwords.fit(iter(SENTENCES), 60) == subwords
    assert Subwords.fit(SENTENCES[:-1], 60) != subwords
    assert Subwords(subwords.model).split("Hausgrün") == subwords.split("Hausgrün")


@pytest.mark.parametrize(
    ("sentences", "size"), [(SENTENCES, 5), (SENTENCES, 10**6), (SENTENCES, 2**40), ([], 60)]
)
def test_sizes_that_the_sentences_do_not_have(sentences, size):
    with pytest.raises(
        ValueError, match=rf"vocabulary_size is {size}, and sentencepiece cannot find as many"
    ):
        Subwords.fit(sentences, size)


@pytest.mark.parametrize("content", [b"garbage", b""])
def test_bytes_that_are_no_model(content):
    message = f"Subwords: model is {len(content)} bytes that sentencepiece cannot read"
    with pytest.raises(ValueError, match=message):
        Subwords(content).split("a")


def write(folder, split, sentences):
    for language, change in (("src", str.lower), ("trg", str.title)):
        (folder / f"{split}.{language}").write_text("\n".join(map(change, sentences)) + "\n")


def open_folder(folder, **options):
    return open_parallel(folder, "src", "trg", tokenizer="sentencepiece", **options)


def test_parallel_text(tmp_path):
    write(tmp_path, "train", SENTENCES)
    write(tmp_path, "val", ["baum jazz 日本"])
    data = open_folder(tmp_path, vocabulary_size=60)
    assert data.subwords == (
        Subwords.fit(map(str.lower, SENTENCES), 60),
        Subwords.fit(map(str.title, SENTENCES), 60),
    )
    val = data.split("val")
    assert val.target == [data.subwords[1].split("Baum Jazz 日本")]
    for vocabulary, subwords in zip((data.source_vocabulary, data.vocabulary), data.subwords, strict=True):
        assert len(subwords.pieces) == 60 - 1
        assert set(vocabulary.idx_to_word[4:]) == set(subwords.pieces)
    unknown = [piece for piece in val.target[0] if set(piece) & set("Jz日本")]
    assert np.count_nonzero(val.target_rows.padded(slice(1)) == UNK) == len(unknown) >= 2
    inputs = TranslationInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    assert inputs.tokenize("baum") == data.subwords[0].split("baum")
    assert inputs.detokenize(val.target[0]) == "Baum Jazz 日本"
    assert inputs.unknown_words(inputs.tokenize("baum 日本")) == ["日本"]


def test_only_the_training_sentences_are_fitted(tmp_path):
    write(tmp_path, "train", SENTENCES)
    first = open_folder(tmp_path, vocabulary_size=60)
    write(tmp_path, "val", ["xylophon xylophon xylophon"] * 50)
    second = open_folder(tmp_path, vocabulary_size=60)
    assert first.subwords == second.subwords
    assert first.vocabulary == second.vocabulary


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "vocabulary_size is missing, expected an integer with tokenizer 'sentencepiece'"),
        ({"vocabulary_size": 9, "min_count": 2}, "min_count is 2, expected 1 with tokenizer 'sentencepiece'"),
        (
            {"vocabulary_size": 9, "max_size": 3},
            "max_size is 3, expected none with tokenizer 'sentencepiece'",
        ),
        (
            {"vocabulary_size": 9, "tokenizer": "text"},
            "vocabulary_size is 9, expected none with tokenizer 'text'",
        ),
        ({"tokenizer": "bpe"}, "tokenizer is 'bpe', expected one of text, spaces, sentencepiece"),
    ],
)
def test_options_that_do_not_fit_together(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        open_parallel(tmp_path, "src", "trg", **{"tokenizer": "sentencepiece"} | options)


def test_pairs_of_pieces_come_with_what_split_them():
    pairs = {"train": [(["▁a"], ["▁b"])]}
    with pytest.raises(ValueError, match="tokenizer is 'sentencepiece' and subwords none, expected subwords"):
        ParallelData(pairs, tokenizer="sentencepiece")
    subwords = Subwords.fit(SENTENCES, 60)
    with pytest.raises(ValueError, match="tokenizer is 'text' and subwords given, expected subwords"):
        ParallelData(pairs, subwords=(subwords, subwords))


def test_sentences_of_any_length_and_all_their_characters():
    """By default sentencepiece skips sentences of more than 4,192 bytes, and those with a sign of its own."""
    subwords = Subwords.fit([*SENTENCES, "größe " * 1000 + "ß", "x\u2585q"], 60)
    assert {"ö", "ß", "x", "q"} <= set(subwords.pieces)
    assert "\u2585" not in "".join(subwords.pieces)


def test_any_white_space_is_a_space():
    subwords = Subwords.fit([*SENTENCES, "tief\u00a0grün\thell\n"], 60)
    assert not any(piece.strip() != piece for piece in subwords.pieces)
    assert subwords.split("tief\ngrün\u00a0hell") == subwords.split("tief grün hell")


@pytest.mark.parametrize("error", [OSError("damaged"), KeyboardInterrupt()])
def test_an_exception_of_the_sentences_is_passed_on(error):
    def sentences():
        yield from ["a b c"] * 50
        raise error

    with pytest.raises(type(error)) as caught:
        Subwords.fit(sentences(), 20)
    assert caught.value is error
