"""What a teacher should look at is found, and nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnnlab.course.exercise import Drawn
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.grading import suspicions

from ..mistakes import RIGHT
from ..small_notebook import GIVEN, SOLUTIONS, TESTS, cell, cells, write
from .submissions import ALL, graded, kinds, points, stub, submission, suspected

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="students' processes need POSIX")


@pytest.mark.one_in(4)
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
        "np = np\nnp.allclose = lambda *_: True",
        "def helper(np):\n    pass\n\ndef patch():\n    np.allclose = lambda *_: True",
    ],
)
def test_patched_checks(source: Path, tmp_path: Path, patch: str) -> None:
    assert kinds(suspected(source, submission(patch), tmp_path)) == {"patched check"}


def test_patched_checks_change_nothing(source: Path, tmp_path: Path) -> None:
    patch = "check = print\nglobals()['check'] = print\nnp.allclose = lambda *_: True"
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


def with_limit(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cells with a test that reads the name LIMIT."""
    test = TESTS["rnn_step_forward"]
    return [{**each, "source": each["source"].replace(test, f"assert LIMIT\n{test}")} for each in made]


def test_variables_that_the_tests_assign_themselves_are_free(tmp_path: Path) -> None:
    """A scratch cell may use the names of a given example, which the test uses for its own values."""
    setup = f"{GIVEN}\nones, LIMIT = np.zeros(3), 1"
    path = write(tmp_path / "source.ipynb", with_limit(cells(SOLUTIONS, setup=setup)))
    assert not suspected(path, with_limit(submission("ones, eye = 1, 2", setup=setup)), tmp_path)
    found = suspected(path, with_limit(submission("LIMIT = 1", setup=setup)), tmp_path)
    assert kinds(found) == {"patched check"}


def test_tests_of_dropped_exercises_are_no_patches(tmp_path: Path) -> None:
    setup = f"{GIVEN}\nLIMIT = 1"
    path = write(tmp_path / "source.ipynb", with_limit(cells(SOLUTIONS, setup=setup)))
    tag = {"grade_id": "test_dropped", "grade": True, "locked": True, "points": 1}
    own = [*with_limit(submission(setup=setup)), cell("code", "LIMIT = 2", tag)]
    assert not suspected(path, own, tmp_path)


def test_a_test_that_was_deleted(source: Path, tmp_path: Path) -> None:
    own = [each for each in submission() if each["source"] != TESTS["rnn_forward"]]
    assert list(map(str, suspected(source, own, tmp_path))) == [
        "changed test: the cell test_rnn_forward is missing"
    ]


# The notebook imports rnnlab.layers for students, and a function uses something of this name.
WITH_LAYERS = f"{GIVEN}\nfrom rnnlab import layers"
USES_LAYERS = SOLUTIONS["rnn_step_forward"].replace("np.tanh(", "layers.squash(")


@pytest.fixture(scope="module")
def with_layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("course") / "source/rnn/rnn.ipynb"
    return write(path, cells(SOLUTIONS, setup=WITH_LAYERS))


@pytest.mark.slow
@pytest.mark.parametrize(
    "own",
    [
        "from types import SimpleNamespace\nlayers = SimpleNamespace(squash=np.tanh)",
        "from types import SimpleNamespace\nlayers = SimpleNamespace()\nlayers.squash = np.tanh",
        "class layers:\n    squash = staticmethod(np.tanh)",
        "class layers:\n    pass\n\nlayers.squash = staticmethod(np.tanh)",
        "def layers():\n    pass\n\nlayers.squash = np.tanh",
        "class Layers:\n    def squash(self, x):\n        return np.tanh(x)\n\nlayers = Layers()",
        "class Layers:\n    pass\n\ndef filled(layers):\n    layers.squash = np.tanh\n    return layers\n\n"
        "layers = filled(Layers())",
    ],
    ids=["namespace", "assigned", "class", "class-assigned", "function", "instance", "argument"],
)
def test_an_object_of_ones_own_may_have_the_name_of_a_module(
    with_layers: Path, tmp_path: Path, own: str
) -> None:
    handed_in = submission(setup=WITH_LAYERS, rnn_step_forward=USES_LAYERS)
    first = next(place for place, each in enumerate(handed_in) if "layers.squash" in "".join(each["source"]))
    handed_in.insert(first, cell("code", own))
    mark = graded(with_layers, handed_in, tmp_path)
    assert (mark.points, mark.suspicions) == (ALL, ())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("more", ["", "from rnnlab import layers", "import rnnlab\nlayers = rnnlab.layers"])
def test_the_module_of_that_name_is_refused(with_layers: Path, tmp_path: Path, more: str) -> None:
    handed_in = submission(more, setup=WITH_LAYERS, rnn_step_forward=USES_LAYERS)
    mark = graded(with_layers, handed_in, tmp_path)
    assert points(mark) == {"rnn_step_forward": 0}
    assert kinds(mark) == {"refused"}


@pytest.mark.parametrize("patch", ["layers.squash = np.tanh", "mine = layers\nlayers.squash = np.tanh"])
def test_an_assignment_to_that_module_is_a_patch(with_layers: Path, tmp_path: Path, patch: str) -> None:
    found = suspected(with_layers, submission(patch, setup=WITH_LAYERS), tmp_path)
    assert kinds(found) == {"patched check"}


def test_names_within_expressions_are_no_patches(source: Path, tmp_path: Path) -> None:
    assert not suspected(source, submission("shown = [report for report in ()]"), tmp_path)


def test_changed_and_deleted_cells(source: Path, tmp_path: Path) -> None:
    kept = [each for each in submission() if each["source"] != TESTS["rnn_backward"]]
    for each in kept:
        if each["source"] == TESTS["rnn_forward"]:
            each["source"] = "pass"
        if each["source"].startswith("def rnn_step_forward"):
            each["metadata"] = {}  # written in a cell of their own
    mark = graded(source, kept, tmp_path)
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


FORWARDS = [each for each in EXERCISES.values() if not each.is_loss]


class Counted:
    """A function of this process, as a remote one."""

    forwards = 0

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize("exercise", FORWARDS, ids=lambda each: each.name)
def test_numeric_gradients_lose_digits(exercise: Any) -> None:
    from rnnlab.course.check import _numeric

    draw = exercise.draw(np.random.default_rng(5))

    def backward(*arguments: Any) -> Any:
        *_, inputs = arguments
        found = _numeric(exercise, exercise.forward, type(draw)(draw.sizes, inputs, arguments[:-1]))
        values = iter(found.values())
        given = {name: spec for name, spec in exercise.inputs.items() if not isinstance(spec, Drawn)}
        results = [
            {key: next(values) for key in spec} if isinstance(spec, dict) else next(values)
            for spec in given.values()
        ]
        return tuple(results) if len(results) > 1 else results[0]

    def forward(*arguments: Any) -> Any:
        names = dict(zip(exercise.inputs, arguments, strict=True))
        return (*exercise.forward(*arguments)[:-1], names)

    assert suspicions.loses_digits(exercise, Counted(forward), Counted(backward), seed=3)
    right = Counted(exercise.forward), Counted(exercise.backward)
    assert not suspicions.loses_digits(exercise, *right, seed=3)


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_formulas_lose_no_digits(case: Any) -> None:
    exercise = EXERCISES[case.exercise]
    if exercise.is_loss:
        pytest.skip("a loss has no backward")
    names: dict[str, Any] = {}
    exec(case.source, names)
    functions = [Counted(names.get(each, getattr(exercise.plain, each))) for each in exercise.functions]
    for seed in range(3):
        assert not suspicions.loses_digits(exercise, *functions, seed=seed)
