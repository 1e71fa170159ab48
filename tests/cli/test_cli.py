"""The exit status and the error messages of all commands."""

import io
import os
import sys

import pytest

import rnnlab
from rnnlab import cli, ops, runs
from rnnlab.errors import InputError, NotInstalledError, RnnlabError


def test_an_interrupted_command_ends_quietly(run, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "load_run", interrupt)
    assert cli.main(["caption", str(run), "val"]) == 130
    assert capsys.readouterr().err == "rnnlab caption: interrupted\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "either a recipe or --resume"),
        (["train", "nowhere.toml"], "recipe nowhere.toml does not exist"),
        (["data", "info", "nowhere.toml"], "recipe nowhere.toml does not exist"),
        (["train", "RUN"], "is the directory of a run: resume it with rnnlab train --resume RUN, or give"),
        (["train", "TYPO"], "did you mean RECIPE?"),
        (["train", "RECIPE", "--set", "model.hiden_dim=3"], "did you mean hidden_dim"),
        (["train", "--resume", "RUN", "--out", "elsewhere"], "--out is for a new run"),
        (["train", "--resume", "RUN", "--set", "model.hidden_dim=3"], "it cannot change within a run"),
        (
            ["train", "RECIPE", "--out", "RUN"],
            "resume it with rnnlab train --resume RUN, or choose another directory",
        ),
        (["train", "--resume", "nowhere"], "nowhere holds no run: found neither best.h5 nor last.h5"),
        (["caption", "nowhere", "val"], "holds no run"),
        (["caption", "RUN", "nothing.png"], "nothing.png"),
        (
            ["caption", "RUN", "val", "--method", "greedy", "--n-best", "2"],
            "--n-best needs --method beam, found greedy",
        ),
        (
            ["caption", "RUN", "val", "--method", "greedy", "--beam", "2"],
            "--beam needs --method beam, found greedy",
        ),
        (["caption", "RUN", "val", "--diversity", "1"], "--diversity needs --groups of at least 2"),
        (
            ["caption", "RUN", "val", "--beam", "2", "--temperature", "2"],
            "--temperature needs --method sample, found beam",
        ),
        (["train", "--resume", "RUN", "--epochs", "1"], "epochs already"),
        (["data", "info", "nowhere", "--set", "a=1"], "recipe nowhere does not exist"),
        (["evaluate", "RUN", "--split", "dev"], "not 'dev'"),
        (["data", "info", "nowhere"], "nowhere"),
        (["data", "prepare", "--coco", "x.json", "--features", "f", "--out", "o"], "SPLIT=FILE"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message, run, recipe, capsys):
    paths = {"RUN": str(run), "RECIPE": str(recipe), "TYPO": str(recipe.with_name("tony.toml"))}
    for name, path in paths.items():
        message = message.replace(name, path)
    assert cli.main([paths.get(argument, argument) for argument in arguments]) == 2
    captured = capsys.readouterr().err
    assert message in captured
    assert len(captured.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (["train", "RECIPE", "--out", "TAKEN"], "--out"),
        (["features", "photo.png", "--encoder", "RECIPE", "--out", "TAKEN"], "--out"),
        (["caption", "RUN", "val", "--picture", "TAKEN"], "--picture"),
        (["caption", "RUN", "val", "--show-attention", "TAKEN"], "--show-attention"),
        (["translate", "RUN", "a", "--show-attention", "TAKEN"], "--show-attention"),
        (["lexicon", "RUN", "TAKEN"], "FILE"),
        (["evaluate", "RUN", "--json", "TAKEN"], "--json"),
        (["report", "RUN", "--out", "TAKEN"], "--out"),
        (["discrepancy", "RUN", "--json", "TAKEN"], "--json"),
        (["discrepancy", "RUN", "--picture", "TAKEN"], "--picture"),
        (["recipes", "copy", "shapes", "TAKEN"], "FILE"),
        (["data", "prepare", "--karpathy", "nowhere", "--features", "nowhere", "--out", "TAKEN"], "--out"),
        (["course", "cs231n", "TAKEN"], "DIR"),
        (["course", "release", "TAKEN"], "DIR"),
        (["course", "check", "nowhere", "--json", "TAKEN"], "--json"),
        (["course", "grade", "nowhere", "--csv", "TAKEN"], "--csv"),
    ],
)
def test_what_cannot_be_written_is_found_before_the_work(
    arguments, argument, run, recipe, tmp_path, capsys, monkeypatch
):
    for function in ("train", "load_run"):
        monkeypatch.setattr(runs, function, lambda *_, **__: pytest.fail("the work has begun"))
    (tmp_path / "file").touch()
    taken = tmp_path / "file" / "new"
    paths = {"RUN": str(run), "RECIPE": str(recipe), "TAKEN": str(taken)}
    assert cli.main([paths.get(each, each) for each in arguments]) == 2
    error = capsys.readouterr().err
    assert f"{argument} {taken} cannot be written: {taken.parent} is a file, expected a folder\n" in error


@pytest.mark.parametrize(
    "error", [TypeError, ValueError, KeyError, IndexError, ImportError, ZeroDivisionError]
)
def test_a_bug_shows_its_traceback_and_how_to_report_it(error, run, monkeypatch):
    def fail(*_, **__):
        raise error("not ours")

    monkeypatch.setattr(runs, "load_run", fail)
    with pytest.raises(error) as caught:
        cli.main(["caption", str(run), "val"])
    (note,) = caught.value.__notes__
    assert "This is a bug of rnnlab" in note
    assert f"rnnlab {rnnlab.__version__}, Python 3." in note


@pytest.mark.parametrize("error", [RnnlabError, InputError, NotInstalledError, OSError, MemoryError])
def test_what_the_user_can_mend_is_one_line(error, run, monkeypatch, capsys):
    def fail(*_, **__):
        raise error("yours to mend")

    monkeypatch.setattr(runs, "load_run", fail)
    assert cli.main(["caption", str(run), "val"]) == 2
    assert capsys.readouterr().err == "rnnlab caption: yours to mend\n"


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["train", "shapes", "--graph", "x", "--epoc"], "train"),
        (["train", "shapes", "surplus"], "train"),
        (["train", "shapes", "--epochs", "0"], "train"),
        (["data", "prepare", "--surplus"], "data prepare"),
        (["course", "grade", "folder", "--surplus"], "course grade"),
        (["course", "grade", "folder", "--jobs", "0"], "course grade"),
        (["recipes", "keys"], "recipes keys"),
    ],
)
def test_a_wrong_command_line_shows_the_usage_of_its_command(arguments, command, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    error = capsys.readouterr().err
    assert error.startswith(f"usage: rnnlab {command} ")
    assert f"\nrnnlab {command}: error: " in error
    assert error.endswith(f" (rnnlab {command} --help lists the options)\n")
    assert error.count("\n") <= 3  # not all options


@pytest.mark.parametrize(
    "arguments",
    [["kernels", "#", "show", "them"], ["caption", "runs/shapes", "test", "#", "in", "a", "table"]],
)
def test_a_comment_that_the_shell_passes_on(arguments, capsys):
    """As zsh does on a Mac."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert "this shell passes comments on: leave out # and the words after it" in capsys.readouterr().err


def test_too_little_memory_is_said(run, monkeypatch, capsys):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(runs, "load_run", fail)
    assert cli.main(["caption", str(run), "val"]) == 2
    assert capsys.readouterr().err == "rnnlab caption: out of memory\n"


def test_a_word_that_the_output_cannot_encode_is_escaped(monkeypatch):
    """As in the C locale, whose output Python opens with the error handler surrogateescape."""
    for errors in ("strict", "surrogateescape"):
        output = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors=errors)
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr(cli, "_run", lambda _: print("straße \udce4"))
        cli.main([])
        assert output.buffer.getvalue().decode().split() == ["stra\\xdfe", "\\udce4"]


@pytest.mark.parametrize("asked", ["fast", "numpy "])
def test_a_mistake_in_the_choice_of_kernels_is_not_one_of_the_run(asked, run, monkeypatch, capsys):
    monkeypatch.setenv("RNNLAB_OPS", asked)
    ops._for_numpy.cache_clear()
    assert cli.main(["caption", str(run), "val"]) == 2
    ops._for_numpy.cache_clear()
    error = capsys.readouterr().err
    assert error == f"rnnlab caption: RNNLAB_OPS is {asked!r}, expected 'numpy' or 'fused'\n"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_closed_output_is_no_bug(name, monkeypatch):
    """As after >&- in a shell."""
    monkeypatch.setattr(sys, name, None)
    assert cli.main(["recipes", "list"]) == 0
    assert getattr(sys, name).name == os.devnull
    getattr(sys, name).close()


def test_a_deleted_working_directory_is_no_bug(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert cli.main(["recipes", "list"]) == 0
    assert cli.main(["recipes", "copy", "flickr8k_lstm"]) == 2
    assert "rnnlab recipes: " in capsys.readouterr().err


def test_traceback_on_request(run):
    with pytest.raises(ValueError, match="not 'dev'"):
        cli.main(["--traceback", "evaluate", str(run), "--split", "dev"])
