"""The optional libraries that compute scores, imported when a score is computed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rnnlab.errors import NotInstalledError


@dataclass(frozen=True)
class Library:
    """An optional library."""

    package: str
    extra: str  # the extra of rnnlab that installs it
    computes: str

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
                f'{self.computes} needs {self.package}: pip install "rnnlab[{self.extra}]"'
            )

    def module(self, name: str) -> Any:
        """Import a module of the library.

        Raises
        ------
        ImportError
            If it is not installed.
        """
        self.require()
        return import_module(f"{self.package}.{name}")


CAPTION_SCORERS = Library("pycocoevalcap", "eval", "scoring captions")
TRANSLATION_SCORERS = Library("sacrebleu", "translation", "scoring translations")
