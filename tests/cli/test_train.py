"""``rnnlab train``: new, resumed and interrupted runs."""

import csv
import dataclasses
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.data import images
from rnnlab.metrics import CAPTION_SCORERS
from rnnlab.training import load_checkpoint
from rnnlab.training.monitor import MODES


def test_training_leaves_a_whole_run_and_ends_with_captions(recipe, tmp_path, capsys):
    out = tmp_path / "run"
    assert cli.main(["train", str(recipe), "--out", str(out), "--epochs", "3"]) == 0
    assert {path.name for path in out.iterdir()} == {
        *("best.h5", "best.previous.h5", "last.h5", "last.previous.h5", "config.json", "history.csv"),
        *("captions.png", "loss.png", ".lock"),
    }
    rows = list(csv.DictReader((out / "history.csv").read_text().splitlines()))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[1]["val_loss"]) < float(rows[0]["val_loss"])
    printed = capsys.readouterr().out
    assert "test_00000.png: " in printed
    assert f"\nCaptions: {out / 'captions.png'}\n" in printed
    assert ("BLEU-4" in printed) == CAPTION_SCORERS.installed
    assert ("pip install" in printed) != CAPTION_SCORERS.installed
    assert printed.endswith(f"\nReport: rnnlab report {out} --open\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["--out"], ["--resume"]])
def test_the_number_of_epochs_is_given_once(command, recipe, run, tmp_path, capsys):
    words = [str(recipe), "--out", str(tmp_path / "new")] if command == ["--out"] else ["--resume", str(run)]
    words += ["--epochs", "5", "--set", "training.num_epochs=4"]
    assert cli.main(["train", *words, "--no-progress"]) == 2
    message = "num_epochs (--epochs) is 5, and --set training.num_epochs=4: expected one"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("recipe", ["multi30k_source_attention", "digits_lstm"])
def test_images_are_fetched_only_for_captions(recipe, tmp_path, capsys):
    assert cli.main(["train", recipe, "--download", "--out", str(tmp_path / "run")]) == 2
    assert "--download is for captions, and data.kind" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_images_are_not_fetched_for_a_resumed_run_of_another_task(tmp_path, capsys):
    out = str(tmp_path / "run")
    few = ["--set", "data.max_train=64", "--epochs", "1", "--no-progress"]
    assert cli.main(["train", "digits_lstm", "--out", out, *few]) == 0
    capsys.readouterr()
    assert cli.main(["train", "--resume", out, "--epochs", "2", "--download", "--no-progress"]) == 2
    said = "rnnlab train: --download is for captions, and data.kind 'digits' has no images to draw\n"
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_addresses_in_the_data_are_fetched_only_on_demand(recipe, shapes, tmp_path, monkeypatch, capsys):
    folder, fetched = tmp_path / "shapes", []
    shutil.copytree(shapes, folder, ignore=shutil.ignore_patterns("*.png"))
    for file in folder.glob("*_urls.txt"):
        file.write_text("".join(f"http://127.0.0.1:9/{name}\n" for name in file.read_text().split()))

    def download(url, timeout):
        fetched.append(url)
        raise OSError("no network")

    monkeypatch.setattr(images, "_download", download)
    command = ["train", str(recipe), "--set", f"data.directory={folder}", "--epochs", "1", "--no-progress"]
    assert cli.main([*command, "--out", str(tmp_path / "run")]) == 0
    assert not fetched
    assert (
        "captions.png (placeholders: the folder data.images has no files of these images)"
        in capsys.readouterr().out
    )
    assert cli.main([*command, "--out", str(tmp_path / "other"), "--download"]) == 0
    assert len(fetched) == 8
    assert cli.main(["caption", str(tmp_path / "run"), "val", "--picture", str(tmp_path / "p.png")]) == 0
    assert len(fetched) == 8


@pytest.mark.slow
def test_a_resumed_run_ends_where_an_unbroken_one_does(recipe, run, tmp_path):
    broken = tmp_path / "broken"
    assert cli.main(["train", str(recipe), "--out", str(broken), "--epochs", "1", "--no-progress"]) == 0
    assert cli.main(["train", "--resume", str(broken), "--epochs", "2", "--no-progress"]) == 0
    one, other = load_checkpoint(run / "last.h5"), load_checkpoint(broken / "last.h5")
    np.testing.assert_array_equal(one.parameters.flat, other.parameters.flat)


@pytest.mark.slow
def test_a_run_resumes_with_another_learning_rate(recipe, tmp_path, capsys):
    out = tmp_path / "run"
    assert cli.main(["train", str(recipe), "--out", str(out), "--epochs", "1", "--no-progress"]) == 0
    changes = ["--set", "training.optim_config.learning_rate=1e-3", "--set", "callbacks.json_lines=true"]
    assert cli.main(["train", "--resume", str(out), "--epochs", "2", "--no-progress", *changes]) == 0
    assert "on, the base learning rate is 0.001." in capsys.readouterr().out
    rows = list(csv.DictReader((out / "history.csv").read_text().splitlines()))
    assert [float(row["learning_rate"]) for row in rows] == [1e-2, 1e-3]
    assert [row["former_learning_rate"] for row in rows] == ["", "0.01"]
    assert load_checkpoint(out / "last.h5").config["training"]["optim_config"] == {"learning_rate": 1e-3}
    assert (out / "log.jsonl").exists()
    assert cli.main(["train", "--resume", str(out), "--epochs", "3", "--no-progress"]) == 0
    rows = list(csv.DictReader((out / "history.csv").read_text().splitlines()))
    assert float(rows[2]["learning_rate"]) == 1e-3


@pytest.mark.slow
def test_resuming_a_finished_run_says_that_nothing_is_trained(recipe, run, capsys):
    before = load_checkpoint(run / "last.h5").parameters.flat
    for epochs in ([], ["--epochs", "2"]):
        assert cli.main(["train", "--resume", str(run), *epochs, "--no-progress"]) == 0
        first, *_ = capsys.readouterr().out.splitlines()
        assert first == "2 of 2 epochs are done; --epochs N (num_epochs) continues training"
    np.testing.assert_array_equal(load_checkpoint(run / "last.h5").parameters.flat, before)


def test_a_finished_run_takes_no_changes(run, capsys):
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    changes = ["--set", "training.optim_config.learning_rate=1e-3", "--no-progress"]
    assert cli.main(["train", "--resume", str(run), *changes]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "rnnlab train: 2 of 2 epochs are done; --epochs N (num_epochs) continues training; "
        "nothing would train with the changes\n"
    )
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_resuming_a_run_without_patience_left_says_so(recipe, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(MODES, "val_loss", "max")  # so that no later epoch is better
    arguments = ["--set", "training.patience=1", "--no-progress"]
    out = tmp_path / "early"
    assert cli.main(["train", str(recipe), "--out", str(out), "--epochs", "5", *arguments]) == 0
    capsys.readouterr()
    assert cli.main(["train", "--resume", str(out), "--no-progress"]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "training has stopped early, after 2 of 5 epochs: patience is 1"


@pytest.mark.slow
def test_a_time_budget_ends_training_with_a_checkpoint(recipe, run, tmp_path, capsys):
    out, reference = tmp_path / "budget", load_checkpoint(run / "last.h5")
    arguments = ["--no-progress", "--max-hours", "1e-9"]
    assert cli.main(["train", str(recipe), "--out", str(out), *arguments]) == 75
    printed = capsys.readouterr().out
    assert "Stopped after iteration 1: the time budget of 1e-09 hours is used up" in printed
    assert printed.endswith(f"Resume with: rnnlab train --resume {out} --max-hours 1e-09\n")
    assert len(load_checkpoint(out / "last.h5").losses) == 1
    assert cli.main(["train", "--resume", str(out), "--no-progress", "--max-hours", "24"]) == 0
    found = load_checkpoint(out / "last.h5")
    np.testing.assert_array_equal(found.losses, reference.losses)
    np.testing.assert_array_equal(found.parameters.flat, reference.parameters.flat)


@pytest.mark.slow
def test_how_products_are_computed_is_shown_also_when_a_run_resumes(recipe, tmp_path, capsys):
    out = tmp_path / "in_tf32"
    words = ["train", str(recipe), "--out", str(out), "--matmul", "tf32", "--no-progress"]
    for command in words, ["train", "--resume", str(out), "--epochs", "9", "--no-progress"]:
        assert cli.main(command) == 0
        first, *_ = capsys.readouterr().out.splitlines()
        assert first.startswith("products of float32: full precision ('tf32' is asked for")
    assert (
        cli.main(["train", "--resume", str(out), "--epochs", "10", "--matmul", "float32", "--no-progress"])
        == 0
    )
    assert "products of float32" not in capsys.readouterr().out


def test_an_interrupted_training_says_how_to_go_on(recipe, run, capsys, monkeypatch):
    interrupted = dataclasses.replace(runs.load_run(run), interrupted=True, signal=signal.SIGINT)
    monkeypatch.setattr(runs, "train", lambda *_, **__: interrupted)
    assert cli.main(["train", str(recipe), "--out", "elsewhere"]) == 130
    assert capsys.readouterr().out == f"Resume with: rnnlab train --resume {run}\n"
    spaced = dataclasses.replace(interrupted, directory=Path("my run"))
    monkeypatch.setattr(runs, "train", lambda *_, **__: spaced)
    assert cli.main(["train", str(recipe), "--out", "elsewhere"]) == 130
    assert capsys.readouterr().out == "Resume with: rnnlab train --resume 'my run'\n"
    monkeypatch.setattr(runs, "train", lambda *_, **__: interrupted)
    for graphs in ("--graphs", "--no-graphs"):
        options = ["--device", "gpu:1", "--matmul", "bfloat16", graphs]
        assert cli.main(["train", str(recipe), "--out", "elsewhere", *options]) == 130
        how = " ".join(options)
        assert capsys.readouterr().out == f"Resume with: rnnlab train --resume {run} {how}\n"
    assert cli.main(["train", str(recipe), "--out", str(run), *options]) == 2
    assert f"rnnlab train --resume {run} {how}, or" in capsys.readouterr().err


def test_several_processes_resume_as_several(recipe, run, capsys, monkeypatch):
    interrupted = dataclasses.replace(runs.load_run(run), interrupted=True, signal=signal.SIGINT)
    monkeypatch.setattr(runs, "train", lambda *_, **__: interrupted)
    monkeypatch.setattr("rnnlab.cli.find_ranks", lambda options: SimpleNamespace(rank=0, size=4))
    arguments = ["train", str(recipe), "--out", "elsewhere"]
    assert cli.main(arguments) == 130
    assert capsys.readouterr().out == f"Resume with: mpirun -n 4 rnnlab train --resume {run}\n"
    assert cli.main([*arguments, "--mpi", "--mpi-timeout", "60"]) == 130
    expected = f"mpirun -n 4 rnnlab train --resume {run} --mpi --mpi-timeout 60"
    assert capsys.readouterr().out == f"Resume with: {expected}\n"


# ------------------------------------------------------------------ signals, full disks


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_with_a_checkpoint(recipe, tmp_path, number, status):
    """As Slurm ends a job: the run goes on from where it was."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "rnnlab", "train", str(recipe), "--out", str(out), "--epochs", "10000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (out / "last.h5").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        printed, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert "saving a checkpoint after this step; a second signal stops at once" in error
    assert "Traceback" not in error
    assert printed.endswith(f"Resume with: rnnlab train --resume {out}\n")
    assert f"Interrupted after iteration {len(load_checkpoint(out / 'last.h5').losses)}" in printed + error


@pytest.mark.slow
def test_a_full_disk_ends_the_command_with_a_line(recipe, tmp_path):
    """At most 16 kB in a file: the checkpoint is larger."""
    out = tmp_path / "run"
    train = f"{sys.executable} -m rnnlab train {recipe} --out {out} --no-progress"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 16; {train}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert not list(out.glob("*.h5"))
    assert done.stderr == f"rnnlab train: {out}/last.h5 was not written: File too large\n"
    assert {path.name for path in out.iterdir()} <= {"config.json", ".lock"}
