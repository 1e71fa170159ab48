"""The libraries that compute scores, which extras bring: imported when a score is asked for, not before."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def scorers_available() -> bool:
    """Whether the extra ``eval`` is installed."""
    return find_spec("pycocoevalcap") is not None


def require_scorers() -> None:
    """Do nothing if the extra ``eval`` is installed.

    Raises
    ------
    ImportError
        If it is not; says how to install it.
    """
    if not scorers_available():
        raise ImportError('caption scores need pycocoevalcap: pip install "rnnlab[eval]"')


def pycocoevalcap(module: str) -> Any:
    """A module of pycocoevalcap.

    Raises
    ------
    ImportError
        If the extra ``eval`` is not installed.
    """
    require_scorers()
    return import_module(f"pycocoevalcap.{module}")


def bleu_available() -> bool:
    """Whether the extra ``translation`` is installed."""
    return find_spec("sacrebleu") is not None


def require_bleu() -> None:
    """Do nothing if the extra ``translation`` is installed.

    Raises
    ------
    ImportError
        If it is not; says how to install it.
    """
    if not bleu_available():
        raise ImportError('BLEU of translations needs sacrebleu: pip install "rnnlab[translation]"')


def sacrebleu(module: str) -> Any:
    """A module of sacrebleu.

    Raises
    ------
    ImportError
        If the extra ``translation`` is not installed.
    """
    require_bleu()
    return import_module(f"sacrebleu.{module}")
