"""``rnnlab sweep``: a grid of short trainings."""

import csv
import shlex
import signal
import subprocess
import sys
import time

import pytest

from rnnlab import cli
from rnnlab.cli import train
from rnnlab.cli.processes import Processes
from rnnlab.cli.recipe_file import read_recipe
from rnnlab.training import load_checkpoint


def sweep(*words):
    return cli.main(["sweep", *map(str, words)])


@pytest.fixture
def one_epoch(recipe, tmp_path):
    """The recipe with one epoch."""
    path = tmp_path / "short.toml"
    path.write_text(recipe.read_text().replace("num_epochs = 2", "num_epochs = 1"))
    return path


@pytest.fixture
def commands(monkeypatch):
    """The commands of the processes, none of which is run, but whose recipes are read: each succeeds."""
    found = []

    def run(self, commands):
        for command in commands:
            found.append(command.words[command.words.index("train") :])
            options = cli._parser().parse_args(found[-1])
            if options.recipe is not None:
                read_recipe(options.recipe, train._changes(options))
            yield command, 0

    monkeypatch.setattr(Processes, "run", run)
    monkeypatch.setattr("rnnlab.cli.sweep._show", lambda *arguments: None)
    return found


@pytest.mark.slow
def test_a_grid_with_a_failing_run_and_its_repetition(one_epoch, tmp_path, capsys):
    out = tmp_path / "grid"
    words = [one_epoch, "--set", "model.cell_type=rnn,gru", "--set", "training.warm_start=none,absent"]
    words += ["--jobs", 2, "--out", out]
    assert sweep(*words, "--max-images", 4) == 1
    printed = capsys.readouterr().out
    assert printed.startswith(f"{out}: 4 runs, 0 of them finished\n")
    good = [out / f"cell_type={cell},warm_start=none" for cell in ("rnn", "gru")]
    for directory in good:
        assert f"{directory.name}: finished\n" in printed
        assert len(list(csv.DictReader((directory / "history.csv").read_text().splitlines()))) == 1
    assert load_checkpoint(good[1] / "last.h5").config["model"]["cell_type"] == "gru"
    lines = [line.split() for line in printed.splitlines()]
    assert ["cell_type=rnn,warm_start=absent", "failed"] in lines
    assert "note: cell_type=gru,warm_start=absent: rnnlab train: training.warm_start: absent" in printed
    assert any(line[:2] == ["cell_type=gru,warm_start=none", "finished"] for line in lines)

    before = (good[0] / "last.h5").stat().st_mtime_ns
    table = tmp_path / "runs.csv"
    assert sweep(*words, "--no-scores", "--csv", table) == 1
    printed = capsys.readouterr().out
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [row["model.cell_type"] for row in rows] == ["rnn", "gru"]
    assert printed.startswith(f"{out}: 4 runs, 2 of them finished\n")
    assert (good[0] / "last.h5").stat().st_mtime_ns == before
    assert printed.count(": failed\n") == 2


@pytest.mark.slow
def test_a_signal_ends_all_runs_with_checkpoints(one_epoch, tmp_path):
    out = tmp_path / "grid"
    words = ["--set", "training.seed=0,1,2", "--set", "training.num_epochs=10000"]
    command = [sys.executable, "-m", "rnnlab", "sweep", one_epoch, *words, "--jobs", "2", "--out", out]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not all((out / f"seed={seed}" / "last.h5").exists() for seed in (0, 1)):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        printed, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    lines = [line.split() for line in printed.splitlines()]
    assert ["seed=0", "interrupted"] in lines
    assert ["seed=1", "interrupted"] in lines
    assert ["seed=2", "not", "started"] in lines
    for seed in (0, 1):
        assert "saving a checkpoint" in (out / f"seed={seed}" / "train.log").read_text()
        assert load_checkpoint(out / f"seed={seed}" / "last.h5").config["training"]["seed"] == seed
    assert not (out / "seed=2").exists()


def test_a_finished_run_is_skipped_and_a_begun_one_is_resumed(recipe, run, tmp_path, commands, monkeypatch):
    words = [recipe, "--out", run.parent, "--device", "gpu:1"]
    assert sweep(*words) == 0
    assert not commands
    monkeypatch.setattr("rnnlab.reporting.record.StageRecord.finished", False)
    assert sweep(*words) == 0
    assert commands == [["train", "--resume", str(run), "--no-progress", "--device", "gpu:1"]]


def test_all_runs_have_one_precision(recipe, run, tmp_path, commands, capsys):
    words = ["--set", "training.seed=3", "--matmul", "bfloat16", "--out"]
    assert sweep(recipe, *words, tmp_path) == 0
    (command,) = commands
    assert command[-2:] == ["--matmul", "bfloat16"]
    assert sweep(recipe, "--matmul", "bfloat16", "--out", run.parent) == 2
    assert "with training.matmul = none, and the sweep has bfloat16" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--graphs"], ["--no-graphs"], []])
def test_all_runs_have_graphs_or_none(words, recipe, tmp_path, commands):
    where = ["--device", "gpu", "--out", tmp_path]
    assert sweep(recipe, "--set", "training.seed=3", *words, *where) == 0
    (command,) = commands
    assert [word for word in command if word in {"--graphs", "--no-graphs"}] == words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--graphs"], "graphs is true, but the model is on the CPU: CUDA graphs need a GPU"),
        (["--set", "callbacks.tensorboard=true"], "TensorBoard needs tensorboardX: pip install"),
    ],
    ids=str,
)
def test_what_would_fail_in_every_run_is_an_error(
    words, message, recipe, tmp_path, commands, monkeypatch, capsys
):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    assert sweep(recipe, "--set", "training.seed=3,4", *words, "--out", tmp_path / "sweep") == 2
    assert f"rnnlab sweep: {message}" in capsys.readouterr().err
    assert not commands
    assert not (tmp_path / "sweep").exists()


@pytest.fixture
def failing(recipe, run, tmp_path, monkeypatch):
    """A sweep of two seeds: the first run is finished, by a link to it, and the second one fails."""
    folder = tmp_path / "the sweep"
    (folder / "seed=1").mkdir(parents=True)
    (folder / "seed=0").symlink_to(run)
    monkeypatch.setattr(Processes, "run", lambda self, commands: ((command, 1) for command in commands))
    monkeypatch.setattr("rnnlab.cli.sweep._last_line", lambda log: "why")
    return [recipe, "--set", "training.seed=0,1", "--out", folder]


def suggested(printed):
    """The words of the last command that is suggested."""
    return shlex.split(printed.splitlines()[-1].partition("Curves and recipes: rnnlab ")[2])


def test_the_command_that_is_suggested_names_the_finished_runs(failing, second_run, tmp_path, capsys):
    folder = failing[-1]
    assert sweep(*failing, "--no-scores") == 1
    words = suggested(capsys.readouterr().out)
    assert words == ["compare", str(folder / "seed=0")]
    assert cli.main([*words, "--no-scores"]) == 0
    capsys.readouterr()
    (folder / "seed=1").rmdir()
    (folder / "seed=1").symlink_to(second_run)
    assert sweep(*failing, "--no-scores") == 0
    assert suggested(capsys.readouterr().out) == ["compare", f"{folder}/*"]


@pytest.mark.parametrize("finished", [1, 0])
def test_a_table_has_a_column_for_each_key_of_the_sweep(finished, failing, tmp_path, monkeypatch):
    if not finished:
        monkeypatch.setattr("rnnlab.reporting.record.StageRecord.finished", False)
    assert sweep(*failing, "--no-scores", "--csv", tmp_path / "runs.csv") == 1
    header, *rows = csv.reader((tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines())
    assert header[:3] == ["run", "directory", "training.seed"]
    assert [row[2] for row in rows] == ["0"] * finished


def test_a_run_behind_a_link_has_scores(failing, capsys):
    pytest.importorskip("pycocoevalcap")
    assert sweep(*failing, "--max-images", 4) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["seed=1", "failed"] in lines
    (finished,) = [line for line in lines if line[:2] == ["seed=0", "finished"]]
    assert len(finished) > 3


def test_several_recipes(recipe, tmp_path, commands, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(recipe.read_text())
    assert sweep(recipe, other, "--set", "training.seed=3,4") == 0
    assert [command[-2] for command in commands] == [
        f"runs/sweep/{stem},seed={seed}" for stem in ("tiny", "other") for seed in (3, 4)
    ]
    assert commands[2][1:4] == [str(other), "--set", "training.seed=3"]
    commands.clear()
    assert sweep(other) == 0
    assert commands == [["train", str(other), "--out", "runs/other_sweep/other", "--no-progress"]]


def test_the_recipes_of_a_list_are_compared(recipe, run, tmp_path, capsys):
    other = tmp_path / "second.toml"  # the second run, in the same folder, has another seed
    other.write_text(recipe.read_text().replace("num_epochs = 2", "num_epochs = 2\nseed = 1"))
    pytest.importorskip("pycocoevalcap")
    assert sweep(recipe, other, "--out", run.parent, "--max-images", 4) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Recipes:", "what", "differs", "tiny", "second"] in lines
    assert ["training.seed", "0", "1"] in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "model.hidden_dim=8,many"], "hidden_dim"),
        (["--set", "model.hidden_dim=8,,16"], "has an empty value"),
        (["--jobs", "0"], "expected an integer of at least 1"),
    ],
)
def test_a_wrong_grid_starts_nothing(recipe, tmp_path, commands, capsys, words, message):
    try:
        status = sweep(recipe, "--out", tmp_path, *words)
    except SystemExit as error:  # of argparse
        status = error.code
    assert status == 2
    assert message in capsys.readouterr().err
    assert not commands


def test_a_directory_with_another_run_is_an_error(recipe, run, commands, capsys):
    assert sweep(recipe, "--out", run.parent, "--set", "training.num_epochs=3") == 2
    error = capsys.readouterr().err
    assert f"{run} holds a run with training.num_epochs = 2, and the sweep has 3: choose another" in error
    assert not commands


def test_two_recipes_of_one_name_are_an_error(recipe, commands, capsys):
    assert sweep(recipe, recipe) == 2
    assert "two recipes have the name tiny, expected different names" in capsys.readouterr().err
