"""Sentences of language models as text and JSON."""

import json
from dataclasses import replace
from pathlib import Path

from rnnlab.data import RunningText, TextData
from rnnlab.decoding import Hypothesis
from rnnlab.reporting.sentences import sentences_text, write_sentences
from rnnlab.runs import Run

DATA = TextData({"train": [list("ab")]}, tokenizer="characters")
FOUND = [Hypothesis((5,), -1.0, -0.5, True), Hypothesis((), -2.0, -2.0, False)]
RUN = Run(Path("runs/x"), None, None, None, inputs=DATA.inputs)
PROMPT = "a"


def test_text_has_the_prompt_and_scores_in_lists():
    assert sentences_text(RUN, PROMPT, FOUND) == "ab\na"
    assert sentences_text(RUN, PROMPT, FOUND, lists=True) == "  -0.500  ab\n  -2.000  a"


def test_running_texts_have_a_rule_between_them():
    data = RunningText({"train": [list("ab")]}, tokenizer="characters")
    run, lines = replace(RUN, inputs=data.inputs), data.prompt("\nb")[0, 1:]
    found = [Hypothesis(tuple(lines), -1.0, -1.0, False), Hypothesis((), -2.0, -2.0, False)]
    assert sentences_text(run, PROMPT, found).splitlines() == ["a", "b", "-" * 40, "a"]


def test_json_has_every_sentence(tmp_path):
    write_sentences(tmp_path / "found.json", RUN, PROMPT, FOUND)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["prompt"] == "a"
    assert found["sentences"][0] == {"sentence": "ab", "score": -0.5, "log_prob": -1.0, "finished": True}
    assert [each["finished"] for each in found["sentences"]] == [True, False]
