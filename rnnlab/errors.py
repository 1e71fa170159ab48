"""The errors of rnnlab, for problems that the user can fix.

Each is also one of Python's errors, so that ``except ValueError`` works as usual. Problems that the system
reports, such as a missing file, are an OSError or a MemoryError. Any other error is a bug.
"""

from __future__ import annotations


class RnnlabError(Exception):
    """The base class: wrong input, a missing package, or a run that cannot continue."""

    def __reduce__(self) -> tuple[object, ...]:
        """Make copies in other processes work, independent of a subclass's arguments."""
        return _copy, (type(self), self.args), vars(self)


def _copy(kind: type[RnnlabError], arguments: tuple[object, ...]) -> RnnlabError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    return error


class InputError(RnnlabError, ValueError):
    """An argument, an option or a file has an unexpected value or shape."""


class InputTypeError(RnnlabError, TypeError):
    """An argument has an unexpected type, or an object lacks an expected method."""


class MissingDataError(InputError, KeyError):
    """A file, a data set or a model has no field, split, image or parameter with this name."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the quoted message


class OutOfRangeError(RnnlabError, IndexError):
    """A token, a class or a row is outside its range."""


class NotInstalledError(RnnlabError, ImportError):
    """A required package, device or program is missing. The message says how to install it."""
