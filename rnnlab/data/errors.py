"""The error of a name that files or data sets lack."""

from __future__ import annotations


class MissingDataError(KeyError, ValueError):
    """A file or a data set has no field, split or image of a name.

    It is a KeyError, as mappings raise it, and a ValueError, as wrong input is. Its text is the message.
    """

    def __str__(self) -> str:
        return str(self.args[0])
