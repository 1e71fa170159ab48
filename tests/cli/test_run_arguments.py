"""One run or several: which arguments are runs, and the errors of runs that do not fit together."""

import pytest

from rnnlab import cli
from rnnlab.cli.run_arguments import leading_runs
from rnnlab.data import write_shapes

from .. import quick_runs


@pytest.fixture(scope="module")
def other_words(tmp_path_factory, recipe):
    """A run whose training captions have fewer words."""
    folder = tmp_path_factory.mktemp("words")
    write_shapes(folder / "shapes", {"train": 6, "val": 2, "test": 2})
    return quick_runs.train(recipe, folder / "run", f"data.directory={folder / 'shapes'}")


def test_the_runs_are_the_leading_directories_of_runs(run, second_run, tmp_path, monkeypatch):
    one, other = str(run), str(second_run)
    assert leading_runs(one, [other, "a b c", other]) == ([one, other], ["a b c", other])
    assert leading_runs("nowhere", []) == (["nowhere"], [])
    assert leading_runs(one, ["val"]) == ([one], ["val"])
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert leading_runs(one, ["models"]) == ([one], ["models"])  # a word, or a split
    assert leading_runs(one, ["./models", "val"]) == ([one], ["./models", "val"])
    assert leading_runs(one, [str(tmp_path / "models"), "val"]) == ([one, str(tmp_path / "models")], ["val"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "RUN", "SECOND", "RUN"], "RUN and RUN are the same run"),
        (["evaluate", "RUN", "EMPTY"], "EMPTY holds no run"),
        (["caption", "RUN", "EMPTY", "val"], "EMPTY holds no run"),
        (
            ["evaluate", "RUN", "--average", "probabilities"],
            "--average is given with one run, expected several runs",
        ),
        (
            ["caption", "RUN", "val", "--average", "probabilities"],
            "--average is given with one run, expected several runs",
        ),
        (["evaluate", "RUN", "WORDS"], "WORDS: vocabulary: found "),
        (["evaluate", "RUN", "WORDS"], " of the run RUN; the first tokens that differ: "),
        (
            ["caption", "RUN", "SECOND"],
            "SECOND is a run; which images? Give a split or images after",
        ),
        (["caption", "RUN", "car.png"], "car.png: no such photograph, and no image of the run's data"),
        (["evaluate", "RUN/best.h5"], "RUN/best.h5 is a file, expected the directory of a run: give RUN"),
        (
            ["evaluate", "RUN", "SECOND/best.h5"],
            "is a file, expected the directory of a run: give SECOND",
        ),
    ],
)
def test_errors_name_the_runs(arguments, message, run, second_run, other_words, tmp_path, capsys):
    paths = {"RUN": str(run), "SECOND": str(second_run), "WORDS": str(other_words), "EMPTY": str(tmp_path)}
    for name, path in paths.items():
        message = message.replace(name, path)
    for name, path in paths.items():
        arguments = [argument.replace(name, path) for argument in arguments]
    assert cli.main(arguments) == 2
    captured = capsys.readouterr().err
    assert message in captured
    assert len(captured.splitlines()) == 1
