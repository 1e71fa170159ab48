import json

import pytest

import rnnlab
from rnnlab import cli

from ..course import small_notebook
from ..course.assignment import fill_in


def test_the_assignment_is_written_once(tmp_path, capsys):
    directory = tmp_path / "assignment"
    assert cli.main(["course", "cs231n", str(directory)]) == 0
    written = directory / "cs231n"
    assert capsys.readouterr().out == f"Wrote {written}. Fill in rnn_layers.py, then classifiers/rnn.py.\n"
    assert (written / "classifiers" / "rnn.py").is_file()
    assert cli.main(["course", "cs231n", str(directory)]) == 2
    message = f"rnnlab course: {written} already exists, expected no such folder: choose another one\n"
    assert capsys.readouterr() == ("", message)


def test_the_command_alone_prints_its_help(capsys):
    assert cli.main(["course"]) == 0
    assert "cs231n" in capsys.readouterr().out


def test_the_check_of_an_unfinished_assignment(tmp_path, capsys):
    directory, written = tmp_path / "assignment", tmp_path / "report.json"
    assert cli.main(["course", "cs231n", str(directory)]) == 0
    capsys.readouterr()
    assert cli.main(["course", "check", str(directory), "--json", str(written)]) == 1
    out = capsys.readouterr().out
    assert "rnn_step_forward is not implemented yet" in out
    assert out.splitlines()[-1].split() == ["all", "0", "of", "14"]
    assert json.loads(written.read_text())["points"] == 0
    assert cli.main(["course", "check", str(tmp_path)]) == 2
    assert "rnn_layers.py does not exist" in capsys.readouterr().err


def test_the_check_of_a_right_assignment(tmp_path, capsys):
    fill_in(tmp_path)
    assert cli.main(["course", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "14", "of", "14"]


@pytest.mark.slow
def test_a_release_is_written_once(tmp_path, capsys):
    pytest.importorskip("nbgrader")
    small_notebook.write(tmp_path / "notebooks" / "1_a.ipynb")
    small_notebook.write(tmp_path / "notebooks" / "2_b.ipynb")
    command = ["course", "release", str(tmp_path / "mine"), "--notebooks", str(tmp_path / "notebooks")]
    assert cli.main([*command, "--only", "2, 2_b", "--course-id", "rnn101"]) == 0
    out, err = capsys.readouterr()
    assert out == (
        "2_b   2 functions   1 answers    8 points\n"
        f"Wrote {tmp_path / 'mine'}. "
        "Students get release/NAME.zip; source/ and solutions/ are for you alone.\n"
    )
    assert f"no --wheel: requirements.txt asks the package index for rnnlab=={rnnlab.__version__}" in err
    assert [path.name for path in (tmp_path / "mine" / "release").glob("*.zip")] == ["2_b.zip"]
    assert "course_id = 'rnn101'" in (tmp_path / "mine" / "nbgrader_config.py").read_text()
    assert cli.main(command) == 2
    assert "mine exists, expected no such path or an empty folder" in capsys.readouterr().err
    command[2] = str(tmp_path / "other")
    assert cli.main([*command, "--only", "3"]) == 2
    assert "only names '3', expected numbers or names of: 1_a, 2_b" in capsys.readouterr().err
    assert cli.main([*command, "--wheel", "no.whl"]) == 2
    assert "wheel is no.whl, which does not exist" in capsys.readouterr().err


@pytest.mark.slow
def test_a_release_that_students_can_install(tmp_path, capsys, monkeypatch):
    """With a wheel, or with an rnnlab of the package index, nothing is said."""
    pytest.importorskip("nbgrader")
    small_notebook.write(tmp_path / "notebooks" / "1_a.ipynb")
    wheel = small_notebook.write_wheel(tmp_path)
    options = ["--notebooks", str(tmp_path / "notebooks")]
    assert cli.main(["course", "release", str(tmp_path / "one"), *options, "--wheel", str(wheel)]) == 0
    monkeypatch.setattr("rnnlab.cli.course.installed_from_index", lambda: True)
    assert cli.main(["course", "release", str(tmp_path / "two"), *options]) == 0
    assert capsys.readouterr().err == ""


def test_a_release_without_nbgrader(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    assert cli.main(["course", "release", str(tmp_path)]) == 2
    message = 'rnnlab course: releasing assignments needs nbgrader: pip install "rnnlab[course]"\n'
    assert capsys.readouterr() == ("", message)


def test_a_release_without_otter(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    assert cli.main(["course", "release", str(tmp_path), "--format", "otter"]) == 2
    assert 'needs otter-grader: pip install "rnnlab[otter]"' in capsys.readouterr().err
