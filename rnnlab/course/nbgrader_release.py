"""The students' notebooks, which nbgrader makes from the instructor's."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rnnlab.errors import InputError, NotInstalledError

__all__ = ["generate", "require_nbgrader"]


def require_nbgrader() -> None:
    """Raise ImportError, which says what to install, if nbgrader is not installed."""
    if find_spec("nbgrader") is None:
        raise NotInstalledError('releasing assignments needs nbgrader: pip install "rnnlab[course]"')


def generate(course: Path, course_id: str, assignment: str) -> None:
    """Make ``release/ASSIGNMENT`` from ``source/ASSIGNMENT``, and add it to nbgrader's database.

    Parameters
    ----------
    course : path
        The folder of the course, with nbgrader's layout.
    course_id, assignment : str

    Raises
    ------
    ImportError
        If nbgrader is not installed.
    ValueError
        If nbgrader refuses the notebook. The message ends with nbgrader's reason.
    """
    require_nbgrader()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nbgrader's dependencies emit warnings
        from nbgrader.converters import GenerateAssignment
        from nbgrader.converters.base import NbGraderException
        from nbgrader.coursedir import CourseDirectory

        reasons = _Reasons()
        log = logging.Logger("nbgrader", logging.ERROR)
        log.addHandler(reasons)
        where = CourseDirectory(
            root=str(course.resolve()), course_id=course_id, assignment_id=assignment, log=log
        )
        try:
            with _programs_of_this_environment():
                GenerateAssignment(coursedir=where, log=log).start()  # it runs alembic, of this environment
        except NbGraderException as error:
            reason = reasons.first or str(error)
            raise InputError(f"nbgrader refuses the assignment {assignment}: {reason}") from None


@contextmanager
def _programs_of_this_environment() -> Iterator[None]:
    """A context in which PATH begins with this environment's programs."""
    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before or ""])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


class _Reasons(logging.Handler):
    """Stores the last line of the first traceback that nbgrader logs: its exceptions give no reason."""

    first = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().rstrip()
        if text.startswith("Traceback") and not self.first:
            self.first = text.rpartition("\n")[2]
