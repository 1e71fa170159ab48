"""Optional libraries, which the extras of rnnlab install. They are imported when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rnnlab.errors import NotInstalledError


@dataclass(frozen=True)
class Library:
    """An optional library."""

    package: str  # the name by which it is imported
    extra: str  # the extra of rnnlab that installs it
    user: str  # what needs it, for the error
    title: str | None = None  # its name in the error; the package if left out

    @property
    def installed(self) -> bool:
        """Whether it is installed."""
        return find_spec(self.package) is not None

    def require(self) -> None:
        """Check that it is installed.

        Raises
        ------
        ImportError
            If it is not. The message says how to install it.
        """
        if not self.installed:
            raise NotInstalledError(
                f'{self.user} needs {self.title or self.package}: pip install "rnnlab[{self.extra}]"'
            )

    def module(self, name: str | None = None) -> Any:
        """Import a module of the library, or the library itself.

        Raises
        ------
        ImportError
            If it is not installed.
        """
        self.require()
        return import_module(f"{self.package}.{name}" if name else self.package)
