"""An exercise: the functions that students write, their inputs and results, and the correct functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from rnnlab.errors import InputError
from rnnlab.options import described
from rnnlab.types import Array

Sizes = Mapping[str, int]  # by letter: N, T, D, H, ...


@dataclass(frozen=True)
class Drawn:
    """An input without a gradient, such as tokens: its axes, and the function that draws it."""

    axes: str
    draw: Callable[[np.random.Generator, Sizes], Array]


# The axes of an array of real numbers, such as "N T 4H" or "N AB" (A times B); an input without a gradient;
# or the axes of each parameter in a dict.
Spec = str | Drawn | Mapping[str, str]


@dataclass(frozen=True)
class Exercise:
    """A forward and its backward, or a loss that returns its gradient as well.

    Attributes
    ----------
    name : str
        The functions are ``NAME_forward`` and ``NAME_backward``, or ``NAME`` alone for a loss.
    module : str
        The module of :mod:`rnnlab.plain` with the correct functions.
    inputs : mapping
        The arguments of the forward, in their order.
    outs : mapping of str to str
        The axes of the forward's results before the cache or, for a loss, before the gradient; "" for a
        number.
    douts : int, optional
        The number of results whose gradients the backward gets; all if left out.
    gates : tuple of str
        The names of the blocks of equal size in the last axis of weights and biases.
    is_loss : bool
        Whether the function is a loss, which has no backward.
    sizes : mapping of str to int
        Fixed sizes, which are not drawn.
    hard : mapping of str to callable
        Changes of a draw to inputs on which a function may be wrong although it is right on others. The keys
        describe these inputs: "where the mask has gaps".
    """

    name: str
    module: str
    inputs: Mapping[str, Spec]
    outs: Mapping[str, str]
    douts: int | None = None
    gates: tuple[str, ...] = ()
    is_loss: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)
    hard: Mapping[str, Callable[[np.random.Generator, Draw], Draw]] = field(default_factory=dict)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions that students write."""
        return (self.name,) if self.is_loss else (f"{self.name}_forward", f"{self.name}_backward")

    @property
    def plain(self) -> ModuleType:
        """The module with the correct functions."""
        return import_module(f"rnnlab.plain.{self.module}")

    @property
    def forward(self) -> Callable[..., Any]:
        """The correct forward, or the loss."""
        return getattr(self.plain, self.functions[0])

    @property
    def backward(self) -> Callable[..., Any] | None:
        """The correct backward; None for a loss, which returns its gradient."""
        return None if self.is_loss else getattr(self.plain, self.functions[1])

    @property
    def gradients(self) -> dict[str, str]:
        """The axes of the gradients, by name, in the order of the backward's results."""
        found: dict[str, str] = {}
        for name, spec in self.inputs.items():
            if isinstance(spec, Mapping):
                found |= {f"d{key}": axes for key, axes in spec.items()}
            elif isinstance(spec, str):
                found[f"d{name}"] = spec
        return dict([*found.items()][:1]) if self.is_loss else found

    def arguments(self, kind: str) -> dict[str, str | None]:
        """The axes of the arguments of the forward or the backward, by name; None for a cache or a dict."""
        if kind == "forward":
            return {name: axes_of(spec) for name, spec in self.inputs.items()}
        return {f"d{name}": self.outs[name] for name in [*self.outs][: self.douts]} | {"cache": None}

    def results(self, kind: str) -> dict[str, str]:
        """The axes of the results of the forward or the backward, by name, without the cache."""
        if self.is_loss:
            return dict(self.outs) | self.gradients
        return dict(self.outs) if kind == "forward" else self.gradients

    def named(self, kind: str, returned: Any, wrong: list[tuple[str, str]] | None = None) -> dict[str, Array]:
        """The results that a function has returned, by name, as arrays.

        Parameters
        ----------
        kind : "forward" or "backward"
        returned : anything
            What the function has returned.
        wrong : list, optional
            The names of results that are not arrays of floats, each with a message, are appended to it, and
            they are left out. Without it they are an error.

        Raises
        ------
        WrongResults
            If it is not a tuple or list of the right length, a dict has wrong keys, or a result is not an
            array of floats.
        """
        function = self.functions[0 if kind == "forward" else 1]
        given = list(returned) if isinstance(returned, tuple | list) else [returned]
        if kind == "forward":
            expected = [*self.outs, *(self.gradients if self.is_loss else ["cache"])]
            taken = expected if self.is_loss else expected[:-1]
        else:
            expected = taken = [
                f"d{name}" for name, spec in self.inputs.items() if not isinstance(spec, Drawn)
            ]
        if len(given) != len(expected):
            hint = "; is its return missing?" if returned is None else ""
            raise WrongResults(
                f"{function} returns {_counted(given)}, expected {len(expected)}: {', '.join(expected)}{hint}"
            )
        found: dict[str, Array] = {}

        def add(name: str, value: Any) -> None:
            try:
                found[name] = _array(
                    function, name, value, "a number" if self.outs.get(name) == "" else "an array"
                )
            except WrongResults as error:
                if wrong is None:
                    raise
                wrong.append((name, str(error)))

        for name, value in zip(taken, given, strict=False):
            spec = self.inputs.get(name[1:]) if kind == "backward" else None
            if isinstance(spec, Mapping):
                if not isinstance(value, Mapping) or {*value} != {*spec}:
                    names = ", ".join(spec)
                    got = described(value)
                    if isinstance(value, Mapping):
                        got = f"a dict with the keys {', '.join(map(str, value))}"
                    raise WrongResults(f"{function}: {name} is {got}, expected a dict with the keys {names}")
                for key in spec:
                    add(f"d{key}", value[key])
            else:
                add(name, value)
        return found

    @property
    def letters(self) -> list[str]:
        """The sizes that inputs and results have."""
        return sorted({*_letters([*self.inputs.values(), *self.outs.values()])})

    @property
    def overflow(self) -> str:
        """What is usually wrong where large inputs give NaN or infinity."""
        if self.is_loss:
            return "np.exp is infinite, or 0 for a whole row: subtract the largest score of each row first"
        return "np.exp of a large number is infinite: scipy.special.expit and np.tanh do not overflow"

    def draw(self, rng: np.random.Generator, *, square: bool = False, ones: str = "") -> Draw:
        """Random inputs with random sizes, different for each letter, and gradients of the outputs.

        With ``square`` all sizes are equal, so that a function that confuses two axes does not fail. The
        letters in ``ones`` have size 1.
        """
        letters = [letter for letter in self.letters if letter not in self.sizes]
        numbers = rng.permutation(np.arange(3, 3 + len(letters)))  # so that a factor of 2 is no size
        sizes = dict(zip(letters, map(int, numbers), strict=True)) | dict(self.sizes)
        if "V" in sizes:  # so that labels and tokens differ
            sizes["V"] = len(letters) + 4
        if square:
            sizes |= dict.fromkeys(letters, 4)
        sizes |= dict.fromkeys(ones, 1)
        inputs = {name: _drawn(spec, rng, sizes) for name, spec in self.inputs.items()}
        axes = list(self.outs.values())[: self.douts]
        douts = tuple(rng.standard_normal(shape_of(each, sizes)) for each in axes)
        return Draw(sizes, inputs, () if self.is_loss else douts)

    def hard_draws(self, rng: np.random.Generator) -> Iterator[Draw]:
        """A batch of one sequence with one step, and the inputs of ``hard``."""
        ones = [letter for letter in "NT" if letter in self.letters]
        yield replace(self.draw(rng, ones="".join(ones)), note=f"where {' = '.join(ones)} = 1")
        for note, change in self.hard.items():
            yield replace(change(rng, self.draw(rng)), note=note)


@dataclass(frozen=True)
class Draw:
    """The inputs of one call, and the gradients of its outputs.

    Attributes
    ----------
    sizes : mapping of str to int
    inputs : mapping of str to array or dict
    douts : tuple of array
    options : mapping of str to dict
        The keyword arguments of the forward and of the backward, if there are any.
    note : str
        The special property of these inputs, such as "where N = T = 1"; "" if there is none.
    tolerance : float
        The factor of the errors that pass: more than 1 where an approximation is right.
    overflows : bool
        Whether np.exp of these inputs may be infinite.
    """

    sizes: Sizes
    inputs: Mapping[str, Any]
    douts: tuple[Array, ...]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""
    tolerance: float = 1.0
    overflows: bool = False

    def options_of(self, kind: str) -> dict[str, Any]:
        """The keyword arguments of the forward or the backward."""
        return copied(self.options.get(kind, {}))


class WrongResults(InputError):
    """A function has returned a wrong number of results, or results of wrong types or names."""


def shape_of(axes: str, sizes: Sizes) -> tuple[int, ...]:
    """The shape for axes such as "N T 4H"."""
    return tuple(
        factor * prod(sizes[each] for each in letters) for factor, letters in map(_factor, axes.split())
    )


def axes_of(spec: Spec) -> str | None:
    """The axes of an input; None for a dict of parameters."""
    if isinstance(spec, Drawn):
        return spec.axes
    return spec if isinstance(spec, str) else None


def in_letters(axes: str) -> str:
    """Axes as they are printed: (N, T, 4H)."""
    names = axes.split()
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def copied(value: Any) -> Any:
    """A copy that shares no array with the original."""
    if isinstance(value, Mapping):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _array(function: str, name: str, value: Any, expected: str) -> Array:
    if isinstance(value, bool) or not isinstance(value, np.ndarray | np.number | float | int):
        raise WrongResults(f"{function}: {name} is {described(value)}, expected {expected}")
    if isinstance(value, np.matrix):
        raise WrongResults(f"{function}: {name} is an np.matrix, expected an array: its products differ")
    array = np.asarray(value)
    dtype = array.dtype
    if isinstance(value, np.ndarray) and dtype.kind in "iu":
        raise WrongResults(
            f"{function}: {name} has dtype {dtype}, expected float64: an array of integers loses fractions"
        )
    if dtype.kind not in "fiu" or dtype == np.float16:
        raise WrongResults(f"{function}: {name} has dtype {dtype}, expected float64")
    return array.astype(float)


def _counted(given: list[Any]) -> str:
    if len(given) == 1:
        return "None" if given[0] is None else "1 result"
    return f"{len(given)} results"


def _factor(axis: str) -> tuple[int, str]:
    found = re.fullmatch(r"(\d*)([A-Z]+)", axis)
    assert found is not None, axis
    return int(found[1] or 1), found[2]


def _letters(specs: list[Spec]) -> list[str]:
    letters: list[str] = []
    for spec in specs:
        if isinstance(spec, Mapping):
            letters += _letters(list(spec.values()))
        else:
            axes = spec.axes if isinstance(spec, Drawn) else spec
            letters += [letter for axis in axes.split() for letter in _factor(axis)[1]]
    return letters


def _drawn(spec: Spec, rng: np.random.Generator, sizes: Sizes) -> Any:
    if isinstance(spec, Mapping):
        return {key: _drawn(axes, rng, sizes) for key, axes in spec.items()}
    if isinstance(spec, Drawn):
        return spec.draw(rng, sizes)
    return 0.8 * rng.standard_normal(shape_of(spec, sizes))
