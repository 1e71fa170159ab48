"""The check of a folder that a student has filled in."""

import json
import sys

import pytest

from rnnlab.course.assignment_files import write_assignment
from rnnlab.course.folder_check import check_folder

from .assignment import fill_in


@pytest.fixture
def package(tmp_path):
    """The folder of the package, filled in."""
    return fill_in(tmp_path)


def change(path, right, wrong):
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))


def problems(report):
    """What is wrong with each function that is not right."""
    assert all((row.points < row.max_points) <= bool(row.problems) for row in report.rows)
    return {row.function: " ".join(row.problems) for row in report.rows if row.problems}


def test_a_right_folder(package):
    report = check_folder(package.parent)
    assert problems(report) == {}
    assert report.passed
    assert (report.points, report.max_points, len(report.rows)) == (14, 14, 17)
    lines = str(report).splitlines()
    assert lines[0].split() == ["function", "points", "what", "is", "wrong"]
    assert [line.split() for line in lines[1:3]] == [["rnn_step_forward", "1"], ["rnn_step_backward", "1"]]
    assert lines[-1].split() == ["all", "14", "of", "14"]
    assert check_folder(package).passed  # the package itself will do


def test_what_is_to_be_written_is_not_implemented_yet(tmp_path):
    write_assignment(tmp_path)
    report = check_folder(tmp_path)
    found = problems(report)
    assert found["lstm_forward"] == "lstm_forward is not implemented yet"
    assert found["lstm_backward"] == "not checked, because lstm_forward does not return its results"
    assert found["CaptioningRNN.loss, rnn"] == "CaptioningRNN.loss is not implemented yet"
    assert found["CaptioningRNN.sample, lstm"] == "CaptioningRNN.sample is not implemented yet"
    assert (report.points, report.max_points) == (0, 14)
    given = {"temporal_affine_forward", "temporal_affine_backward", "temporal_softmax_loss"}
    assert {row.function for row in report.rows if not row.problems} == given
    lines = [line.split() for line in str(report).splitlines()]
    assert all([name, "given"] in lines for name in given)


def test_a_given_function_that_was_changed(package):
    layers = package / "rnn_layers.py"
    layers.write_text(
        layers.read_text() + "\n\ndef temporal_affine_forward(x, w, b):\n    return x @ w, None\n"
    )
    report = check_folder(package.parent)
    assert "b does not reach out" in problems(report)["temporal_affine_forward"]
    assert not report.passed


def test_mistakes_are_named(package):
    layers = package / "rnn_layers.py"
    layers.write_text(
        layers.read_text()
        + """

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h)
    return da @ Wx.T, da @ Wh.T, x.T @ da, prev_h.T @ da, da.sum(axis=0)


def word_embedding_forward(x, W):
    return 2 * W[x], (x, W.shape)


def lstm_step_backward(dnext_h, dnext_c, cache):
    return dnext_h[:, 99]
"""
    )
    report = check_folder(package.parent)
    found = problems(report)
    assert [*found] == [
        "rnn_step_backward", "lstm_step_backward", "word_embedding_forward", "word_embedding_backward",
        "CaptioningRNN.loss, rnn", "CaptioningRNN.loss, lstm",
        "CaptioningRNN.sample, rnn", "CaptioningRNN.sample, lstm",
    ]  # fmt: skip
    assert "da has next_h where its square belongs" in found["rnn_step_backward"]
    assert found["lstm_step_backward"].startswith("lstm_step_backward raises IndexError: ")
    assert found["lstm_step_backward"].endswith("return dnext_h[:, 99]")
    assert "out is twice what it should be" in found["word_embedding_forward"]
    assert "fix word_embedding_forward first" in found["word_embedding_backward"]
    table = str(report)
    assert all(len(line) <= 110 for line in table.splitlines())
    assert "da has next_h where its square belongs" in " ".join(table.split())


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            "backward(dh, recurrent)",
            "backward(dh / len(dh), recurrent)",
            "the gradient of W_proj is 0.25 times what it should be",
        ),
        ("(scores, captions_out, mask)", "(scores, captions_in, mask)", "expected"),
    ],
)
def test_a_wrong_loss(package, right, wrong, message):
    change(package / "classifiers" / "rnn.py", right, wrong)
    found = problems(check_folder(package.parent))
    assert {*found} == {"CaptioningRNN.loss, rnn", "CaptioningRNN.loss, lstm"}
    assert message in found["CaptioningRNN.loss, rnn"]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            "        return captions\n",
            "        return captions[:, 1:]\n",
            "expected integers (N, max_length)",
        ),
        ("word = captions[:, t] =", "captions[:, t] =", " as word "),
        ("np.full(len(features), self._start)", "np.full(len(features), self._end)", " as word "),
        ("for t in range(max_length)", "for t in range(0)", "caption 0 has <NULL> as word 0, expected"),
    ],
)
def test_a_wrong_sample(package, right, wrong, message):
    change(package / "classifiers" / "rnn.py", right, wrong)
    found = problems(check_folder(package.parent))
    assert {*found} == {"CaptioningRNN.sample, rnn", "CaptioningRNN.sample, lstm"}
    assert all(message in text for text in found.values())


def test_other_parameters(package):
    change(package / "classifiers" / "rnn.py", '"b_vocab": np.zeros(V)', '"b_voc": np.zeros(V)')
    found = problems(check_folder(package.parent))
    assert (
        "InputError: params has W_proj, b_proj, W_embed, Wx, Wh, b, W_vocab, b_voc, expected"
        in (found["CaptioningRNN.sample, rnn"])
    )


def test_a_syntax_error(package):
    layers = package / "rnn_layers.py"
    lines = len(layers.read_text().splitlines())
    layers.write_text(layers.read_text() + "\ndef broken(:\n")
    report = check_folder(package.parent)
    expected = f"cs231n/rnn_layers.py, line {lines + 2}: invalid syntax: def broken(:"
    assert {*problems(report).values()} == {expected}
    assert report.points == 0
    assert str(report).count(expected) == 1
    assert str(report).count("as above") == 16


@pytest.mark.parametrize("place", ["module", "function"])
def test_a_file_that_ends_the_program(package, place):
    layers = package / "rnn_layers.py"
    if place == "module":
        layers.write_text(layers.read_text() + "\nimport sys; sys.exit(0)\n")
    else:
        layers.write_text(layers.read_text() + "\ndef rnn_step_forward(*_):\n    raise SystemExit\n")
    report = check_folder(package.parent)
    assert not report.passed
    assert "SystemExit" in problems(report)["rnn_step_forward"]


def test_an_error_of_the_import(package):
    model = package / "classifiers" / "rnn.py"
    model.write_text(model.read_text() + "\nraise RuntimeError('mine')\n")
    found = problems(check_folder(package.parent))
    assert [*found] == [
        f"CaptioningRNN.{each}, {cell}" for each in ("loss", "sample") for cell in ("rnn", "lstm")
    ]
    assert found["CaptioningRNN.loss, rnn"].startswith("cs231n/classifiers/rnn.py, line ")
    assert found["CaptioningRNN.loss, rnn"].endswith(": RuntimeError: mine")


def test_missing_functions(package):
    for path, name in (
        (package / "rnn_layers.py", "rnn_step_forward"),
        (package / "classifiers/rnn.py", "x"),
    ):
        path.write_text(path.read_text() + f"\n{name} = None\n")
    (package / "classifiers" / "rnn.py").write_text("CaptioningRNN = None\n")
    found = problems(check_folder(package.parent))
    assert found["rnn_step_forward"] == "cs231n/rnn_layers.py defines no function rnn_step_forward"
    assert found["rnn_step_backward"] == "not checked, because there is no rnn_step_forward"
    assert found["CaptioningRNN.loss, rnn"] == "cs231n/classifiers/rnn.py defines no class CaptioningRNN"


def test_modules_and_paths_are_as_before(package, capsys):
    layers = package / "rnn_layers.py"
    layers.write_text("print('hello')\n" + layers.read_text())
    path, modules = list(sys.path), {name for name in sys.modules if name.startswith("cs231n")}
    check_folder(package.parent)
    assert sys.path == path
    assert {name for name in sys.modules if name.startswith("cs231n")} == modules
    assert capsys.readouterr() == ("", "hello\n")


def test_a_module_beside_the_package_is_not_the_next_students(package, tmp_path_factory):
    other = fill_in(tmp_path_factory.mktemp("other"))
    for each, result in ((package, "h"), (other, "0 * h")):
        (each.parent / "own_helpers.py").write_text(f"def finish(h):\n    return {result}\n")
        layers = each / "rnn_layers.py"
        layers.write_text(
            "import sys\nsys.path.append('elsewhere')\nimport own_helpers\n"
            + layers.read_text()
            + "\n\nright = rnn_step_forward\n\n\ndef rnn_step_forward(*given):\n"
            + "    next_h, cache = right(*given)\n    return own_helpers.finish(next_h), cache\n"
        )
    path = list(sys.path)
    assert check_folder(package.parent).passed
    assert "rnn_step_forward" in problems(check_folder(other.parent))
    assert sys.path == path
    assert "own_helpers" not in sys.modules


def test_another_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"rnn_layers.py does not exist, expected the folder that"):
        check_folder(tmp_path)


def test_a_file_with_the_rows(package, tmp_path):
    (package / "classifiers" / "rnn.py").write_text("CaptioningRNN = None\n")
    report = check_folder(package.parent)
    report.write_json(tmp_path / "report.json")
    found = json.loads((tmp_path / "report.json").read_text())
    assert (found["points"], found["max_points"]) == (10, 14)
    assert found["functions"][0] == {
        "function": "rnn_step_forward",
        "points": 1,
        "max_points": 1,
        "problems": [],
    }
    assert found["functions"][-1]["problems"] == ["cs231n/classifiers/rnn.py defines no class CaptioningRNN"]
