"""Libraries that compute scores, which extras install. They are imported when a score is computed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Library:
    """A library that may not be installed."""

    package: str
    extra: str  # of rnnlab, which brings it
    computes: str

    @property
    def installed(self) -> bool:
        """Whether it is there."""
        return find_spec(self.package) is not None

    def require(self) -> None:
        """Do nothing if it is installed.

        Raises
        ------
        ImportError
            If it is not; says how to install it.
        """
        if not self.installed:
            raise ImportError(f'{self.computes} needs {self.package}: pip install "rnnlab[{self.extra}]"')

    def module(self, name: str) -> Any:
        """One of its modules.

        Raises
        ------
        ImportError
            If it is not installed.
        """
        self.require()
        return import_module(f"{self.package}.{name}")


CAPTION_SCORERS = Library("pycocoevalcap", "eval", "scoring captions")
TRANSLATION_SCORERS = Library("sacrebleu", "translation", "scoring translations")
