"""The files of the cs231n assignment on recurrent networks, for students to fill in."""

from __future__ import annotations

import os
from pathlib import Path

from rnnlab.course import assignment
from rnnlab.files import atomic_folder, atomic_write

PACKAGE = "cs231n"  # the package that the course's notebooks import


def write_assignment(directory: str | os.PathLike[str]) -> Path:
    """Write the package ``cs231n`` of the assignment. It is complete or absent.

    ``rnn_layers.py`` and ``classifiers/rnn.py`` have functions to fill in, which raise NotImplementedError.
    The other modules are those of :mod:`rnnlab.cs231n`.

    Parameters
    ----------
    directory : path
        The folder of the notebooks, in which the package is created.

    Returns
    -------
    path
        The folder of the package.

    Raises
    ------
    FileExistsError
        If it exists. Nothing is written then.
    """
    source, target = Path(assignment.__file__).parent, Path(directory) / PACKAGE
    if os.path.lexists(target):
        raise FileExistsError(f"{target} already exists, expected no such folder: choose another one")
    with atomic_folder("write_assignment: directory", target) as folder:
        for path in sorted(source.rglob("*.py")):
            with atomic_write(folder / path.relative_to(source)) as temporary:
                temporary.write_bytes(path.read_bytes())
    return target
