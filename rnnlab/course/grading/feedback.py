"""Marks in nbgrader's gradebook, and a page for each student: by nbgrader's own converters.

nbgrader would run the notebooks. Here the output of each test cell is the report on its function, and its
value is the points, which is nbgrader's way to give partial credit.
"""

from __future__ import annotations

import functools
import html
import logging
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from rnnlab.course.grading.marks import FunctionMark, SubmissionMark
from rnnlab.course.notebook_cells import tag_of
from rnnlab.course.source_notebook import without_hidden_tests
from rnnlab.errors import InputError
from rnnlab.extras import Library
from rnnlab.files import atomic_text
from rnnlab.pools import map_in_processes

__all__ = ["require_gradebook", "write_feedback"]

_NBGRADER = Library("nbgrader", "course", "feedback")
# The HTML elements that Markdown produces, and others that the notebooks contain.
_TAGS = frozenset([
    "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2",
    "h3", "h4", "h5", "h6", "hr", "i", "img", "li", "ol", "p", "pre", "s", "span", "strong", "sub", "summary",
    "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul",
])  # fmt: skip
_ATTRIBUTES = {"*": ["class", "id", "align"], "a": ["href", "title"], "img": ["src", "alt", "title", "width"]}
_PROTOCOLS = {"http", "https", "mailto", "data"}
_LISTED = re.compile(r'(<li><a href="#(\w+)">)(?:Test cell|Written response)</a>')  # nbgrader's list of cells
_REFUSED = "nbgrader refuses the notebook, so that these points are not in its gradebook yet"
Marks = Mapping[tuple[str, str], Mapping[str, FunctionMark]]  # by student and assignment, then by test cell


class Feedback(NamedTuple):
    """What :func:`write_feedback` has written."""

    folder: Path  # the pages, STUDENT/ASSIGNMENT/NOTEBOOK.html; its index.html lists all marks
    refused: list[str]  # for each notebook that nbgrader refuses, a line that names it


def write_feedback(course: Path, marks: Sequence[SubmissionMark], *, jobs: int = 1) -> Feedback:
    """Write marks into the gradebook of a course, and a page for each submission.

    Earlier marks and pages of the same submissions are replaced. Points and comments that were given by hand
    are kept. A notebook that nbgrader refuses, such as one with two copies of a test, gets a page with its
    marks but no points in the gradebook.

    Parameters
    ----------
    course : path
        The folder that ``rnnlab course release`` has written, with the folder ``submitted``.
    marks : sequence of SubmissionMark
    jobs : int
        The number of processes that write pages.

    Returns
    -------
    Feedback

    Raises
    ------
    ImportError
        If nbgrader is not installed.
    ValueError
        If the course has no gradebook, or nbgrader cannot read the name of a student.
    """
    require_gradebook(course)
    by_test = {
        (mark.student, mark.assignment): {f"test_{each.name}": each for each in mark.functions}
        for mark in marks
        if not mark.problem
    }
    refused: set[tuple[str, str]] = set()
    for assignment in sorted({assignment for _, assignment in by_test}):
        students = [student for student, of in by_test if of == assignment]
        refused |= {
            (student, assignment) for student in _convert(course, assignment, students, by_test, jobs)
        }
    feedback = course / "feedback"
    shown = [
        replace(mark, problem=_REFUSED) if (mark.student, mark.assignment) in refused else mark
        for mark in marks
    ]
    for mark in shown:
        if mark.problem:
            _write_problem(feedback, mark)
    _write_index(feedback, shown)
    return Feedback(
        feedback, [f"{student}  {assignment}  {_REFUSED}" for student, assignment in sorted(refused)]
    )


def _convert(
    course: Path, assignment: str, students: Sequence[str], marks: Marks, jobs: int
) -> Sequence[str]:
    """Write the marks and pages of an assignment; return the students whose notebooks nbgrader refuses."""
    from nbgrader.converters import NbGraderException

    try:
        _run(_autograde(marks), course, assignment, students)
        _write_pages(course, assignment, students, jobs)
    except NbGraderException:  # it does not name the student, so convert one by one
        if len(students) == 1:
            return students
        return [each for student in students for each in _convert(course, assignment, [student], marks, 1)]
    return []


def require_gradebook(course: Path) -> None:
    """Check beforehand that feedback can be written.

    Raises
    ------
    ImportError
        If nbgrader is not installed.
    ValueError
        If the course has no gradebook, or nbgrader cannot read the name of a student.
    """
    _NBGRADER.require()
    if not (course / "gradebook.db").exists():
        raise InputError(f"{course} has no gradebook.db, expected what `rnnlab course release` writes")
    for path in sorted((course / "submitted").glob("*")):
        if set(path.name) & set("*?[]"):
            raise InputError(
                f"{path}: found one of * ? [ ] in the name of a student, which nbgrader cannot read"
            )


def _write_pages(course: Path, assignment: str, students: Sequence[str], jobs: int) -> None:
    """Write the pages of an assignment in several processes."""
    if jobs == 1:
        _write_pages_of(course, assignment, students)
        return
    shares = [students[first::jobs] for first in range(min(jobs, len(students)))]
    write = functools.partial(_write_pages_of, course, assignment)
    for _ in map_in_processes(write, shares, jobs=jobs, method="forkserver"):
        pass


def _write_pages_of(course: Path, assignment: str, students: Sequence[str]) -> None:
    _run(_feedback(), course, assignment, students)


def _run(converter: Any, course: Path, assignment: str, students: Sequence[str]) -> None:
    """Convert the notebooks of some students."""
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    class OfStudents(converter):  # nbgrader's list of students to leave out is separated by commas
        def init_destination(self, assignment_id: str, student_id: str) -> bool:
            return student_id in students and super().init_destination(assignment_id, student_id)

    config = Config()
    config.CourseDirectory.root = str(course.absolute())
    config.CourseDirectory.assignment_id = assignment
    config.CourseDirectory.ignore = ["*"]  # data are not copied for each student
    run = OfStudents(coursedir=CourseDirectory(config=config), config=config)
    run.force = True
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # nbgrader warns of test cells that differ: they have no hidden tests
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nbgrader's own code causes warnings of SQLAlchemy
            run.start()
    finally:
        logging.disable(before)


def _autograde(marks: Marks) -> Any:
    """nbgrader's Autograde, with rnnlab's marks instead of running the notebook."""
    from nbformat.v4 import new_output
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import CheckCellMetadata, NbGraderPreprocessor, SaveAutoGrades
    from traitlets import List

    class WriteOutputs(NbGraderPreprocessor):
        """Replaces the output of each test cell by the report on its function."""

        def preprocess_cell(self, cell: Any, resources: Any, _: int) -> tuple[Any, Any]:
            names = resources["nbgrader"]
            found = marks[names["student"], names["assignment"]].get(_grade_id(cell))
            if found is not None:
                points = {"text/plain": f"{found.points:g}"}
                cell.execution_count = None
                cell.outputs = [
                    new_output("stream", name="stdout", text=f"{found.text}\n"),
                    new_output("execute_result", data=points, execution_count=None),
                ]
            return cell, resources

    class AutogradeMarks(Autograde):
        """Autograde without running anything."""

        autograde_preprocessors = List([WriteOutputs, SaveAutoGrades, CheckCellMetadata])

    return AutogradeMarks


def _feedback() -> Any:
    """nbgrader's GenerateFeedback, without hidden tests and without active content."""
    import bleach
    from jinja2 import pass_context
    from nbconvert.exporters import HTMLExporter
    from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
    from nbgrader.converters import GenerateFeedback
    from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
    from traitlets import List

    class Shown(NbGraderPreprocessor):
        """Shows the test cells as students have seen them, without nbgrader's number of points.

        Raw cells, which may have any format, are emptied.
        """

        def preprocess_cell(self, cell: Any, resources: Any, _: int) -> tuple[Any, Any]:
            cell.source = "" if cell.cell_type == "raw" else without_hidden_tests(cell.source)
            if _grade_id(cell).startswith("test_"):
                cell.outputs = [each for each in cell.outputs if each.output_type == "stream"]
            return cell, resources

    class PageExporter(HTMLExporter):
        """Exports pages in which no student's content runs in a browser, with a list of tests by function."""

        def from_notebook_node(self, nb: Any, resources: Any = None, **options: Any) -> tuple[Any, Any]:
            page, resources = super().from_notebook_node(nb, resources, **options)
            return _LISTED.sub(lambda row: f"{row[1]}{_title(row[2])}</a>", page), resources

        @pass_context
        def markdown2html(self, context: Any, source: str) -> str:
            written = super().markdown2html(context, source)
            return bleach.clean(written, tags=_TAGS, attributes=_ATTRIBUTES, protocols=_PROTOCOLS)

    class FeedbackOfMarks(GenerateFeedback):
        """Writes pages with :class:`PageExporter`."""

        exporter_class = PageExporter
        preprocessors = List([Shown, GetGrades, CSSHTMLHeaderPreprocessor])

    return FeedbackOfMarks


def _grade_id(cell: Any) -> str:
    return str(tag_of(cell).get("grade_id", ""))


def _title(grade_id: str) -> str:
    """The function of a test, or the question of an answer."""
    kind, _, subject = grade_id.partition("_")
    return f"Question {subject}, marked by hand" if kind == "answer" else subject


def _write_problem(feedback: Path, mark: SubmissionMark) -> None:
    """A page for a submission that could not be marked, or whose notebook cannot be shown."""
    path = feedback / _page(mark)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"<p>{mark.points:g} of {mark.max_points:g} points: {html.escape(mark.problem)}.</p>"
    text += "".join(f"<pre>{html.escape(each.text)}</pre>" for each in mark.functions if each.text)
    _write_html(path, f"{mark.assignment}, {mark.student}", text)


def _write_index(feedback: Path, marks: Sequence[SubmissionMark]) -> None:
    """A table of all submissions for the teacher, with their points and pages."""
    rows = ["<tr><th>student<th>assignment<th>points<th>of<th>look at<th>problem"]
    for mark in marks:
        address = quote(os.fsencode(_page(mark).as_posix()))
        link = f'<a href="{address}">{html.escape(mark.assignment)}</a>'
        cells = [
            html.escape(mark.student),
            link,
            f"{mark.points:g}",
            f"{mark.max_points:g}",
            html.escape("; ".join(map(str, mark.suspicions))),
            html.escape(mark.problem),
        ]
        rows.append("<tr>" + "".join(f"<td>{cell}" for cell in cells))
    feedback.mkdir(exist_ok=True)
    _write_html(feedback / "index.html", "Submissions", "<table>\n" + "\n".join(rows) + "\n</table>")


def _page(mark: SubmissionMark) -> Path:
    """The path of a page within the feedback; a released notebook has its assignment's name."""
    return Path(mark.student, mark.assignment, f"{mark.assignment}.html")


def _write_html(path: Path, title: str, body: str) -> None:
    title = html.escape(title)
    with atomic_text(path) as file:
        file.write(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f"<h1>{title}</h1>{body}</html>\n"
        )
