"""Submissions of every kind have the marks that they should, and are named."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnlab.course.exercises import EXERCISES
from rnnlab.course.grading import (
    Limits,
    SubmissionMark,
    SubmittedFile,
    find_submissions,
    grade_submission,
    grade_submissions,
    suspicions,
    write_csv,
    write_json,
)

from ..mistakes import RIGHT
from .notebooks import POINTS, SOLUTIONS, TESTS, cell, source_notebook, stub, submission, write

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="students' processes need POSIX")
LIMITS = Limits(seconds=2)
ALL = sum(POINTS.values())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("course") / "source/rnn/rnn.ipynb", source_notebook())


def graded(source: Path, content: Any, tmp_path: Path, secret: str = "s") -> SubmissionMark:
    path = write(tmp_path / "rnn.ipynb", content)
    return grade_submission(SubmittedFile("ada", "rnn", path, source), limits=LIMITS, secret=secret)


def points(mark: SubmissionMark) -> dict[str, float]:
    return {each.name: each.points for each in mark.functions if each.points != each.most}


def kinds(mark: SubmissionMark) -> set[str]:
    return {each.kind for each in mark.suspicions}


def text_of(mark: SubmissionMark, function: str) -> str:
    return next(each.text for each in mark.functions if each.name == function)


def test_right(source: Path, tmp_path: Path) -> None:
    for secret in ("a", "b", "c"):
        mark = graded(source, submission(), tmp_path, secret)
        assert (mark.points, mark.most, mark.problem) == (ALL, ALL, "")
        assert not mark.suspicions
        assert mark.answers == {"answer_1": True}


def test_blank(source: Path, tmp_path: Path) -> None:
    blank = submission(answer="YOUR ANSWER HERE", **{name: stub(name) for name in SOLUTIONS})
    mark = graded(source, blank, tmp_path)
    assert mark.points == 0
    assert not mark.suspicions
    assert mark.answers == {"answer_1": False}
    assert "not implemented yet" in text_of(mark, "rnn_step_forward")
    assert "cannot be checked until rnn_step_forward works" in text_of(mark, "rnn_step_backward")


PARTLY = """
def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h**2)
    return da @ Wx.T, da @ Wh, x.T @ da, prev_h.T @ da, da.mean(axis=0)
"""


def test_partial_credit_and_names(source: Path, tmp_path: Path) -> None:
    """A wrong step costs its own points, and not those of the sequence that calls it."""
    mark = graded(source, submission(rnn_step_backward=PARTLY), tmp_path)
    assert points(mark) == {"rnn_step_backward": 3}
    text = text_of(mark, "rnn_step_backward")
    assert "dprev_h has Wh where Wh.T belongs" in text
    assert "db is divided by N" in text
    assert "With the right rnn_step_backward in the place of yours" in text_of(mark, "rnn_backward")


def test_wrong_sequence_with_wrong_step(source: Path, tmp_path: Path) -> None:
    backward = SOLUTIONS["rnn_backward"].replace("dh[:, t] + dh_t", "dh[:, t]")
    mark = graded(source, submission(rnn_step_backward=PARTLY, rnn_backward=backward), tmp_path)
    assert set(points(mark)) == {"rnn_step_backward", "rnn_backward"}
    assert (
        points(mark)["rnn_backward"] == 0
    )  # each gradient depends on the step after it, but those of one step


def test_write_into_the_callers_array_costs_a_result(source: Path, tmp_path: Path) -> None:
    writing = SOLUTIONS["rnn_step_backward"].replace("    da = dnext_h * ", "    dnext_h *= ")
    writing = writing.replace("da = dnext_h", "dnext_h").replace(
        "(1 - next_h**2)", "1 - next_h**2\n    da = dnext_h"
    )
    mark = graded(source, submission(rnn_step_backward=writing), tmp_path)
    assert points(mark) == {"rnn_step_backward": 4}
    assert "writes into its argument dnext_h" in text_of(mark, "rnn_step_backward")


def test_write_into_the_cache(source: Path, tmp_path: Path) -> None:
    writing = SOLUTIONS["rnn_step_backward"].replace(
        "    da =", "    next_h[...] = next_h\n    x += 1\n    x -= 1.5\n    da ="
    )
    mark = graded(source, submission(rnn_step_backward=writing), tmp_path)
    assert "writes into cache" in text_of(mark, "rnn_step_backward")


NUMERIC = """
def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    x, prev_h, Wx, Wh = x.copy(), prev_h.copy(), Wx.copy(), Wh.copy()
    b = (np.arctanh(next_h) - x @ Wx - prev_h @ Wh)[0]
    gradients = []
    for array in (x, prev_h, Wx, Wh, b):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            old = array[place]
            array[place] = old + 1e-5
            up = {}
            array[place] = old - 1e-5
            down = {}
            array[place] = old
            gradient[place] = ((up - down) * dnext_h).sum() / 2e-5
        gradients.append(gradient)
    return tuple(gradients)
"""


@pytest.mark.parametrize(
    "value", ["np.tanh(x @ Wx + prev_h @ Wh + b)", "rnn_step_forward(x, prev_h, Wx, Wh, b)[0]"]
)
def test_numeric_gradient(source: Path, tmp_path: Path, value: str) -> None:
    mark = graded(source, submission(rnn_step_backward=NUMERIC.format(value, value)), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert kinds(mark) == {"numeric gradient"}


def test_complex_steps_are_numeric(source: Path, tmp_path: Path) -> None:
    """They are exact, and call the forward for each number."""
    text = """
def rnn_step_backward(dnext_h, cache):
    inputs = [array.astype(complex) for array in cache[:4]]
    b = (np.arctanh(cache[4]) - cache[0] @ cache[2] - cache[1] @ cache[3])[0].astype(complex)
    gradients = []
    for array in (*inputs, b):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            array[place] += 1e-30j
            gradient[place] = (rnn_step_forward(*inputs, b)[0].imag * dnext_h).sum() / 1e-30
            array[place] -= 1e-30j
        gradients.append(gradient)
    return tuple(gradients)
"""
    mark = graded(source, submission(rnn_step_backward=text), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert kinds(mark) == {"numeric gradient"}


@pytest.mark.parametrize(
    "text",
    [
        "from rnnlab.plain.rnn import rnn_step_backward",
        "from rnnlab.plain.rnn import rnn_step_backward as right\n"
        "def rnn_step_backward(dnext_h, cache):\n    return right(dnext_h, cache)",
        "import rnnlab\ndef rnn_step_backward(dnext_h, cache):\n"
        "    return rnnlab.layers.rnn_step_backward(dnext_h, cache)",
        "def rnn_step_backward(dnext_h, cache):\n    import importlib\n"
        "    return importlib.import_module('rnnlab.plain.rnn').rnn_step_backward(dnext_h, cache)",
        "def rnn_step_backward(dnext_h, cache):\n    import torch\n    return torch.autograd.grad(dnext_h)",
        "def rnn_step_backward(dnext_h, cache):\n    return open('/usr/lib/solution.py').read()",
        "def rnn_step_backward(dnext_h, cache):\n    import os\n    return os.listdir('/')",
    ],
    ids=["import", "renamed", "attribute", "importlib", "autograd", "file", "folder"],
)
def test_library_and_files_are_out_of_reach(source: Path, tmp_path: Path, text: str) -> None:
    mark = graded(source, submission(rnn_step_backward=text), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert kinds(mark) == {"refused"}


@pytest.mark.parametrize(
    "patch",
    [
        "def check(*arguments):\n    pass",
        "check = print",
        "report = lambda errors, limit: None",
        "import rnnlab.course\nrnnlab.course.check = print",
        "np.allclose = lambda *_: True",
        "setattr(np.linalg, 'norm', lambda *_: 0.0)",
        "import sys\nsys.modules['rnnlab'] = None",
        "globals()['check'] = print",
        "from mine import relative_distance",
    ],
)
def test_patched_checks_change_nothing(source: Path, tmp_path: Path, patch: str) -> None:
    mark = graded(source, submission(patch, rnn_step_backward=stub("rnn_step_backward")), tmp_path)
    assert kinds(mark) == {"patched check"}
    assert points(mark) == {"rnn_step_backward": 0}


def test_own_helpers_are_no_patches(source: Path, tmp_path: Path) -> None:
    helper = "import numpy as np\nfrom rnnlab.course import check\n\ndef slope(h):\n    return 1 - h**2"
    backward = SOLUTIONS["rnn_step_backward"].replace("(1 - next_h**2)", "slope(next_h)")
    mark = graded(
        source, submission(helper, "x = np.ones(3)\nx[0] = 2", rnn_step_backward=backward), tmp_path
    )
    assert (mark.points, mark.suspicions) == (ALL, ())


def test_changed_and_deleted_cells(source: Path, tmp_path: Path) -> None:
    notebook = submission()
    cells = [each for each in notebook["cells"] if each["source"] != TESTS["rnn_backward"]]
    for each in cells:
        if each["source"] == TESTS["rnn_forward"]:
            each["source"] = "pass"
        if each["source"].startswith("def rnn_step_forward"):
            each["metadata"] = {}  # written in a cell of their own
    mark = graded(source, notebook | {"cells": cells}, tmp_path)
    changed = [each.text for each in mark.suspicions]
    assert kinds(mark) == {"changed test"}
    assert ["test_rnn_forward" in text or "test_rnn_backward" in text for text in changed] == [True, True]
    assert mark.points == ALL


def test_hard_coded_values(source: Path, tmp_path: Path) -> None:
    text = """
def rnn_step_forward(x, prev_h, Wx, Wh, b):
    return np.array([[0.96402758, 0.96402759], [0.41159778, 0.3455367]])[:1], (x, prev_h, Wx, Wh, x)
"""
    mark = graded(source, submission(rnn_step_forward=text), tmp_path)
    assert kinds(mark) == {"hard-coded values"}
    assert points(mark)["rnn_step_forward"] == 0


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("while True: pass", "has no result after 2 s"),
        ("while True: print('x' * 10_000)", "prints more than"),
        ("return np.ones(10**10)", "out of memory"),
        ("import random; random._os._exit(0)", "ends the process"),
        ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
        ("return rnn_step_backward(dnext_h, cache)", "RecursionError"),
        ("return None", "returns None, expected 5"),
        ("return [object()] * 5, 1, 2, 3, 4", "dx is of type tuple"),
        ("return np.array([object()]), 1, 2, 3, 4", "expected an array"),
    ],
)
def test_hostile_functions_cost_their_own_points(source: Path, tmp_path: Path, body: str, says: str) -> None:
    text = f"def rnn_step_backward(dnext_h, cache):\n    {body}"
    mark = graded(source, submission(rnn_step_backward=text), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert says in text_of(mark, "rnn_step_backward")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"cells": 3}',
        '{"cells": [{"source": 1}]}',
        "[" * 100_000,
        "\x00\udce4",
        '{"cells": [[]]}',
    ],
    ids=range(9),
)
def test_no_notebook(source: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "rnn.ipynb"
    path.write_bytes(content.encode("utf8", "surrogatepass"))
    mark = grade_submission(SubmittedFile("ada", "rnn", path, source), limits=LIMITS, secret="s")
    assert (mark.points, mark.most) == (0, ALL)
    assert mark.problem.startswith("rnn.ipynb is not a notebook")


def test_missing_file(source: Path, tmp_path: Path) -> None:
    file = SubmittedFile("ada", "rnn", tmp_path / "rnn.ipynb", source)
    assert "cannot be read" in grade_submission(file, limits=LIMITS, secret="s").problem


def test_batch_in_order_by_several_processes(source: Path, tmp_path: Path) -> None:
    course = source.parent.parent.parent
    for student, content in {
        "b": submission(),
        "a": "broken",
        "c": submission(rnn_step_backward=PARTLY),
    }.items():
        write(tmp_path / f"submitted/{student}/rnn/rnn.ipynb", content)
    files = find_submissions(tmp_path / "submitted", course / "source")
    marks = list(grade_submissions(files, limits=LIMITS, secret="s", jobs=2))
    assert [(mark.student, mark.points) for mark in marks] == [("a", 0), ("b", ALL), ("c", ALL - 2)]
    assert marks == list(grade_submissions(files, limits=LIMITS, secret="s"))

    write_csv(tmp_path / "marks.csv", marks)
    with open(tmp_path / "marks.csv", newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    assert [row["points"] for row in rows] == ["0", f"{ALL}", f"{ALL - 2}"]
    assert rows[2]["rnn_step_backward"] == "3"
    assert rows[0]["problem"]
    write_json(tmp_path / "marks.json", marks)
    found = json.loads((tmp_path / "marks.json").read_text("utf8"))
    assert found[2]["functions"][1]["results"]["db"] is False


def test_formulas_for_spreadsheets_are_defused(tmp_path: Path) -> None:
    write_csv(tmp_path / "marks.csv", [SubmissionMark("=1+1", "rnn", ())])
    assert "'=1+1" in (tmp_path / "marks.csv").read_text("utf8")


def test_nothing_to_mark(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no STUDENT/ASSIGNMENT folder, expected assignments among rnn"):
        find_submissions(tmp_path, source.parent.parent)
    with pytest.raises(ValueError, match="has no ASSIGNMENT/NOTEBOOK.ipynb"):
        find_submissions(tmp_path, tmp_path)


def test_given_helpers_are_defined(tmp_path: Path) -> None:
    """A function of the notebook's own cells, such as sigmoid, is there for the student's functions."""
    notebook, own = source_notebook(), submission()
    given = cell("def slope(h):\n    return 1 - h**2")
    notebook["cells"].insert(2, given)
    own["cells"].insert(2, given)
    for each in own["cells"]:
        each["source"] = each["source"].replace("(1 - next_h**2)", "slope(next_h)")
    path = write(tmp_path / "source.ipynb", notebook)
    assert graded(path, own, tmp_path).points == ALL


# ---------------------------------------------------------------- numeric gradients are told from formulas

FORWARDS = [each for each in EXERCISES.values() if not each.is_loss]


class Counted:
    """A function of this process, as a remote one."""

    forwards = 0

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@pytest.mark.parametrize("exercise", FORWARDS, ids=lambda each: each.name)
def test_numeric_gradients_fail_on_stiff_inputs(exercise: Any) -> None:
    from rnnlab.course.check import _numeric

    draw = exercise.draw(np.random.default_rng(5))

    def backward(*arguments: Any) -> Any:
        *_, inputs = arguments
        found = _numeric(exercise, exercise.forward, type(draw)(draw.sizes, inputs, arguments[:-1]))
        values = iter(found.values())
        given = {name: spec for name, spec in exercise.inputs.items() if not callable(spec)}
        results = [
            {key: next(values) for key in spec} if isinstance(spec, dict) else next(values)
            for spec in given.values()
        ]
        return tuple(results) if len(results) > 1 else results[0]

    def forward(*arguments: Any) -> Any:
        names = dict(zip(exercise.inputs, arguments, strict=True))
        return (*exercise.forward(*arguments)[:-1], names)

    assert suspicions.is_numeric(exercise, Counted(forward), Counted(backward), seed=3)
    assert not suspicions.is_numeric(exercise, Counted(exercise.forward), Counted(exercise.backward), seed=3)


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_formulas_are_not_taken_for_numeric_gradients(case: Any) -> None:
    exercise = EXERCISES[case.exercise]
    if exercise.is_loss:
        pytest.skip("a loss has no backward")
    names: dict[str, Any] = {}
    exec(case.source, names)
    functions = [Counted(names.get(each, getattr(exercise.plain, each))) for each in exercise.functions]
    for seed in range(3):
        assert not suspicions.is_numeric(exercise, *functions, seed=seed)
