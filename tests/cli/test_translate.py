"""``rnnlab translate``: sentences, files and standard input, n-best lists, pictures and warnings."""

import io
import json

import pytest

from rnnlab import cli, runs

from .. import quick_runs
from ..tasks.letters import RECIPE, write_letters


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    write_letters(folder)
    (folder / "letters.toml").write_text(RECIPE.format(directory=folder))
    return quick_runs.train(folder / "letters.toml", folder / "run", "training.num_epochs=1")


@pytest.mark.slow
def test_translate_sentences_files_and_standard_input(run, tmp_path, capsys, monkeypatch):
    assert cli.main(["translate", str(run), "a b c", "d e"]) == 0
    expected = capsys.readouterr().out
    assert len(expected.splitlines()) == 2
    (tmp_path / "sentences").write_text("a b c\nd e\n")
    assert cli.main(["translate", str(run), "--file", str(tmp_path / "sentences")]) == 0
    assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b c\nd e\n")))
    assert cli.main(["translate", str(run)]) == 0
    assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert cli.main(["translate", str(run)]) == 0
    assert capsys.readouterr().out == ""


def test_standard_input_is_read_as_a_file_is(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b c\n\xff\n"), "ascii"))
    assert cli.main(["translate", str(run)]) == 2
    assert "standard input:2: found bytes that are not UTF-8" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfa b c\r\n")))
    assert cli.main(["translate", str(run)]) == 0
    assert "<UNK>" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--file", ""], ["a b", "--lexicon", ""]])
def test_an_empty_path_is_an_error(run, words, capsys):
    assert cli.main(["translate", str(run), *words]) == 2
    assert "rnnlab translate: an empty path: found no such file, expected" in capsys.readouterr().err
    if "--lexicon" in words:
        assert cli.main(["evaluate", str(run), "--split", "val", "--lexicon", ""]) == 2
        assert "an empty path: found no such file, expected a lexicon" in capsys.readouterr().err


def test_a_name_of_a_file_is_translated_with_a_hint(run, capsys):
    assert cli.main(["translate", str(run), "sentences.txt"]) == 0
    assert "'sentences.txt' is read as a sentence; --file reads" in capsys.readouterr().err
    assert cli.main(["translate", str(run), "a b."]) == 0
    assert "--file" not in capsys.readouterr().err


def test_text_that_looks_like_a_special_word_is_reported(run, capsys):
    assert cli.main(["translate", str(run), "a <END> b"]) == 0
    assert "read as <UNK>: <END>" in capsys.readouterr().err


def test_words_that_the_terminal_cannot_show_are_escaped(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii"))
    monkeypatch.setattr(cli, "_run", lambda arguments: print("grün") or 0)
    assert cli.main([]) == 0
    assert written.getvalue() == b"gr\\xfcn\n"


def test_sentences_may_come_after_options(run, capsys):
    assert cli.main(["translate", str(run), "a b", "d e"]) == 0
    expected = capsys.readouterr().out
    assert cli.main(["translate", str(run), "a b", "--max-length", "8", "d e"]) == 0
    assert capsys.readouterr().out == expected
    with pytest.raises(SystemExit):
        cli.main(["translate", str(run), "a b", "--max-length", "8", "--unheard-of", "d e"])
    assert "unrecognized arguments: --unheard-of d e" in capsys.readouterr().err


def test_n_best_translations_and_a_picture(run, tmp_path, capsys):
    picture = tmp_path / "attention.png"
    options = ["--beam", "4", "--n-best", "3", "--show-attention", str(picture)]
    assert cli.main(["translate", str(run), "a b c", *options]) == 0
    scores = [float(line.split()[0]) for line in capsys.readouterr().out.splitlines() if line]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_n_best_translations_as_json(run, tmp_path, capsys):
    path = tmp_path / "translations.json"
    options = ["--beam", "4", "--n-best", "2", "--json", str(path)]
    assert cli.main(["translate", str(run), "a b c", "d  e", *options]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    found = json.loads(path.read_text())
    assert found["run"] == str(run)
    assert [each["source"] for each in found["sentences"]] == ["a b c", "d  e"]
    best, second = found["sentences"][0]["translations"]
    assert first.split() == [f"{best['score']:.3f}", *best["translation"].split()]
    assert best["score"] >= second["score"]


def test_lists_have_the_same_form_whatever_is_found(run, capsys):
    assert cli.main(["translate", str(run), "a b c", "", "--beam", "4", "--n-best", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [bool(line) for line in lines] == [True, True, False, True, False]
    assert lines[3].split() == ["0.000"]


def test_a_sentence_longer_than_a_file_name(run, capsys):
    assert cli.main(["translate", str(run), "a " * 3000, "b/" * 3000, "--max-length", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_sentence_that_is_not_utf8(run, capsys):
    assert cli.main(["translate", str(run), "caf\udce9"]) == 2
    assert "SENTENCE 'caf\\udce9' is not UTF-8 from character 4 on" in capsys.readouterr().err


def test_scores_with_more_references(run, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    count = len(runs.load_run(run).data.split("val"))
    assert cli.main(["translate", str(run), "--file", str(run.parent / "val.src")]) == 0
    (tmp_path / "own").write_text(capsys.readouterr().out)  # the model's own translations
    command = ["evaluate", str(run), "--split", "val", "--references", str(tmp_path / "own")]
    assert cli.main([*command, "--json", str(tmp_path / "s.json")]) == 0
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["corpus"]["precision-1"] == pytest.approx(100)
    assert [len(each["references"]) for each in found["sentences"]] == [2] * count
    (tmp_path / "own").write_text("a\n")
    assert cli.main(command) == 2
    assert f"own: found 1 lines, expected {count}, one for each source of val" in capsys.readouterr().err


def test_references_are_not_replaced(run, tmp_path, capsys):
    (tmp_path / "own").write_text("a\n")
    command = ["evaluate", str(run), "--references", str(tmp_path / "own"), "--json", str(tmp_path / "own")]
    assert cli.main(command) == 2
    assert "own is a file that the command reads" in capsys.readouterr().err


def test_a_checkpoint_is_not_replaced(run, tmp_path, capsys):
    before = (run / "last.h5").read_bytes()
    for command in (
        ["lexicon", str(run), str(run / "last.h5")],
        ["evaluate", str(run), "--split", "val", "--json", str(run / "last.h5")],
        ["translate", str(run), "a", "--show-attention", str(run / "last.h5")],
    ):
        assert cli.main(command) == 2
        assert "last.h5 is an HDF5 file, such as a checkpoint or features" in capsys.readouterr().err
    assert (run / "last.h5").read_bytes() == before


def test_a_picture_of_attention_needs_a_model_that_attends(run, tmp_path, capsys):
    out = tmp_path / "plain"
    command = ["train", str(run.with_name("letters.toml")), "--out", str(out), "--no-progress"]
    assert cli.main([*command, "--epochs", "1", "--set", "model.attention=none"]) == 0
    capsys.readouterr()
    lexicon = str(tmp_path / "lexicon")
    for option, words in (
        (
            "--show-attention",
            ["translate", str(out), "a b c", "--show-attention", str(tmp_path / "picture.png")],
        ),
        ("--lexicon", ["translate", str(out), "a b c", "--lexicon", lexicon]),
        ("--lexicon", ["evaluate", str(out), "--lexicon", lexicon]),
        ("lexicon", ["lexicon", str(out), lexicon]),
    ):
        assert cli.main(words) == 2
        assert f"{option}: the model of {out} does not attend to its source" in capsys.readouterr().err


def test_a_picture_for_each_of_several_sentences(run, tmp_path):
    (tmp_path / "sentences").write_text("a b c\n\nd e\n")
    options = ["--file", str(tmp_path / "sentences"), "--show-attention", str(tmp_path / "attention.png")]
    assert cli.main(["translate", str(run), *options]) == 0
    pictures = [tmp_path / f"attention-{number}.png" for number in (1, 2, 3)]
    assert sorted(tmp_path.glob("*.png")) == pictures
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_pictures_of_several_sentences_replace_no_file_that_is_used(run, tmp_path, capsys):
    picture, first = str(tmp_path / "a.png"), str(tmp_path / "a-1.png")
    (tmp_path / "a-1.png").write_text("a b\nd e\n")
    assert cli.main(["translate", str(run), "--file", first, "--show-attention", picture]) == 2
    assert f"--show-attention {first} is a file that the command reads" in capsys.readouterr().err
    (tmp_path / "a-1.png").unlink()
    assert cli.main(["translate", str(run), "a", "d", "--json", first, "--show-attention", picture]) == 2
    assert f"--json is {first}, which --show-attention writes: choose another" in capsys.readouterr().err
    (tmp_path / "a-2.png").mkdir()
    assert cli.main(["translate", str(run), "a", "d", "--show-attention", picture]) == 2
    assert "a-2.png cannot be written: it is a directory" in capsys.readouterr().err


def test_empty_sentences_and_unknown_words_are_reported(run, capsys):
    assert cli.main(["translate", str(run), "a b", "", "a zebra b yak zebra"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert captured.err.splitlines() == [
        "rnnlab translate: sentence 2 is empty",
        "rnnlab translate: sentence 3: read as <UNK>: zebra, yak",
    ]


@pytest.fixture(scope="module")
def second_run(run):
    changes = ["training.num_epochs=1", "training.seed=1"]
    return quick_runs.train(run.with_name("letters.toml"), run.with_name("second"), *changes)


@pytest.mark.slow
def test_several_runs_are_an_ensemble(run, second_run, tmp_path, capsys, monkeypatch):
    picture = tmp_path / "attention.png"
    runs = [str(run), str(second_run)]
    assert cli.main(["translate", *runs, "a b c", "d e"]) == 0
    expected = capsys.readouterr().out
    assert len(expected.splitlines()) == 2
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b c\nd e\n")))
    assert cli.main(["translate", *runs]) == 0
    assert capsys.readouterr().out == expected
    options = ["a b c", "--max-length", "8", "d e"]
    assert cli.main(["translate", *runs, *options]) == 0
    assert capsys.readouterr().out == expected
    assert cli.main(["translate", *runs, "a b c", "--show-attention", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert cli.main(["translate", *runs[::-1], "a b c", "d e"]) == 0
    assert capsys.readouterr().out == expected
