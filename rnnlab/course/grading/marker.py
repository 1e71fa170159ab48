"""The points of a student's functions, whose results are compared with the correct ones."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from rnnlab.course.check import Report, examine
from rnnlab.course.exercise import Exercise
from rnnlab.course.exercises import exercise as exercise_of
from rnnlab.course.grading.functions import RemoteFunction
from rnnlab.course.grading.marks import FunctionMark
from rnnlab.course.grading.process import StudentProcess
from rnnlab.course.grading.submission import Submission, library_functions, solution
from rnnlab.course.grading.suspicions import Suspicion, calls_forwards, loses_digits
from rnnlab.course.notebook_cells import CourseNotebook, keyword_arguments, parsed
from rnnlab.course.running import costs_a_result

__all__ = ["Marker", "max_points_of"]

Given = Mapping[str, Callable[..., Any]]


class Marker:
    """Marks the functions of one submission, in the order of the notebook.

    ``rnn_backward`` calls ``rnn_step_backward``, and is wrong if the latter is wrong. Such a function is
    marked again with the correct function in its place, and gets the better mark. If the marks are equal, it
    gets the second, whose report is about this function only.

    Parameters
    ----------
    process : StudentProcess
        A process that has been started.
    submission : Submission
    source : CourseNotebook
        The notebook with the solutions.
    seed : int
        The seed of the random inputs.
    """

    def __init__(
        self, process: StudentProcess, submission: Submission, source: CourseNotebook, seed: int
    ) -> None:
        self._process, self._submission, self._source, self._seed = process, submission, source, seed
        self._library = library_functions(source, submission)
        self._wrong: set[str] = set()
        self._inexact: set[str] = set()

    def mark(self, name: str) -> FunctionMark:
        """Mark a function."""
        mark = self._mark(name, self._library)
        if mark.points < mark.max_points:
            helped = self._mark_with_help(name)
            mark = mark if helped is None or helped.points < mark.points else helped
            self._wrong.add(name)
        return mark

    def _mark_with_help(self, name: str) -> FunctionMark | None:
        """The mark with correct functions for the wrong ones that the code calls; None if it calls none."""
        exercise = exercise_of(name)
        called = _names(self._submission.exercises.get(each, "") for each in exercise.functions)
        wrong = [each for each in sorted(called & self._wrong) if exercise_of(each) != exercise]
        if not wrong:
            return None
        given = {
            function: getattr(exercise_of(each).plain, function)
            for each in wrong
            for function in exercise_of(each).functions
        }
        mark = self._mark(name, {**self._library, **given})
        return replace(mark, text=f"With the correct {' and '.join(wrong)} instead of yours:\n{mark.text}")

    def _mark(self, name: str, given: Given) -> FunctionMark:
        exercise, mark = exercise_of(name), FunctionMark(name, max_points_of(self._source, name))
        if name not in self._submission.exercises:
            return replace(mark, text=f"{name} is not handed in.")
        if name not in self._process.functions:
            return replace(mark, text=f"{self._process.problems.get(name, f'{name} is not defined')}.")
        forward = self._remote(exercise.functions[0], given, keep_cache=not exercise.is_loss)
        if name != exercise.functions[0]:
            return self._mark_backward(mark, exercise, forward, given)
        report = examine(exercise.name, forward, seed=self._seed)
        return _marked(mark, exercise, "forward", report, _refused(name, forward))

    def _remote(self, name: str, given: Given, *, keep_cache: bool = False) -> RemoteFunction:
        own = (cell.source for cell in self._source.exercises if cell.subject == name)
        options = keyword_arguments(next(own, ""), name)
        return RemoteFunction(self._process, name, keep_cache=keep_cache, given=given, options=options)

    def _mark_backward(
        self, mark: FunctionMark, exercise: Exercise, forward: RemoteFunction, given: Given
    ) -> FunctionMark:
        backward = self._remote(mark.name, given)
        of_forward = examine(exercise.name, forward, seed=self._seed)
        report = examine(exercise.name, forward, backward, seed=self._seed)
        report = report.without(of_forward, exercise.gradients)
        marked = mark  # no points
        if report.errors or (report.problems and not report.unchecked):
            marked = _marked(mark, exercise, "backward", report, _refused(mark.name, backward))
        if not of_forward.passed and marked.points < mark.max_points:
            # never fewer points than if the forward had not been written at all
            alone = self._mark_without_forward(mark, exercise, backward)
            marked = marked if marked.text and marked.points >= alone.points else alone
        if calls_forwards(backward):
            text = f"{mark.name} computes numeric gradients, expected the formulas"
            return replace(
                marked, points=0.0, text=f"{text}.", suspicions=(Suspicion("numeric gradient", text),)
            )
        exact = not self._inexact & _names([self._submission.exercises[mark.name]])  # functions that it calls
        passed = of_forward.passed and report.passed and exact
        if passed and loses_digits(exercise, forward, backward, self._seed):
            self._inexact.add(mark.name)
            text = f"{mark.name} is right, but inexact where inputs have very different sizes"
            return replace(marked, suspicions=(*marked.suspicions, Suspicion("lost digits", text)))
        return marked

    def _mark_without_forward(
        self, mark: FunctionMark, exercise: Exercise, backward: RemoteFunction
    ) -> FunctionMark:
        """The mark of a backward with the cache of the solution's forward."""
        forward = solution(self._source, exercise.functions[0])
        report = examine(exercise.name, forward, backward, seed=self._seed)
        report = report.without(None, exercise.gradients)
        marked = _marked(mark, exercise, "backward", report, _refused(mark.name, backward))
        text = f"With the cache of the right {exercise.functions[0]}:\n{marked.text}"
        if not report.errors:  # the student's cache may have another form
            text = f"{mark.name} cannot be checked until {exercise.functions[0]} works. {text}"
        return replace(marked, text=text)


def max_points_of(source: CourseNotebook, function: str) -> float:
    """The points of a correct function, which are those of its test."""
    return next((cell.points for cell in source.tests if cell.subject == function), 0.0)


def _refused(name: str, function: RemoteFunction) -> tuple[Suspicion, ...]:
    return (Suspicion("refused", f"{name} {function.refused}"),) if function.refused else ()


def _marked(
    mark: FunctionMark, exercise: Exercise, kind: str, report: Report, suspicions: tuple[Suspicion, ...]
) -> FunctionMark:
    """The points of a report, with equal weight for each result. Side effects cost one result."""
    expected = exercise.results(kind)
    results = {name: name in report.errors and name not in report.wrong for name in expected}
    lost = any(map(costs_a_result, report.problems))
    right = max(sum(results.values()) - lost, 0)
    report.functions = (mark.name,)
    points = mark.max_points * right / len(expected)
    return replace(mark, points=points, results=results, text=str(report), suspicions=suspicions)


def _names(sources: Iterable[str]) -> set[str]:
    """The names that the code reads."""
    trees = map(parsed, sources)
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
