"""``rnnlab course``: files for courses, and marks."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab.cli import course_grade
from rnnlab.cli.arguments import show_help
from rnnlab.course.assignment_files import write_assignment


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    course = commands.add_parser("course", help="files for courses, and marks")
    show_help(course)
    actions = course.add_subparsers(dest="action", metavar="ACTION")

    cs231n = actions.add_parser("cs231n", help="write the files of the cs231n assignment, to fill in")
    cs231n.set_defaults(run=_cs231n)
    cs231n.add_argument("directory", metavar="DIR", help="the folder of the notebooks")

    course_grade.add(actions)


def _cs231n(options: argparse.Namespace) -> int:
    written = write_assignment(options.directory)
    print(f"Wrote {written}. Fill in rnn_layers.py, then classifiers/rnn.py.")
    return 0
