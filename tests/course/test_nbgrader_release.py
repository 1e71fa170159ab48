"""What nbgrader makes of a notebook, and what it says of one that it refuses."""

import os

import pytest

from rnnlab.course.nbgrader_release import NBGRADER, generate

from . import small_notebook


def test_without_nbgrader(monkeypatch, tmp_path):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r'releasing assignments needs nbgrader: pip install "rnnlab\[course\]"'
    ):
        NBGRADER.require()
    with pytest.raises(ImportError, match="needs nbgrader"):
        generate(tmp_path, "course", "1_a")


@pytest.mark.slow
@pytest.mark.usefixtures("quick_databases")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda cells: [*cells, small_notebook.exercise("rnn_step_forward", "x = 1")], "Duplicate grade id"),
        (
            lambda cells: [*cells[:2], small_notebook.exercise("f", "### BEGIN SOLUTION\nx = 1")],
            "no end solution statement found",
        ),
        (
            lambda cells: [*cells, small_notebook.cell("code", "### BEGIN SOLUTION\nx\n### END SOLUTION")],
            "Solution region",
        ),
    ],
)
def test_a_notebook_that_nbgrader_refuses(tmp_path, change, reason):
    small_notebook.write(tmp_path / "source" / "1_a" / "1_a.ipynb", change(small_notebook.cells()))
    environment = dict(os.environ)
    with pytest.raises(ValueError, match=f"^nbgrader refuses the assignment 1_a: .*{reason}"):
        generate(tmp_path, "course", "1_a")
    assert dict(os.environ) == environment
    assert not (tmp_path / "release" / "1_a").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("quick_databases")
@pytest.mark.parametrize("path", ["/usr/bin", None])
def test_the_environment_is_as_it_was(monkeypatch, tmp_path, path):
    if path is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", path)
    environment = dict(os.environ)
    small_notebook.write(tmp_path / "source" / "1_a" / "1_a.ipynb", small_notebook.cells())
    generate(tmp_path, "course", "1_a")
    assert (tmp_path / "release" / "1_a" / "1_a.ipynb").exists()
    assert dict(os.environ) == environment
