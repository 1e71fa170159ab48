"""Types of arguments, and commands without arguments."""

import pytest

from rnnlab import cli


@pytest.mark.parametrize("option", ["--max-images", "--beam", "--n-best"])
@pytest.mark.parametrize("count", ["0", "-3", "2.5"])
def test_counts_are_at_least_one(run, option, count, capsys):
    with pytest.raises(SystemExit):
        cli.main(["caption", str(run), "val", f"{option}={count}"])
    assert "expected an integer of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--min-count", "--max-words", "--pca"])
@pytest.mark.parametrize("count", ["0", "-7"])
def test_counts_of_prepared_data_are_at_least_one(option, count, capsys):
    required = ["--karpathy", "a.json", "--features", "f.h5", "--out", "folder"]
    with pytest.raises(SystemExit):
        cli.main(["data", "prepare", *required, f"{option}={count}"])
    assert "expected an integer of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf", "soon"])
def test_hours_are_positive(hours, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "recipe.toml", f"--max-hours={hours}"])
    assert f"'{hours}', expected a positive number" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_a_command_alone_prints_its_help(arguments, capsys):
    assert cli.main(arguments) == 0
    assert "show this help message" in capsys.readouterr().out
