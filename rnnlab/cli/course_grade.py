"""``rnnlab course grade``: the marks of submissions."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from rnnlab.cli.arguments import check_outputs, positive_integer
from rnnlab.course.grading import (
    Limits,
    SubmissionMark,
    find_submissions,
    grade_submissions,
    write_csv,
    write_json,
)
from rnnlab.course.grading.feedback import require_gradebook, write_feedback
from rnnlab.course.grading.grade import filters_system_calls
from rnnlab.course.grading.process import BOUNDS
from rnnlab.errors import InputError
from rnnlab.ops.threads import num_processors


def add(actions: Any) -> None:
    """Add the arguments of the action."""
    grade = actions.add_parser(
        "grade",
        help="mark the functions of submitted notebooks",
        description="Mark the functions of submitted notebooks. They run in processes of their own, without "
        "rnnlab, files and network, on inputs that are new for each student.",
    )
    grade.set_defaults(run=_grade)
    grade.add_argument("submitted", type=Path, metavar="SUBMITTED", help="STUDENT/ASSIGNMENT/NOTEBOOK.ipynb")
    grade.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="the notebooks with solutions, ASSIGNMENT/NOTEBOOK.ipynb (the folder source next to SUBMITTED)",
    )
    grade.add_argument("--csv", metavar="FILE", help="write a table with a row for each submission")
    grade.add_argument("--json", metavar="FILE", help="write everything that was found")
    grade.add_argument(
        "--feedback",
        action="store_true",
        help="write marks into nbgrader's gradebook, and pages for students into feedback, for the "
        "folder `submitted` of a course",
    )
    grade.add_argument(
        "--jobs",
        type=positive_integer,
        metavar="N",
        help="the maximum number of processes (default: that of cores)",
    )
    grade.add_argument(
        "--seconds",
        type=float,
        default=Limits.seconds,
        help="the time limit of one call, in seconds (default: %(default)g)",
    )
    grade.add_argument(
        "--megabytes",
        type=int,
        default=Limits.megabytes,
        help="the memory limit of the process of a notebook in MB, on Linux (default: %(default)s)",
    )
    grade.add_argument("--seed", metavar="TEXT", help="repeat the random inputs of an earlier run")


def _grade(options: argparse.Namespace) -> int:
    for name in ("seconds", "megabytes"):
        (least, most), value = BOUNDS[name], getattr(options, name)
        if not least <= value <= most:
            raise InputError(f"--{name} is {value}, expected {least:,} to {most:,}")
    if sys.platform == "win32":
        raise InputError("rnnlab course grade runs on Linux and macOS, found Windows")
    limits = Limits(seconds=options.seconds, megabytes=options.megabytes)
    submitted = Path(os.path.abspath(options.submitted))  # "." has no parent
    course = submitted.parent
    source = options.source or course / "source"
    check_outputs(options, "csv", "json")
    if options.feedback:
        if submitted.name != "submitted":
            raise InputError(
                f"--feedback: SUBMITTED is {options.submitted}, expected the folder `submitted` of a course: "
                "its notebooks are those that feedback is written for"
            )
        require_gradebook(course)
    files, others = find_submissions(options.submitted, source)
    notebooks = [str(path) for each in files for path in (each.path, each.source)]
    check_outputs(options, "csv", "json", inputs=notebooks)
    if not filters_system_calls():
        print(
            "note: the kernel of this machine does not filter the system calls of students' code; Python's "
            "audit hook alone refuses files and network",
            file=sys.stderr,
        )
    if sys.platform != "linux":
        print("note: the memory of students' code is limited on Linux only", file=sys.stderr)
    secret = options.seed or secrets.token_hex(8)
    jobs = min(options.jobs or num_processors(), len(files))
    marks: list[SubmissionMark] = []
    with tqdm(total=len(files), unit="notebook", disable=None) as progress:
        for mark in grade_submissions(files, limits=limits, secret=secret, jobs=jobs):
            marks.append(mark)
            with suppress(BrokenPipeError):  # the files are still written
                progress.write(str(mark))
                sys.stdout.flush()  # also into a pipe
            progress.update()
    if options.csv:
        write_csv(options.csv, marks)
    if options.json:
        write_json(options.json, marks)
    if options.feedback:
        feedback = write_feedback(course, marks, jobs=jobs)
        print("\n".join([*feedback.refused, f"Wrote {feedback.folder}."]))
    for mark in marks:
        for each in mark.suspicions:
            print(f"{mark.student}  {mark.assignment}  {each}")
    for other in others:
        print(f"not marked: {other}")
    marked, students = sum(not mark.problem for mark in marks), {mark.student for mark in marks}
    print(f"Notebooks marked: {marked} of {len(marks)}. Students: {len(students)}. Seed: {secret}.")
    return 0
