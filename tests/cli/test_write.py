"""``rnnlab write``: sampled sentences, searches, prompts, JSON and errors."""

import json

import pytest

from rnnlab import cli

from .. import quick_runs
from ..tasks.letter_lines import LETTERS, RECIPE, write_lines


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    write_lines(folder)
    (folder / "lines.toml").write_text(RECIPE.format(directory=folder))
    return quick_runs.train(folder / "lines.toml", folder / "run", "training.num_epochs=3")


def lines(capsys, *arguments):
    assert cli.main(["write", *map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


def test_sentences_from_nothing(model, capsys):
    found = lines(capsys, model)
    assert len(found) == 5
    assert all(set(line.split()) <= set(LETTERS) for line in found)
    assert lines(capsys, model) == found
    assert lines(capsys, model, "--seed", 1) != found
    assert len(lines(capsys, model, "--count", 2, "--temperature", 0.5)) == 2


def test_a_prompt_is_continued(model, tmp_path, capsys):
    found = lines(capsys, model, "c d", "--count", 3, "--json", tmp_path / "found.json")
    assert all(line.startswith("c d") for line in found)
    read = json.loads((tmp_path / "found.json").read_text())
    assert read["prompt"] == "c d"
    assert [each["sentence"] for each in read["sentences"]] == found
    assert all(each["log_prob"] < 0 for each in read["sentences"])


def test_searches(model, capsys):
    assert len(lines(capsys, model, "c", "--method", "greedy")) == 1
    assert len(lines(capsys, model, "c", "--beam", 3)) == 1
    found = lines(capsys, model, "c", "--beam", 3, "--n-best", 2)
    assert len(found) == 2
    scores = [float(line.split()[0]) for line in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "b"], "found 2 prompts, expected one: put it between quotation marks"),
        (["a z"], "the prompt has 'z', expected words of the vocabulary"),
        (["--beam", "3", "--count", "2"], "--count needs --method sample, found beam"),
        (["--method", "greedy", "--seed", "2"], "--seed needs --method sample"),
        (["--json", ""], "--json"),
    ],
)
def test_what_is_refused(model, arguments, message, capsys):
    assert cli.main(["write", str(model), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_model_of_another_task(run, model, capsys):
    assert cli.main(["write", str(run)]) == 2
    assert "holds a model that captions: rnnlab caption" in capsys.readouterr().err
    for command in ("caption", "translate", "serve", "discrepancy"):
        assert cli.main([command, str(model), *["x"] * (command in ("caption", "translate"))]) == 2
        assert "a model that writes sentences" in capsys.readouterr().err
    assert cli.main(["evaluate", str(model), "--beam", "3"]) == 2
    assert (
        "--beam is for scores of captions and translations, which need a search, but the model of"
        in capsys.readouterr().err
    )


def test_it_is_evaluated_and_reported(model, tmp_path, capsys):
    assert cli.main(["evaluate", str(model), "--json", str(tmp_path / "scores.json")]) == 0
    assert "perplexity" in capsys.readouterr().out
    assert json.loads((tmp_path / "scores.json").read_text())["sentences"] == 20
    assert cli.main(["compare", str(model)]) == 0
    assert "perplexity" in capsys.readouterr().out
