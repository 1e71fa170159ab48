"""Grading: students' functions run in other processes without rnnlab, and their results are compared here."""

from rnnlab.course.grading.grade import (
    SubmittedFile,
    find_submissions,
    grade_submission,
    grade_submissions,
)
from rnnlab.course.grading.marks import FunctionMark, SubmissionMark, write_csv, write_json
from rnnlab.course.grading.process import Limits
from rnnlab.course.grading.suspicions import Suspicion

__all__ = [
    "FunctionMark",
    "Limits",
    "SubmissionMark",
    "SubmittedFile",
    "Suspicion",
    "find_submissions",
    "grade_submission",
    "grade_submissions",
    "write_csv",
    "write_json",
]
