"""``rnnlab gradcheck``: rows, exit status, patterns and processes."""

import pytest

from rnnlab import cli
from rnnlab.cli import gradcheck
from rnnlab.cli.gradcheck import _line
from rnnlab.gradcheck.run import Row
from rnnlab.ops.precision import products_in


@pytest.mark.slow
def test_gradcheck_prints_a_row_for_each_case(capsys):
    arguments = ["gradcheck", "--only", "gru_step", "--jobs", "1"]
    assert cli.main(arguments) == 0
    captured = capsys.readouterr()
    header, *rows, verdict = captured.out.splitlines()
    assert header.split() == ["layer", "or", "model", "error", "check", "gradients"]
    assert [row.split()[0] for row in rows] == ["gru_step", "simplified_gru_step"]
    assert all(row.split()[2] == "ok" and len(row.split()) == 4 for row in rows)
    assert verdict == "All 2 checks passed."
    assert captured.err == ""  # no bar where there is no terminal
    assert cli.main([*arguments, "--tolerance", "1e-30"]) == 1
    _, row, _, verdict = capsys.readouterr().out.splitlines()
    assert row.split(maxsplit=3)[2:] == ["WRONG", "x, prev_h, Wx, Wh, b"]
    assert verdict == "2 of 2 checks failed: gradients are WRONG."
    assert cli.main([*arguments[:-1], "2"]) == 0
    assert capsys.readouterr().out == captured.out
    assert cli.main(["gradcheck", "--only", "gruu"]) == 2
    assert "rnnlab gradcheck: only is 'gruu', which matches no name" in capsys.readouterr().err


def test_a_row_names_at_most_six_gradients():
    names = [f"layer{k}" for k in range(1, 41)]
    row = Row("Seq2Seq", 0.5, "layer1", names, [], passed=False)
    assert _line(row, 9).endswith("WRONG  layer1, layer2, layer3, layer4, layer5, layer6 and 34 more")
    assert _line(row._replace(wrong=names[:6]), 9).endswith("layer5, layer6")


def test_columns_stay_apart_and_list_every_wrong_gradient():
    row = Row("arnet", 0.5, "encoder_arnet_backward_Whok", [], [], True)
    assert _line(row, 7) == "arnet  5.0e-01  ok     encoder_arnet_backward_Whok"
    row = row._replace(wrong=["Wh", "b"], touched=["dout 0"], passed=False)
    assert _line(row, 7) == "arnet  5.0e-01  WRONG  Wh, b; writes into dout 0"


@pytest.mark.slow
def test_a_cell_that_fails_is_explained(capsys):
    arguments = ["gradcheck", "--cell", "gru", "--only", "recurrent, gru, lengths", "--jobs", "1"]
    assert cli.main(arguments) == 0
    assert "dprev_state" not in capsys.readouterr().out
    assert cli.main([*arguments, "--tolerance", "1e-30"]) == 1
    assert "An error in da or dprev_state spreads" in capsys.readouterr().out.splitlines()[-1]


def test_the_notice_of_compiling_is_above_the_table(monkeypatch, capfd):
    def rows(**_):
        print("compiling", flush=True)
        yield Row("gru_step", 0.0, "x", [], [], True)

    monkeypatch.setattr(gradcheck, "check_all", rows)
    assert cli.main(["gradcheck", "--only", "gru_step"]) == 0
    notice, header, *_ = capfd.readouterr().out.splitlines()
    assert notice == "compiling"
    assert header.startswith("layer or model")


def test_reduced_precision_is_refused(capsys):
    with products_in("bfloat16"):
        assert cli.main(["gradcheck", "--only", "affine", "--jobs", "1"]) == 2
    assert "rnnlab gradcheck: check_all: gradient checks need products of full" in capsys.readouterr().err
