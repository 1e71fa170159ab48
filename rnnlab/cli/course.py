"""``rnnlab course``: files for courses, and marks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import rnnlab
from rnnlab.cli import course_grade
from rnnlab.cli.arguments import check_outputs, show_help
from rnnlab.course.assignment_files import write_assignment
from rnnlab.course.folder_check import check_folder
from rnnlab.course.release import FORMATS, release
from rnnlab.course.release_files import installed_from_index
from rnnlab.files import check_writable

_SHARED = {
    "nbgrader": "Students get release/NAME.zip; source/ and solutions/ are for you alone.",
    "otter": "Students get dist/NAME/student/; Gradescope gets the zip in dist/NAME/autograder/.",
}


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    course = commands.add_parser("course", help="make, check and mark assignments")
    show_help(course)
    actions = course.add_subparsers(dest="action", metavar="ACTION")

    cs231n = actions.add_parser("cs231n", help="write the files of the cs231n assignment, to fill in")
    cs231n.set_defaults(run=_cs231n)
    cs231n.add_argument("directory", metavar="DIR", help="the folder of the notebooks")

    check = actions.add_parser("check", help="check the files of the cs231n assignment that are filled in")
    check.set_defaults(run=_check)
    check.add_argument("folder", metavar="FOLDER", help="the folder with the package cs231n")
    check.add_argument("--json", metavar="FILE", help="write the points and what is wrong as JSON")

    made = actions.add_parser("release", help="write assignments from the notebooks, for nbgrader or Otter")
    made.set_defaults(run=_release)
    made.add_argument("directory", metavar="DIR", help="the folder of the course; new or empty")
    made.add_argument(
        "--notebooks", metavar="FOLDER", help="the folder of the notebooks (default: that of the clone)"
    )
    made.add_argument(
        "--only", type=_names, default=(), metavar="1,2", help="numbers or names of notebooks (default: all)"
    )
    made.add_argument(
        "--course-id", default="rnnlab", metavar="ID", help="nbgrader's name of the course (default: rnnlab)"
    )
    made.add_argument(
        "--format",
        choices=FORMATS,
        default="nbgrader",
        help="nbgrader's course, or Otter-Grader's assignments for Gradescope (default: nbgrader)",
    )
    made.add_argument("--wheel", metavar="FILE", help="a wheel of rnnlab, for students to install")

    course_grade.add(actions)


def _cs231n(options: argparse.Namespace) -> int:
    check_writable("DIR", options.directory, is_folder=True)
    written = write_assignment(options.directory)
    print(f"Wrote {written}. Fill in rnn_layers.py, then classifiers/rnn.py.")
    return 0


def _check(options: argparse.Namespace) -> int:
    check_outputs(options, "json", inputs=map(str, Path(options.folder).rglob("*.py")))
    report = check_folder(options.folder)
    print(report)
    if options.json:
        report.write_json(options.json)
    return 0 if report.passed else 1


def _release(options: argparse.Namespace) -> int:
    check_writable("DIR", options.directory, is_folder=True)
    assignments = release(
        options.directory,
        notebooks=options.notebooks,
        only=options.only,
        course_id=options.course_id,
        wheel=options.wheel,
        format=options.format,
    )
    width = max(len(each.name) for each in assignments)
    for each in assignments:
        counts = f"{each.exercises:2} functions  {each.answers:2} answers  {each.points:3g} points"
        print(f"{each.name:{width}}  {counts}")
    print(f"Wrote {options.directory}. {_SHARED[options.format]}")
    if not options.wheel and not installed_from_index():
        print(
            "rnnlab course: no --wheel: requirements.txt asks the package index for "
            f"rnnlab=={rnnlab.__version__}, but the rnnlab here was installed from elsewhere. If the index "
            "does not have this version, students cannot install it: run `pip wheel --no-deps -w dist .` "
            "in the clone, and release with --wheel",
            file=sys.stderr,
        )
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
