"""The notebook that Otter Assign reads: blocks, points, tests and stubs."""

import ast
from pathlib import Path

import numpy as np
import pytest

from rnnlab.course.notebook_cells import read_content, read_notebook
from rnnlab.course.otter_notebook import otter_exercise, otter_notebook, otter_tests

from . import small_notebook


def made_from(path, cells=None):
    tags = read_notebook(small_notebook.write(path / "1_a.ipynb", cells))
    content = {"cells": cells or small_notebook.cells(), "metadata": {}}
    return otter_notebook(
        content, tags, {"name": "1_a", "tests": {"ok_format": False}}, np.random.default_rng(0)
    )


def texts(made):
    return ["".join(each["source"]) for each in made["cells"]]


def test_the_blocks(tmp_path):
    made = made_from(tmp_path)
    raw = ["".join(each["source"]) for each in made["cells"] if each["cell_type"] == "raw"]
    block = ["# BEGIN SOLUTION", "# END SOLUTION"]
    tests = ["# BEGIN TESTS", "# END TESTS"]
    assert raw == [
        '# ASSIGNMENT CONFIG\nname: "1_a"\ntests: {"ok_format": false}',
        *['# BEGIN QUESTION\nname: "rnn_step_forward"\npoints: 1', *block, *tests, "# END QUESTION"],
        *['# BEGIN QUESTION\nname: "rnn_step_backward"\npoints: 5', *block, *tests, "# END QUESTION"],
        *['# BEGIN QUESTION\nname: "answer_1"\npoints: 2\nmanual: true', *block, "# END QUESTION"],
    ]
    assert texts(made)[-5:] == [
        *[small_notebook.QUESTION, block[0], small_notebook.ANSWER, block[1], "# END QUESTION"]
    ]
    assert "`rnnlab/plain/rnn.py`, next (`2_b.ipynb`)" in texts(made)[1]
    assert not [each for each in made["cells"] if each.get("outputs") or "nbgrader" in each["metadata"]]
    assert len({each["id"] for each in made["cells"]}) == len(made["cells"])


def test_what_stands_before_the_check_stays_in_the_notebook(tmp_path):
    found = texts(made_from(tmp_path))
    place = found.index("# BEGIN TESTS")
    assert found[place - 1] == small_notebook.TESTS["rnn_step_forward"].rpartition("\n")[0]
    assert [each.count("own=True") for each in found[place + 1 : place + 3]] == [0, 1]


def test_what_follows_the_check_is_a_cell_after_the_question(tmp_path):
    check = "check('rnn_step',\n      rnn_step_forward)"
    source = f"a = 1\n{check}\n\n# compare\nprint(rnn_step_forward)\n"
    cells = small_notebook.cells()
    cells[3] = small_notebook.graded("rnn_step_forward", 1, source)
    found = texts(made_from(tmp_path, cells))
    tests, end = found.index("# BEGIN TESTS"), found.index("# END QUESTION")
    assert found[tests - 1] == "a = 1"
    assert "    check('rnn_step', rnn_step_forward)" in found[tests + 1]
    assert found[end + 1] == "# compare\nprint(rnn_step_forward)"
    assert found[end + 2].startswith("# BEGIN QUESTION")


def test_an_exercise():
    source = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    made = otter_exercise(source)
    assert made == (
        "def f(x):\n    # BEGIN SOLUTION NO PROMPT\n    return x\n    # END SOLUTION\n"
        '    """ # BEGIN PROMPT\n    raise NotImplementedError()\n    """; # END PROMPT'
    )
    namespace = {}
    exec(made, namespace)
    assert namespace["f"](3) == 3
    with pytest.raises(ValueError, match="no pair of ### BEGIN SOLUTION"):
        otter_exercise("def f(x):\n    return x")


def test_the_tests_of_a_function():
    visible, hidden = otter_tests("check('rnn_step', f, backward=g, seed=5)", "g", 2, [3, 4], where="n")
    head = '""" # BEGIN TEST CONFIG\nhidden: {}\npoints: {}\n""" # END TEST CONFIG\ndef test_g{}(env):\n'
    read = "    from rnnlab.course import check\n\n    f = env['f']\n    g = env['g']\n"
    assert visible == head.format("false", 0, "") + read + "    check('rnn_step', f, backward=g, seed=5)"
    assert hidden == (
        head.format("true", 2, "_hidden")
        + read
        + "    for seed in (3, 4):\n        check('rnn_step', f, backward=g, seed=seed, own=True)"
    )
    ast.parse(hidden)


def test_a_function_that_has_lost_an_argument():
    _, hidden = otter_tests("check('x', f)", "f", 2, [3], options=["mask"], where="n")
    hidden = hidden.replace("from rnnlab.course import check", "check = lambda *_, **options: None")
    namespace = {}
    exec(hidden, namespace)
    namespace["test_f_hidden"]({"f": lambda x, *, mask=None: x})
    with pytest.raises(AssertionError, match="^f has no argument mask"):
        namespace["test_f_hidden"]({"f": lambda x: x})


def test_the_masks_of_attention_are_asked_for():
    path = Path(__file__).resolve().parents[2] / "notebooks/3_attention.ipynb"
    made = otter_notebook(read_content(path), read_notebook(path), {}, np.random.default_rng(0))
    hidden = ["".join(each["source"]) for each in made["cells"] if "(env)" in "".join(each["source"])]
    asked = [each for each in hidden if "for option in ('mask',)" in each]
    assert any("def test_attention_step_forward_hidden" in each for each in asked)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (small_notebook.cells()[:3], "cell rnn_step_forward: .*followed by its test, found nothing after"),
        (small_notebook.cells()[3:5], "cell test_rnn_step_forward: .*, found rnn_step_backward after it"),
        (
            [*small_notebook.cells()[:3], small_notebook.graded("rnn_step_forward", 1, "r = check('x', f)")],
            "cell test_rnn_step_forward has no line with \"check\\('x', f\\)\" alone, expected one",
        ),
        (
            [*small_notebook.cells()[:3], small_notebook.graded("rnn_step_forward", 1, "check('x', f); f()")],
            "cell test_rnn_step_forward has no line with",
        ),
        (
            [*small_notebook.cells()[:3], small_notebook.graded("rnn_step_forward", 1, "f()")],
            "does not call check",
        ),
    ],
)
def test_notebooks_that_are_refused(tmp_path, cells, message):
    with pytest.raises(ValueError, match=message):
        made_from(tmp_path, cells)
