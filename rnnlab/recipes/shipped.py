"""The recipes that come with rnnlab: :func:`names` lists them, and :func:`find` finds one by its name."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from rnnlab.options import suggestion

__all__ = ["find", "names", "subject", "text"]

_FOLDER = Path(__file__).parent / "files"


def names() -> list[str]:
    """The names of the recipes that come with rnnlab, in alphabetical order."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def subject(name: str) -> str:
    """The subject of a recipe that comes with rnnlab: the first sentence of its file."""
    lines = text(name).splitlines()
    paragraph = " ".join(line.lstrip("# ") for line in lines[: lines.index("#")])
    return re.split(r"(?<!et al)(?<!eq)(?<!eqs)\.(?: |$)", paragraph)[0]


def text(name: str) -> str:
    """The text of a recipe that comes with rnnlab.

    Raises
    ------
    FileNotFoundError
        If none has this name. The error suggests similar names.
    """
    if name not in names():
        raise FileNotFoundError(f"rnnlab has no recipe {name!r}; {suggestion(name, names())}")
    return (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def find(recipe: str | os.PathLike[str]) -> Path:
    """The file of a recipe.

    Parameters
    ----------
    recipe : path or str
        A TOML file, or the name of a recipe that comes with rnnlab, such as "shapes".

    Raises
    ------
    FileNotFoundError
        If there is neither. The error suggests similar names, including files in the same folder.
    """
    path = Path(recipe)
    if path.exists() and not path.is_dir():
        return path
    if os.fspath(recipe) in names():
        return _FOLDER / f"{recipe}.toml"
    files = {file.stem: os.fspath(file) for file in sorted(path.parent.glob("*.toml"))}
    found = [
        spelling
        for name in difflib.get_close_matches(path.stem, {*names(), *files}, n=3)
        for spelling in ([name] if name in names() else []) + ([files[name]] if name in files else [])
    ]
    raise FileNotFoundError(
        f"recipe {recipe} {'is a directory' if path.is_dir() else 'does not exist'}"
        + (
            f"; did you mean {' or '.join(found)}?"
            if found
            else ", expected a TOML file or a name that rnnlab recipes list shows"
        )
    )
