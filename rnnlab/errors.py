"""The errors of rnnlab, for what its user can mend.

Each is also an error of Python, so that ``except ValueError`` works as usual. What the system reports is an
OSError, such as a missing file, or a MemoryError. Any other error is a bug.
"""

from __future__ import annotations


class RnnlabError(Exception):
    """The base class: wrong input, a missing package, or a run that cannot continue."""

    def __reduce__(self) -> tuple[object, ...]:
        """For copies in other processes, whatever the arguments of a subclass are."""
        return _copy, (type(self), self.args), vars(self)


def _copy(kind: type[RnnlabError], arguments: tuple[object, ...]) -> RnnlabError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    return error


class InputError(RnnlabError, ValueError):
    """An argument, an option or a file has a value or a shape that is not what was expected."""


class InputTypeError(RnnlabError, TypeError):
    """An argument has a type, or an object lacks a method, that was expected."""


class MissingDataError(InputError, KeyError):
    """A file, a data set or a model has no field, split, image or parameter of a name."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the quoted message


class OutOfRangeError(RnnlabError, IndexError):
    """A token, a class or a row is outside its range."""


class NotInstalledError(RnnlabError, ImportError):
    """A package, a device or a program is needed and missing. The message says how to install it."""
