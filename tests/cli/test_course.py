import json

from rnnlab import cli

from ..course.assignment import fill_in


def test_the_assignment_is_written_once(tmp_path, capsys):
    directory = tmp_path / "assignment"
    assert cli.main(["course", "cs231n", str(directory)]) == 0
    written = directory / "cs231n"
    assert capsys.readouterr().out == f"Wrote {written}. Fill in rnn_layers.py, then classifiers/rnn.py.\n"
    assert (written / "classifiers" / "rnn.py").is_file()
    assert cli.main(["course", "cs231n", str(directory)]) == 2
    message = f"rnnlab course: {written} exists, expected no such folder: nothing is written\n"
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
    assert out.splitlines()[-1].split() == ["all", "3", "of", "17"]
    assert json.loads(written.read_text())["points"] == 3
    assert cli.main(["course", "check", str(tmp_path)]) == 2
    assert "rnn_layers.py does not exist" in capsys.readouterr().err


def test_the_check_of_a_right_assignment(tmp_path, capsys):
    fill_in(tmp_path)
    assert cli.main(["course", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "17", "of", "17"]
