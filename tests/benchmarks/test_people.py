"""Captions of people and of a model against the other references; comments by the scores of captions."""

import json
from functools import partial

import pytest

from benchmarks import comments, people
from rnnlab.metrics import score_captions
from rnnlab.recipes.recipe import load_recipe

pytest.importorskip("pycocoevalcap")

REFERENCES = [
    ["a red dog runs", "a dog runs", "the dog is red"],
    ["two cats sleep here", "cats sleep", "two cats"],
]
WITHOUT_JAVA = partial(score_captions, metrics=("BLEU", "ROUGE-L", "CIDEr"))


@pytest.fixture(autouse=True)
def without_java(monkeypatch):
    monkeypatch.setattr(people, "ptb_tokenizer", lambda sentences: str.split)
    monkeypatch.setattr(people, "score_captions", WITHOUT_JAVA)
    monkeypatch.setattr(comments, "score_captions", WITHOUT_JAVA)


def test_each_caption_against_the_others():
    found = people.one_against_the_others(REFERENCES)
    scored = [
        WITHOUT_JAVA(
            [some[k] for some in REFERENCES],
            [[sentence for j, sentence in enumerate(some) if j != k] for some in REFERENCES],
            tokenize=str.split,
        ).corpus
        for k in range(3)
    ]
    assert set(found) == {"BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr"}
    for name, value in found.items():
        assert value == pytest.approx(sum(each[name] for each in scored) / 3)


def test_a_model_is_scored_against_the_same_references():
    """A caption that equals a reference is perfect, except where that reference is left out."""
    images = [{"caption": some[1], "references": some} for some in REFERENCES]
    found = people.four_references(images)
    assert 2 / 3 < found["BLEU-1, 4 references"] < 1
    alone = people.one_against_the_others([some[1:] for some in REFERENCES], [some[0] for some in REFERENCES])
    assert alone["BLEU-1"] < found["BLEU-1, 4 references"]


@pytest.mark.parametrize("references", [[["a b", "c"], ["a"]], [["a"], ["b"]]])
def test_references_of_different_numbers(references):
    with pytest.raises(ValueError, match="expected the same number for each, at least 2"):
        people.one_against_the_others(references)


def test_the_command(monkeypatch, tmp_path, capsys):
    class Split:
        references = REFERENCES

    class Data:
        split = staticmethod(lambda name: {"val": Split}[name])

    monkeypatch.setattr(people, "open_data", lambda table: Data)
    monkeypatch.setattr(people, "load_recipe", lambda path: load_recipe("shapes"))
    scores = tmp_path / "scores.json"
    scores.write_text(
        json.dumps({"images": [{"caption": "a dog", "references": some} for some in REFERENCES]})
    )
    assert people.main(["x", "--split", "val", "--scores", str(scores)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["people"] * 6 + ["model"] * 6
    value = 100 * people.score_people("x", "val")["CIDEr, 4 references"]
    assert lines[5].split() == ["people", "CIDEr,", "4", "references", f"{value:.1f}"]


def test_comments_have_the_scores_of_captions():
    sentences = [
        {"translation": "returns the name .", "references": ["returns the name ."]},
        {"translation": "sets it", "references": ["sets the value"]},
    ]
    found = comments.comment_scores(sentences)
    assert (
        found
        == WITHOUT_JAVA(
            ["returns the name .", "sets it"],
            [["returns the name ."], ["sets the value"]],
            tokenize=str.split,
        ).corpus
    )
    assert 0.5 < found["BLEU-1"] < 1  # the full stop counts as a word: comments are tokenised already
