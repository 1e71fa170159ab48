"""The instructor's notebook: no outputs, hidden tests, no links to other files."""

import numpy as np
import pytest

from rnnlab.course.notebook_cells import read_notebook
from rnnlab.course.source_notebook import (
    NUM_SEEDS,
    source_notebook,
    with_hidden_test,
    without_links,
    without_self_study,
)

from . import small_notebook


def hidden(source):
    return with_hidden_test(source, [3, 4], where="n.ipynb, cell test_f")


def test_the_hidden_test_repeats_the_last_check():
    text = 'check("rnn_step", f)\nfor _ in range(2):\n    check("rnn_step", f, backward=g, seed=5)\n'
    assert hidden(text) == (
        f"{text}### BEGIN HIDDEN TESTS\nfrom rnnlab.course import check as hidden_check\n\n"
        "for hidden_seed in (3, 4):\n"
        "    hidden_check('rnn_step', f, backward=g, seed=hidden_seed, own=True)\n### END HIDDEN TESTS"
    )
    assert "    hidden_check('x', f, seed=hidden_seed, own=True)" in hidden("course.check('x', f)")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("assert f(1) == 2", r"n.ipynb, cell test_f does not call check, expected a call such as"),
        ("check('x', f", "n.ipynb, cell test_f is not Python"),
        (
            "check('x', f)\n### BEGIN HIDDEN TESTS\n1\n### END HIDDEN TESTS",
            "has a hidden test, expected none",
        ),
    ],
)
def test_cells_that_have_no_check(source, message):
    with pytest.raises(ValueError, match=message):
        hidden(source)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[`rnn.py`](../rnnlab/plain/rnn.py)", "`rnnlab/plain/rnn.py`"),
        ("[`rnnlab/plain/lstm.py`](../rnnlab/plain/lstm.py)", "`rnnlab/plain/lstm.py`"),
        ("[the first](1_rnn.ipynb) and [here](#two)", "the first (`1_rnn.ipynb`) and [here](#two)"),
        ("[tables](../benchmarks/papers.md#coco)", "tables (`benchmarks/papers.md`)"),
        ("[x](https://a.org/(b)) [y](mailto:a@b.c)", "[x](https://a.org/(b)) [y](mailto:a@b.c)"),
        ("$h[t](x + 1)$ and a[0] (see b)", "$h[t](x + 1)$ and a[0] (see b)"),
    ],
)
def test_links(text, expected):
    assert without_links(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<!-- self-study -->; b<!-- end of self-study -->. c", "a. c"),
        ("a\n\n<!-- self-study -->\n\nb\n\n<!-- end of self-study -->\n\n| c |", "a\n\n| c |"),
        ("a<!-- self-study --> b\n  c<!-- end of self-study -->\n- d", "a\n- d"),
        (
            "<!-- self-study -->a<!-- end of self-study --> b <!-- self-study -->c<!-- end of self-study -->",
            " b ",
        ),
    ],
)
def test_self_study_is_left_out(text, expected):
    assert without_self_study(text) == expected


def test_a_notebook(tmp_path):
    tags = read_notebook(small_notebook.write(tmp_path / "1_a.ipynb"))
    content = {"cells": small_notebook.cells(), "metadata": {}}
    made = source_notebook(content, tags, np.random.default_rng(0))
    assert content == {"cells": small_notebook.cells(), "metadata": {}}  # it is not changed
    assert [each["metadata"] for each in made["cells"]] == [
        each["metadata"] for each in small_notebook.cells()
    ]
    texts = ["".join(each["source"]) for each in made["cells"]]
    before = ["".join(each["source"]) for each in small_notebook.cells()]
    assert [place for place, (a, b) in enumerate(zip(texts, before, strict=True)) if a != b] == [0, 3, 5]
    assert texts[0] == "# RNN\n`rnnlab/plain/rnn.py`, next (`2_b.ipynb`), [web](https://a.org/b)"
    code = [each for each in made["cells"] if each["cell_type"] == "code"]
    assert [(each["outputs"], each["execution_count"]) for each in code] == [([], None)] * 5
    seeds = [text.partition("hidden_seed in (")[2].partition(")")[0].split(", ") for text in texts]
    assert len({*seeds[3], *seeds[5]}) == 2 * NUM_SEEDS
