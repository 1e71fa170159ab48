"""Check the files of the cs231n assignment that a student has filled in.

    print(check_folder("assignment"))

Each function of ``rnn_layers.py`` is checked with :func:`rnnlab.course.examine`. ``CaptioningRNN`` of
``classifiers/rnn.py`` is compared with the library's model with the same parameters, for both types of cell:
its loss, its gradients and its captions. The student's code runs in this process.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rnnlab import files
from rnnlab.course.assignment_files import PACKAGE
from rnnlab.course.check import Report, examine
from rnnlab.course.exercise import Exercise
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.model_check import loss_problems, sample_problems
from rnnlab.course.running import raised

__all__ = ["FolderReport", "Row", "check_folder"]

_LAYERS, _MODEL = "rnn_layers", "classifiers.rnn"
_EXERCISES = ("rnn_step", "rnn", "lstm_step", "lstm", "word_embedding")
_GIVEN = ("temporal_affine", "temporal_softmax_loss")  # given complete: they give no points
_WIDTH = 110


@dataclass(frozen=True)
class Row:
    """A function of the assignment.

    Attributes
    ----------
    function : str
    points : int
        ``max_points`` if it is right, else 0.
    problems : tuple of str
        Descriptions of the problems.
    max_points : int
        1, or 0 for a function that is given complete.
    """

    function: str
    points: int
    problems: tuple[str, ...]
    max_points: int = 1


@dataclass(frozen=True)
class FolderReport:
    """The rows of all functions, in the order of the files."""

    rows: tuple[Row, ...]

    @property
    def points(self) -> int:
        """The number of correct functions among those that the student writes."""
        return sum(row.points for row in self.rows)

    @property
    def max_points(self) -> int:
        """The number of functions that students write."""
        return sum(row.max_points for row in self.rows)

    @property
    def passed(self) -> bool:
        """Whether all functions are right."""
        return not any(row.problems for row in self.rows)

    def __str__(self) -> str:
        width = max(len(row.function) for row in self.rows)
        lines = [f"{'function':{width}}  points  what is wrong"]
        before: tuple[str, ...] = ()
        for row in self.rows:
            found = ("as above",) if row.problems and row.problems == before else row.problems
            points = row.points if row.max_points else "given"
            head, indent = f"{row.function:{width}}  {points:>6}  ", " " * (width + 10)
            wrapped = [textwrap.wrap(text, _WIDTH - len(indent)) for text in found]
            texts = [line for piece in wrapped for line in piece]
            lines += [f"{head if not k else indent}{text}" for k, text in enumerate(texts or [""])]
            before = row.problems
        lines.append(f"{'all':{width}}  {self.points:6}  of {self.max_points}")
        return "\n".join(line.rstrip() for line in lines)

    def write_json(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a JSON file."""
        rows = [
            {
                "function": row.function,
                "points": row.points,
                "max_points": row.max_points,
                "problems": list(row.problems),
            }
            for row in self.rows
        ]
        content = {"points": self.points, "max_points": self.max_points, "functions": rows}
        files.write_json(path, content, indent=1)


def check_folder(folder: str | os.PathLike[str]) -> FolderReport:
    """Check all functions of an assignment.

    Parameters
    ----------
    folder : path
        Holds the package ``cs231n`` that :func:`rnnlab.course.assignment_files.write_assignment` wrote, or is
        that package.

    Raises
    ------
    FileNotFoundError
        If there is no ``cs231n/rnn_layers.py`` or no ``cs231n/classifiers/rnn.py``.
    """
    folder = Path(folder)
    if folder.name == PACKAGE and not (folder / PACKAGE).exists():
        folder = folder.absolute().parent
    for name in (_LAYERS, _MODEL):
        path = folder / PACKAGE / f"{name.replace('.', '/')}.py"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} does not exist, expected the folder that `rnnlab course cs231n DIR` has written"
            )
    # the output of the student's code must not appear in the table
    with _importable(folder), contextlib.redirect_stdout(sys.stderr):
        rows = [*_layer_rows(), *_model_rows()]
    return FolderReport(tuple(rows))


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A context in which ``cs231n`` is imported from this folder.

    Afterwards ``sys.path`` is as before, and this package and other new modules of the folder are removed, so
    that the next student's functions do not import them.
    """
    folder, path = folder.resolve(), list(sys.path)
    names = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    taken, known = {name: sys.modules.pop(name) for name in names}, set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in list(sys.modules):
            top = name.partition(".")[0]
            if top not in known and ((folder / top).is_dir() or (folder / f"{top}.py").is_file()):
                del sys.modules[name]
        sys.modules.update(taken)


def _imported(name: str) -> ModuleType | str:
    """A module of the student's package, or the reason why it cannot be imported."""
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except SyntaxError as error:
        where = f"{_in_package(error.filename or '')}, line {error.lineno}"
        return f"{where}: {error.msg}: {(error.text or '').strip()}"
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [each for each in frames if f"{os.sep}{PACKAGE}{os.sep}" in each.filename]
        where = f"{_in_package(own[-1].filename)}, line {own[-1].lineno}: " if own else ""
        return f"{where}{type(error).__name__}: {error}"


def _in_package(path: str) -> str:
    """The path of a file within the package's folder."""
    return f"{PACKAGE}/{path.rpartition(f'{os.sep}{PACKAGE}{os.sep}')[2]}".replace(os.sep, "/")


# ---------------------------------------------------------------- layers


def _layer_rows() -> list[Row]:
    module = _imported(_LAYERS)
    rows = [row for name in (*_EXERCISES, *_GIVEN) for row in _exercise_rows(EXERCISES[name], module)]
    given = {function for name in _GIVEN for function in EXERCISES[name].functions}
    return [replace(row, points=0, max_points=0) if row.function in given else row for row in rows]


def _exercise_rows(exercise: Exercise, module: ModuleType | str) -> list[Row]:
    """The row of each function of an exercise."""
    if isinstance(module, str):
        return [_row(name, [module]) for name in exercise.functions]
    functions = [getattr(module, name, None) for name in exercise.functions]
    problems = [
        [] if callable(function) else [f"{PACKAGE}/{_LAYERS}.py defines no function {name}"]
        for name, function in zip(exercise.functions, functions, strict=True)
    ]
    forward, *backwards = functions
    if problems[0]:
        unchecked = f"not checked, because there is no {exercise.functions[0]}"
        problems[1:] = [each or [unchecked] for each in problems[1:]]
    else:
        report = examine(exercise.name, forward, seed=0)
        problems[0] = _problems(report)
        if backwards and not problems[1]:
            problems[1] = _backward_problems(exercise, report, forward, backwards[0])
    return [_row(name, each) for name, each in zip(exercise.functions, problems, strict=True)]


def _backward_problems(
    exercise: Exercise, forward_report: Report, forward: Callable[..., Any] | None, backward: Any
) -> list[str]:
    """The problems of a backward, which gets the cache of the student's forward."""
    if not forward_report.errors:
        return [f"not checked, because {exercise.functions[0]} does not return its results"]
    report = examine(exercise.name, forward, backward, seed=0)
    return _problems(report.without(forward_report, exercise.gradients))


def _problems(report: Report) -> list[str]:
    explained = [line.strip() for diagnosis in report.diagnoses for line in str(diagnosis).splitlines()]
    return report.problems + explained


def _row(function: str, problems: Sequence[str]) -> Row:
    return Row(function, int(not problems), tuple(problems))


# ---------------------------------------------------------------- the model


def _model_rows() -> list[Row]:
    module = _imported(_MODEL)
    kind = module if isinstance(module, str) else getattr(module, "CaptioningRNN", None)
    if kind is None:
        kind = f"{PACKAGE}/classifiers/rnn.py defines no class CaptioningRNN"
    return [
        _row(f"CaptioningRNN.{method}, {cell}", _of_model(f"CaptioningRNN.{method}", check, kind, cell))
        for method, check in (("loss", loss_problems), ("sample", sample_problems))
        for cell in ("rnn", "lstm")
    ]


def _of_model(method: str, check: Callable[[Any, str], list[str]], kind: Any, cell: str) -> list[str]:
    if isinstance(kind, str):
        return [kind]
    try:
        return check(kind, cell)
    except (Exception, SystemExit) as error:  # the student's code may raise anything
        return [raised(method, error)]
