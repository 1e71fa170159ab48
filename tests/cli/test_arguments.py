"""Types of arguments, and commands without arguments."""

import pytest

from rnnlab import cli
from rnnlab.recipes import shipped


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


def test_a_command_does_not_replace_what_it_reads(run, tmp_path, capsys):
    photograph, link = tmp_path / "a.jpg", tmp_path / "link.png"
    photograph.write_bytes(b"a photograph")
    link.symlink_to(photograph)
    for path in (photograph, link):
        assert cli.main(["caption", str(run), str(photograph), "--picture", str(path)]) == 2
        said = f"--picture {path} is a file that the command reads, which would be replaced: choose another"
        assert said in capsys.readouterr().err
    sentences = tmp_path / "in.txt"
    sentences.write_text("a cat")
    command = ["translate", str(run), "--file", str(sentences), "--show-attention", str(sentences)]
    assert cli.main(command) == 2
    assert "--show-attention" in capsys.readouterr().err
    assert (photograph.read_bytes(), sentences.read_text()) == (b"a photograph", "a cat")
    recipe = tmp_path / "mine.toml"
    recipe.write_text(shipped.text("shapes"))
    before = recipe.read_text()
    assert cli.main(["sweep", str(recipe), "--csv", str(recipe), "--out", str(tmp_path / "sweep")]) == 2
    assert f"--csv {recipe} is a file that the command reads" in capsys.readouterr().err
    assert recipe.read_text() == before
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize("name", ["config.json", "history.csv", "last.h5", "log.jsonl"])
def test_a_command_does_not_replace_files_of_a_run(name, run, capsys):
    path = run / name
    is_made = not path.exists()
    if is_made:
        path.write_bytes(b"{}")
    before = path.read_bytes()
    assert cli.main(["compare", str(run), "--no-scores", "--csv", str(run / name)]) == 2
    kind = "an HDF5 file" if name.endswith("h5") else f"a file of the run in {run.resolve()}"
    assert f"--csv {run / name} is {kind}" in capsys.readouterr().err
    assert path.read_bytes() == before
    if is_made:
        path.unlink()


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["caption", "RUN", "val"], ("--picture", "--show-attention")),
        (["discrepancy", "RUN"], ("--json", "--picture")),
    ],
    ids=str,
)
def test_two_options_write_to_different_files(command, options, attending_run, tmp_path, capsys):
    words = [str(attending_run) if word == "RUN" else word for word in command]
    first, second = options
    path, same = tmp_path / "file.png", f"{tmp_path}/./file.png"
    assert cli.main([*words, first, str(path), second, same]) == 2
    said = f"rnnlab {command[0]}: {first} and {second} are both {same}, expected two files\n"
    assert capsys.readouterr().err == said
    assert not path.exists()
