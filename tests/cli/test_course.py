from rnnlab import cli


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
