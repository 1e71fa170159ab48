"""The command for the papers' tables, the tables that it has, and the results that are stored for them."""

import os
import subprocess
import sys

import pytest

from benchmarks import documents, making, papers, results
from benchmarks.tables import TABLES
from benchmarks.trainings import Training
from rnnlab.recipes.recipe import load_recipe
from tests.benchmarks.small_table import ROOT, TABLE

TRAININGS = {training.id: training for table in TABLES.values() for training in table.trainings()}

# Keys of [model] that a second stage may change: its losses, its regularisers, and what it adds to the model.
OF_SECOND_STAGES = {
    "encoder_reconstruction",
    "encoder_reconstructor_dim",
    "init_scale",
    "initialisation",
    "loss_average",
    "reconstruction",
    "reconstructor_dim",
    "regularisation",
    "target_attention",
}


RECIPES = {}  # those that a test has read, which others look at too


def recipe_of(name, changes):
    key = name, *changes
    if key not in RECIPES:
        RECIPES[key] = load_recipe(name, changes)
    return RECIPES[key]


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.setattr(papers, "TABLES", {"a": TABLE})


def run(folder, *arguments):
    command = ["--runs", str(folder / "runs"), "--results", str(folder / "results"), *arguments]
    return papers.main(command)


def test_every_training_is_of_a_recipe_with_these_keys(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    monkeypatch.chdir(ROOT)
    for training in TRAININGS.values():
        assert recipe_of(training.recipe, training.all_changes).training.seed == training.seed


def test_a_name_is_of_one_training():
    for table in TABLES.values():
        for training in table.trainings():
            assert training == TRAININGS[training.id]


def test_rows_have_entries_of_one_name_and_the_columns_of_the_paper():
    for table in TABLES.values():
        for row in table.rows:
            assert len({entry.id.partition("-seed")[0] for entry in row.entries}) == 1
            assert set(row.paper) <= set(table.columns)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("path", sorted(results.RESULTS.glob("*-seed*.json")), ids=lambda path: path.stem)
def test_stored_results_are_of_the_recipes_as_they_are(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(making, "load_recipe", recipe_of)
    found = results.load(path.stem)
    assert found["training"] == path.stem
    assert making.differences(TRAININGS[path.stem], found["config"], str(path)) == []


def test_the_document_has_the_results_that_are_stored():
    text = papers.DOCUMENT.read_text(encoding="utf-8")
    assert documents.rewritten(text, TABLES) == text, "run python -m benchmarks.papers --write"


def test_list_train_collect_and_show(command, tables, tmp_path, capsys):
    run(tmp_path, "--list")
    lines = capsys.readouterr().out.splitlines()
    names = [line.rsplit(" ", 1)[1] for line in lines]
    assert names == ["first-seed0", "on-seed0", "first-seed1", "on-seed1"]
    where = f"--runs {tmp_path / 'runs'} --results {tmp_path / 'results'}"
    assert lines[0] == f"python -m benchmarks.papers {where} --train first-seed0"
    run(tmp_path, "--list", "--matmul", "bfloat16")
    assert capsys.readouterr().out.splitlines()[0].endswith("--matmul bfloat16 --train first-seed0")
    run(tmp_path, "--train", "on-seed0")
    assert command.names() == ["train", "train", "evaluate"]
    run(tmp_path, "--list")
    assert len(capsys.readouterr().out.split("--train")) == 3
    run(tmp_path, "--collect")
    assert command.names()[3:] == ["evaluate"]
    assert capsys.readouterr().out == f"{tmp_path / 'results' / 'first-seed0.json'}\n"
    run(tmp_path, "--show", "a")
    assert "| on | 1 of 2 | 10.0 | 0.33 |" in capsys.readouterr().out
    assert len(command.asked) == 4


def test_a_precision_is_of_trainings_alone(tables, tmp_path, capsys):
    for option in ("--show", "--collect", "--write"):
        with pytest.raises(SystemExit):
            run(tmp_path, option, "--matmul", "bfloat16")
        assert "--matmul is for trainings, but" in capsys.readouterr().err


def test_write(command, tables, tmp_path, monkeypatch, capsys):
    document = tmp_path / "papers.md"
    document.write_text("# Tables\n\n<!-- table a -->\n<!-- end of table a -->\n")
    monkeypatch.setattr(papers, "DOCUMENT", document)
    monkeypatch.setattr(papers, "FIGURES", {"depth": lambda path, of: path.name == "depth.png"})
    run(tmp_path, "--write")
    assert "| first | 0 of 1 | - | - |" in document.read_text()
    assert capsys.readouterr().out == f"{tmp_path / 'depth.png'}\n"


def test_names_that_are_none(capsys, tmp_path):
    for arguments, message in (
        (["nothing"], "TABLE is 'nothing'"),
        (["--train", "no-seed0"], "--train is 'no-seed0'"),
    ):
        with pytest.raises(SystemExit):
            run(tmp_path, *arguments)
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_module_is_a_command():
    command = [sys.executable, "-m", "benchmarks.papers", "--show", "pmnist"]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert TABLES["pmnist"].title in shown


@pytest.mark.slow
def test_output_that_is_no_longer_read_ends_the_command_without_a_message():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "benchmarks.papers", "--show", "pmnist"]
    try:
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_second_stage_has_the_data_and_the_sizes_of_its_start(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    monkeypatch.chdir(ROOT)

    def tables(training):
        config = recipe_of(training.recipe, training.all_changes).to_dict()
        model = config["model"]
        return config["data"], {key: model[key] for key in model.keys() - OF_SECOND_STAGES}

    for training in TRAININGS.values():
        if training.start is not None and training.seed == 0:
            assert tables(training) == tables(training.start), training.id


def test_seeds_start_from_their_own_start():
    assert isinstance(TABLE.rows[1].entries[1], Training)
    assert TABLE.rows[1].entries[1].start.seed == 1
