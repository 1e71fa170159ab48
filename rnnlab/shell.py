"""The words of commands, as the shells of this system read and expand them."""

from __future__ import annotations

import glob
import os
import shlex
import subprocess
from collections.abc import Sequence

_WINDOWS = os.name == "nt"
_SPECIAL = frozenset("&|<>^()%;,@{}'")  # for cmd.exe or PowerShell, outside double quotes


def quoted(*words: str | os.PathLike[str]) -> str:
    """Words as they are typed: in double quotes on Windows, where backslashes are a part of paths."""
    texts = [os.fspath(word) for word in words]
    return " ".join(map(_quoted_on_windows, texts)) if _WINDOWS else shlex.join(texts)


def _quoted_on_windows(word: str) -> str:
    text = subprocess.list2cmdline([word])
    return f'"{text}"' if _SPECIAL & set(text) and not text.startswith('"') else text


def expanded(words: Sequence[str]) -> list[str]:
    """Words with the paths that match their wildcards. The shells of Windows leave this to the programs."""
    return [path for word in words for path in _matches(word) or [word]]


def _matches(word: str) -> list[str]:
    return sorted(glob.glob(word)) if _WINDOWS and glob.has_magic(word) and not os.path.lexists(word) else []
