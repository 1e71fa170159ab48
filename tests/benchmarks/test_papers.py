"""The command for the papers' tables: what is done is not done again, numbers come where they belong."""

import csv
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import papers
from benchmarks.paper_tables import TABLES
from benchmarks.papers import Row, Table, Training, score
from rnnlab.recipes.recipe import load_config

FIRST = Training("first", "recipes/shapes.toml")
ON = [Training("on", "recipes/shapes.toml", ("model.hidden_dim=8",), seed, FIRST) for seed in (0, 1)]
TABLE = Table(
    "a table",
    (Row("first", (FIRST,), ("--beam", "3")), Row("on", tuple(ON), ())),
    {"BLEU": (score("BLEU", 100), ".1f"), "s": (papers.seconds_an_epoch, ".0f")}
    | {"MB": (papers.peak_megabytes, ".0f"), "M": (papers.million_parameters, ".1f")},
)


@pytest.fixture
def rnnlab(monkeypatch):
    """What the command was asked for; it leaves the files that it should, or fails once asked to."""
    asked = []

    def command(arguments):
        asked.append(arguments)
        if arguments[0] == "evaluate":
            scores = {"corpus": {"BLEU": 0.1 * (1 + arguments[1].endswith("1"))}}
            Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(scores))
            return 0.0
        if arguments[0] == "discrepancy":
            found = {"d_mc": 0.5, "d_pw": 0.25}
            Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(found))
            return 0.0
        out = Path(arguments[arguments.index("--out" if "--out" in arguments else "--resume") + 1])
        out.mkdir(exist_ok=True)
        (out / "last.h5").touch()
        if command.fails:
            command.fails = False
            sys.exit("failed")
        (out / "config.json").write_text(json.dumps({"num_parameters": 2_500_000}))
        with (out / "history.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["epoch", "seconds"])
            writer.writeheader()
            writer.writerows({"epoch": k, "seconds": s} for k, s in enumerate([90.0, 3.0, 4.0]))
        return 512.0

    command.fails = False
    monkeypatch.setattr(papers, "_rnnlab", command)
    return command, asked


def test_a_table_is_made_once(rnnlab, tmp_path):
    _, asked = rnnlab
    papers.make(TABLE, tmp_path)
    assert [arguments[0] for arguments in asked] == ["train", "evaluate"] * 3
    assert asked[2][asked[2].index("--set") + 1] == "model.hidden_dim=8"
    assert f"training.warm_start={tmp_path / 'first-seed0'}" in asked[2]
    assert asked[1][2:4] == ["--beam", "3"]
    papers.make(TABLE, tmp_path)
    assert len(asked) == 6
    assert papers.markdown(TABLE, tmp_path).splitlines() == [
        "|  | BLEU | s | MB | M |",
        "| --- | --- | --- | --- | --- |",
        "| first | 10.0 | 4 | 512 | 2.5 |",
        "| on, seed 0 | 10.0 | 4 | 512 | 2.5 |",
        "| on, seed 1 | 20.0 | 4 | 512 | 2.5 |",
        "| on, mean | 15.0 | 4 | 512 | 2.5 |",
    ]


def test_distances_and_the_spread_of_three_seeds(rnnlab, tmp_path):
    _, asked = rnnlab
    three = tuple(Training("on", "recipes/shapes.toml", seed=seed) for seed in (0, 1, 2))
    columns = {"BLEU": (score("BLEU", 100), ".2f"), "d_mc": (papers.distance("d_mc"), ".1f")}
    table = Table("", (Row("on", three, ()),), columns, discrepancy=True)
    assert "| on, mean | - | - |" in papers.markdown(table, tmp_path)
    for _ in range(2):
        papers.make(table, tmp_path)
    assert [arguments[0] for arguments in asked] == ["train", "evaluate", "discrepancy"] * 3
    assert papers.markdown(table, tmp_path).splitlines()[-2:] == [
        "| on, mean | 13.33 | 0.5 |",
        "| on, standard deviation | 5.77 | 0.0 |",
    ]
    assert f"    rnnlab discrepancy {tmp_path / 'on-seed2'} --split val" in papers.commands(table, tmp_path)


def test_what_was_begun_goes_on(rnnlab, tmp_path):
    command, asked = rnnlab
    command.fails = True
    with pytest.raises(SystemExit):
        papers.make(TABLE, tmp_path)
    papers.make(TABLE, tmp_path)
    assert asked[1][:3] == ["train", "--resume", str(tmp_path / "first-seed0")]


def test_a_start_is_trained_before_what_starts_from_it(rnnlab, tmp_path):
    _, asked = rnnlab
    papers.make(Table("", (Row("on", (ON[1],), ()),), {}), tmp_path)
    assert [arguments[-1 if "--no-progress" not in arguments else -2] for arguments in asked[:2]] == [
        str(tmp_path / "first-seed0"),
        str(tmp_path / "on-seed1"),
    ]


def test_what_is_missing_is_a_dash(tmp_path):
    assert papers.markdown(TABLE, tmp_path).splitlines()[-1] == "| on, mean | - | - | - | - |"


def test_a_command_that_fails_ends_everything(tmp_path):
    with pytest.raises(SystemExit, match="rnnlab evaluate ended with status 2"):
        papers._rnnlab(["evaluate", str(tmp_path / "nowhere")])


def test_the_peak_is_of_the_command(tmp_path):
    assert 20 < papers._rnnlab(["kernels"]) < 2000


def test_every_training_is_of_a_recipe_with_these_keys(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    commands = {
        " ".join(training.command(tmp_path)): training
        for table in TABLES.values()
        for row in table.rows
        for training in row.trainings
    }
    assert commands
    for training in commands.values():
        command = training.command(tmp_path)
        changes = [value for option, value in pairwise(command) if option == "--set"]
        assert load_config(training.recipe, changes).training.seed == training.seed
    directories = [training.directory(tmp_path) for training in commands.values()]
    assert len(set(directories)) == len(directories)


def test_the_command_shows_and_refuses(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "benchmarks.papers", *arguments, "--runs", str(tmp_path)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=Path(__file__).resolve().parents[2], check=False
        )

    shown = run("--show").stdout
    assert all(table.title in shown for table in TABLES.values())
    assert "TABLE is 'nothing', expected some of" in run("nothing").stderr
