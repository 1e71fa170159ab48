"""The folders of data that environment variables name."""

from __future__ import annotations

import os
from pathlib import Path


def folder_named_by(variable: str) -> Path | None:
    """The folder that an environment variable names, with ``~`` expanded; None if it is not set or empty."""
    text = os.environ.get(variable)
    return Path(os.path.expanduser(text)) if text else None


def public_data() -> Path | None:
    """The folder of the public data sets, ``$RNNLAB_DATA``; None if the variable is not set.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    """
    folder = folder_named_by("RNNLAB_DATA")
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(f"RNNLAB_DATA is {str(folder)!r}, expected an existing folder")
    return folder


def cache_folder() -> Path:
    """The user's folder for files that can be made again.

    Raises
    ------
    FileNotFoundError
        If the user has no home folder.
    """
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise FileNotFoundError("found no home folder, expected one, or the variable HOME")
    return Path(home, ".cache", "rnnlab")
