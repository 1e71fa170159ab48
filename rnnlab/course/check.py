"""Check a student's functions, and name what is wrong in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rnnlab.course.diagnosis import Diagnosis, Results, diagnose, draws_of
from rnnlab.course.exercise import Draw, Drawn, Exercise, copied
from rnnlab.course.exercises import exercise as exercise_of
from rnnlab.course.ownership import Watched
from rnnlab.course.running import Runs, raised
from rnnlab.course.student_functions import place_of
from rnnlab.errors import InputError
from rnnlab.gradcheck.numeric import eval_numerical_gradient_array, relative_distance
from rnnlab.gradcheck.precision import check_full_precision
from rnnlab.types import Array

__all__ = ["Report", "WrongFunction", "check", "examine"]

_LIMIT = 1e-7
_ROUNDED = 1e-5  # upper bound of the error due to float32, or to a small number that is added
_EXACT = 1e-12  # upper bound of the error due to another order of operations


class WrongFunction(AssertionError):
    """A checked function is wrong. The message is the report."""


@dataclass
class Report:
    """The result of a check.

    Attributes
    ----------
    exercise : str
    functions : tuple of str
        The checked functions: their names, and where they are defined.
    errors : dict of str to float
        The relative distance of each result and gradient from the correct one, the largest over all inputs;
        on inputs with a tolerance it is divided by that.
    problems : list of str
        Exceptions, wrong numbers of results, wrong shapes, and writes into the caller's arrays.
    diagnoses : list of Diagnosis
        Explanations of wrong numbers.
    limits : dict of str to float
        The largest error of each result and gradient that passes. It is 0 for those in float32, whose error
        may be small by chance.
    unchecked : bool
        Whether the backward could not be compared, because the forward is wrong and has no numeric gradient.
    """

    exercise: str
    functions: tuple[str, ...]
    errors: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    unchecked: bool = False
    _printed: bool = field(default=False, init=False, repr=False)

    @property
    def wrong(self) -> list[str]:
        """The names of the results and gradients that are wrong."""
        return [name for name, error in self.errors.items() if not error <= self.limits.get(name, _LIMIT)]

    @property
    def passed(self) -> bool:
        """Whether everything is right."""
        return not self.problems and not self.wrong

    def without(self, earlier: Report | None, names: Collection[str]) -> Report:
        """The findings that are not in an earlier report, with the errors of some results and gradients only.

        Parameters
        ----------
        earlier : Report, optional
            A report on some of the functions, for the same inputs.
        names : collection of str
            The results and gradients.
        """
        problems, diagnoses = (earlier.problems, earlier.diagnoses) if earlier else ([], [])
        return replace(
            self,
            errors={name: error for name, error in self.errors.items() if name in names},
            problems=[each for each in self.problems if each not in problems],
            diagnoses=self.diagnoses[len(diagnoses) :],
        )

    def _ipython_display_(self) -> None:
        """Show the report as the last value of a notebook's cell, unless :func:`check` has printed it."""
        if not self._printed:
            print(self)

    def __str__(self) -> str:
        lines = [f"{self.exercise}: {'; '.join(self.functions)}"]
        for name, error in self.errors.items():
            lines.append(f"{name:>12} error {error:.1e}{'   wrong' if name in self.wrong else ''}")
        lines += [problem if problem.endswith("?") else f"{problem}." for problem in self.problems]
        lines += [str(diagnosis) for diagnosis in self.diagnoses]
        return "\n".join(lines)


def check(
    name: str,
    forward: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    *,
    seed: int | None = None,
    own: bool = False,
) -> Report:
    """Check the functions of an exercise: print the errors, or raise an exception that explains them.

    Parameters
    ----------
    name : str
        The name of the exercise, such as "lstm_step", or of one of its functions.
    forward : callable, optional
        The forward, or the loss. The correct one is used if it is left out.
    backward : callable, optional
        The backward, which gets the cache of ``forward``. It is not checked if it is left out.
    seed : int, optional
        The seed of the random inputs. By default each call has new inputs.
    own : bool
        Whether the functions must be the student's own. If so, functions of rnnlab, and functions that call
        rnnlab's function of the same name, are reported.

    Returns
    -------
    Report

    Raises
    ------
    WrongFunction
        If something is wrong. The message is the report.
    ValueError
        If there is no exercise of this name, no function is given, or products are not computed in full
        precision.

    Examples
    --------
    >>> from rnnlab.plain.rnn import rnn_step_backward, rnn_step_forward
    >>> check("rnn_step", rnn_step_forward, rnn_step_backward, seed=0).passed  # doctest: +ELLIPSIS
    rnn_step: rnn_step_forward ...
    True
    """
    report = examine(name, forward, backward, seed=seed, own=own)
    if not report.passed:
        raise WrongFunction(f"\n{report}")
    print(report)
    report._printed = True
    return report


@np.errstate(all="ignore")
def examine(
    name: str,
    forward: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    *,
    seed: int | None = None,
    own: bool = False,
) -> Report:
    """As :func:`check`, but print nothing and raise nothing for a wrong function."""
    check_full_precision("check")
    exercise = exercise_of(name)
    if forward is None and backward is None:
        raise InputError(f"check of {exercise.name!r}: no function is given, expected {_expected(exercise)}")
    for argument, each in (("forward", forward), ("backward", backward)):
        if each is not None and not callable(each):
            raise InputError(f"check of {exercise.name!r}: {argument} is {each!r}, expected a function")
    if exercise.is_loss and backward is not None:
        raise InputError(f"{exercise.name} returns its gradient as well: there is no backward to check")
    given = [each for each in (forward, backward) if each is not None]
    report = Report(exercise.name, tuple(map(whose, given)))
    if own:
        forward, backward = _watched(exercise, forward, backward)
    first = forward or exercise.forward
    rng = np.random.default_rng(seed)
    draws = [*draws_of(exercise), *(exercise.draw(rng) for _ in range(2))]
    common = len(draws)
    draws += [
        each
        for each in exercise.hard_draws(rng)
        if _takes(first, each.options_of("forward")) and _takes(backward, each.options_of("backward"))
    ]
    forwards = Runs(exercise, "forward", first, draws)
    right = [_right(exercise, each) for each in draws]
    if forward is not None:
        _judge(report, forwards, right)
        if len(forwards.values) < common:
            _judge_square(report, exercise, "forward", forward, first)
    if backward is not None and all(map(forwards.fits, range(common))):
        in_float32 = [name for name in report.wrong if report.limits[name] == 0]
        forward_is_right = report.wrong == in_float32 and not report.problems
        kept = [
            place
            for place, each in enumerate(draws)
            if forwards.fits(place) and (forward_is_right or not each.options_of("backward"))
        ]
        draws, right = [draws[place] for place in kept], [right[place] for place in kept]
        backwards = Runs(exercise, "backward", backward, draws, [forwards.caches[place] for place in kept])
        try:
            expected = _gradients(exercise, first, draws, [forwards.values[place] for place in kept], right)
        except _NoGradient as error:
            report.problems.append(f"{exercise.functions[1]} cannot be checked: {error}")
            report.unchecked = True
        else:
            limit = _ROUNDED if in_float32 else _LIMIT  # rounding in the forward costs its points only
            _judge(report, backwards, expected, known=forward_is_right, limit=limit)
            if not forward_is_right:
                _refuse_zeros(report, exercise, draws, expected)
        if len(backwards.values) < common:
            _judge_square(report, exercise, "backward", backward, first)
    for each in (forward, backward):
        report.problems += each.problems if isinstance(each, Watched) else []
    return report


def _watched(exercise: Exercise, *given: Callable[..., Any] | None) -> list[Watched | None]:
    """The functions, wrapped to record their calls of the library's solutions."""
    names = (*exercise.functions, "")  # a loss has no backward
    return [
        None if each is None else Watched(each, name, exercise.functions)
        for each, name in zip(given, names, strict=False)
    ]


def _judge_square(
    report: Report, exercise: Exercise, kind: str, function: Callable[..., Any], forward: Callable[..., Any]
) -> None:
    """Diagnose a function that raises an exception from its results on inputs whose sizes are all equal."""
    draws = draws_of(exercise, square=True)
    forwards = Runs(exercise, "forward", forward, draws)
    runs = forwards if kind == "forward" else Runs(exercise, kind, function, draws, forwards.caches)
    right: Sequence[Results] = [_right(exercise, each) for each in draws]
    if not runs.fitting:
        return
    if kind == "backward":
        try:
            right = _gradients(exercise, forward, draws, forwards.values, right)
        except _NoGradient:
            return
    if any(
        _distance(one[name], other[name]) > _LIMIT
        for one, other in zip(runs.values, right, strict=True)
        for name in other
    ):
        report.diagnoses.append(diagnose(exercise, kind, runs.values, right, square=True))


def whose(function: Callable[..., Any]) -> str:
    """A function's name and where it is defined."""
    name = getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]
    module = getattr(function, "__module__", "") or ""
    if module.partition(".")[0] == "rnnlab":
        return f"{name} of {module}, the library's own"
    return ", ".join(filter(None, (name, place_of(function))))


def _expected(exercise: Exercise) -> str:
    return " and ".join(exercise.functions)


def _takes(function: Callable[..., Any] | None, options: Mapping[str, Any]) -> bool:
    """Whether a function has these keyword arguments. None is the correct function, which has them."""
    if function is None or not options:
        return True
    try:
        return {*options} <= {*inspect.signature(function).parameters}
    except (TypeError, ValueError):  # it has no signature
        return False


def _right(exercise: Exercise, draw: Draw) -> Results:
    """The correct results of the forward."""
    results = exercise.forward(*copied(draw.inputs).values(), **draw.options_of("forward"))
    return exercise.named("forward", results)


# ---------------------------------------------------------------- comparing


def _judge(
    report: Report, runs: Runs, right: Sequence[Results], *, known: bool = True, limit: float = _LIMIT
) -> None:
    """Add the findings of the runs to the report. Mistakes are only known relative to a correct forward."""
    report.problems += runs.problems
    common = sum(not draw.note for draw in runs.draws)
    if len(runs.values) < common:
        return
    names = [name for name in right[0] if all(name in found for found in runs.values[:common])]
    distances: dict[str, list[float]] = {}
    for name in names:
        pairs = [
            (one.get(name, other[name]), other[name]) for one, other in zip(runs.values, right, strict=False)
        ]
        distances[name] = [
            _distance(*each) / draw.tolerance for each, draw in zip(pairs, runs.draws, strict=False)
        ]
        report.limits[name] = 0.0 if any(_in_float32(*each) for each in pairs) else limit
    wrong = [name for name in names if not max(distances[name]) <= report.limits[name]]
    everywhere = [name for name in names if runs.complete and all(name in found for found in runs.values)]
    report.errors |= {name: max(distances[name]) for name in names if name in (*wrong, *everywhere)}
    if not wrong:
        return
    notes = [
        draw.note
        for draw, *each in zip(runs.draws, *(distances[name] for name in wrong), strict=False)
        if not max(each) <= limit
    ]
    if all(max(distances[name]) <= _ROUNDED for name in wrong):
        report.diagnoses.append(Diagnosis(notes=tuple(_of_rounding(report, wrong))))
    elif not known:
        forward, backward = runs.exercise.functions
        report.diagnoses.append(
            Diagnosis(notes=(f"{backward} is not the gradient of {forward}: fix {forward} first",))
        )
    elif all(notes):
        are = "are" if len(wrong) > 1 else "is"
        report.diagnoses.append(Diagnosis(notes=(f"{', '.join(wrong)} {are} wrong {' and '.join(notes)}",)))
    else:
        count = len(draws_of(runs.exercise))
        found = [{name: values[name] for name in names} for values in runs.values[:count]]
        report.diagnoses.append(diagnose(runs.exercise, runs.kind, found, right[:count]))


def _refuse_zeros(
    report: Report, exercise: Exercise, draws: Sequence[Draw], expected: Sequence[Results]
) -> None:
    """Count gradients as wrong that are zero because a wrong forward ignores an input."""
    zeros = _zeros(expected)
    if zeros:  # those of the correct forward may be zero, too
        zeros -= _zeros([_correct_gradients(exercise, draw) for draw in draws])
    zeros &= report.errors.keys()
    if zeros:
        report.errors |= dict.fromkeys(zeros, np.inf)
        names = [name for name in report.errors if name in zeros]
        inputs = " and ".join(name.removeprefix("d") for name in names)
        note = f"{', '.join(names)} cannot be checked: {exercise.functions[0]} does not depend on {inputs}"
        report.diagnoses.append(Diagnosis(notes=(note,)))


def _zeros(gradients: Sequence[Results]) -> set[str]:
    """The names of the gradients that are zero for all inputs."""
    names = {name for each in gradients for name in each}
    return names - {name for each in gradients for name, value in each.items() if np.any(value)}


def _distance(one: Array, other: Array) -> float:
    return float(relative_distance(one, other)) if np.any(one) or np.any(other) else 0.0


def _in_float32(one: Array, other: Array) -> bool:
    """Whether all numbers of a nearly correct result are representable in float32."""
    return _EXACT < _distance(one, other) <= _ROUNDED and np.array_equal(one, one.astype(np.float32))


def _of_rounding(report: Report, wrong: Sequence[str]) -> Iterator[str]:
    """Messages about results that are right to some digits."""
    if in_float32 := [name for name in wrong if report.limits[name] == 0]:
        *others, last = in_float32
        subject = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        yield f"{subject} computed in float32, expected float64, the type of the inputs"
    for name in wrong:
        if name not in in_float32:
            digits = int(-np.log10(report.errors[name]))
            yield (
                f"{name} is right to about {digits} digits, expected more: is something computed in float32, "
                "or a small number added?"
            )


class _NoGradient(Exception):
    """There is no numeric gradient. The message names the exception of the forward."""


def _gradients(
    exercise: Exercise,
    forward: Callable[..., Any],
    draws: Sequence[Draw],
    values: Sequence[Results],
    right: Sequence[Results],
) -> Sequence[Results]:
    """The gradients of a forward: the correct ones if it is right (float32 included), else numeric ones."""
    expected: list[Results] = []
    for draw, found, correct in zip(draws, values, right, strict=True):
        pairs = [(found[name], correct[name]) for name in correct if name in found]
        is_right = all(_distance(*each) <= _LIMIT or _in_float32(*each) for each in pairs)
        if is_right and len(pairs) == len(correct):
            expected.append(_correct_gradients(exercise, draw))
        else:
            expected.append(_numeric(exercise, forward, draw))
    return expected


def _correct_gradients(exercise: Exercise, draw: Draw) -> Results:
    """The gradients of the correct forward."""
    assert exercise.backward is not None
    cache = exercise.forward(*copied(draw.inputs).values(), **draw.options_of("forward"))[-1]
    gradients = exercise.backward(*copied(draw.douts), cache, **draw.options_of("backward"))
    return exercise.named("backward", gradients)


def _numeric(exercise: Exercise, forward: Callable[..., Any], draw: Draw) -> Results:
    """The gradients of a forward by central differences, through all results that have a gradient.

    Raises
    ------
    _NoGradient
        If the forward raises an exception on changed inputs.
    """
    inputs = copied(draw.inputs)
    found: dict[str, Array] = {}

    def weighted(_: Array) -> Array:
        try:
            results = forward(*copied(inputs).values(), **draw.options_of("forward"))
            outs = exercise.named("forward", results)
        except (Exception, SystemExit) as error:
            raise _NoGradient(raised(exercise.functions[0], error)) from error
        pairs = zip(exercise.outs, draw.douts, strict=False)
        return np.concatenate([np.ravel(outs[name] * dout) for name, dout in pairs])

    for name, spec in exercise.inputs.items():
        if isinstance(spec, Drawn):
            continue
        arrays = inputs[name] if isinstance(spec, Mapping) else {name: inputs[name]}
        for key, array in arrays.items():
            found[f"d{key}"] = eval_numerical_gradient_array(weighted, array, 1.0)
    return found
