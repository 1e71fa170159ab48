"""``rnnlab gradcheck``: rows, exit status, patterns and processes."""

from rnnlab import cli


def test_gradcheck_prints_a_row_for_each_case(capsys):
    arguments = ["gradcheck", "--only", "gru_step", "--jobs", "1"]
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    header, *rows, verdict = captured.out.splitlines()
    assert header.split() == ["layer", "or", "model", "error", "worst"]
    assert [row.split()[0] for row in rows] == ["gru_step", "simplified_gru_step"]
    assert all(row.endswith("ok") for row in rows)
    assert verdict == "All 2 checks passed."
    assert captured.err == ""  # no bar where there is no terminal
    assert cli.main([*arguments, "--tolerance", "1e-30"]) == 1
    assert "2 of 2 checks failed: gradients are WRONG." in capsys.readouterr().out
    assert cli.main([*arguments[:-1], "2"]) == 0
    assert capsys.readouterr().out == captured.out
    assert cli.main(["gradcheck", "--only", "gruu"]) == 2
    assert "rnnlab gradcheck: gradcheck: only is 'gruu', which matches no name" in capsys.readouterr().err
