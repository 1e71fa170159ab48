"""The files that accompany a released notebook: licences, requirements, a README; nbgrader's settings."""

from __future__ import annotations

import ast
import functools
import importlib.metadata as metadata
import re
import sys
import textwrap
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import rnnlab
from rnnlab.course.grading.sandbox.imports import ALWAYS
from rnnlab.course.notebook_cells import parsed, plain_python, source_of
from rnnlab.errors import InputError

__all__ = [
    "LICENCES",
    "archive",
    "check_wheel",
    "config",
    "installed_from_index",
    "licences",
    "readme",
    "requirements",
]

LICENCES = ("LICENSE", "NOTICE")

# Functions of rnnlab that need a package outside the requirements of rnnlab.
_NEEDS = {
    "open_digits": "scikit-learn",
    "state_map": "scikit-learn",
    "score_captions": "pycocoevalcap",
    "corpus_bleu": "sacrebleu",
}


def licences() -> dict[str, str]:
    """The texts of :data:`LICENCES`, from the clone or from the installed package."""
    found = {}
    for name in LICENCES:
        if _in_clone():
            found[name] = (_parent() / name).read_text("utf8")
        else:
            text = metadata.distribution("rnnlab").read_text(f"licenses/{name}")
            if text is None:
                raise FileNotFoundError(f"the installed rnnlab has no {name}: install it again")
            found[name] = text
    return found


def requirements(content: Mapping[str, Any], wheel: Path | None) -> str:
    """A requirements.txt with rnnlab and the packages that a notebook imports, in the installed versions.

    Parameters
    ----------
    content : mapping
        The content of the notebook's file.
    wheel : path, optional
        A wheel of rnnlab in the same folder. By default the version on the package index is used.

    Raises
    ------
    ValueError
        If the notebook imports a package that is not installed.
    """
    distributions = _distributions()
    codes, names = _codes(content), set()
    for module in _imported(codes) - {*sys.stdlib_module_names, "rnnlab"}:
        if module not in distributions:
            raise InputError(f"the notebook imports {module}, which is not installed: its version is unknown")
        names.add(distributions[module][0])
    code = "\n".join(codes)
    names |= {package for function, package in _NEEDS.items() if re.search(rf"\b{function}\(", code)}
    first = f"./{wheel.name}" if wheel else f"rnnlab=={rnnlab.__version__}"
    return "\n".join([first, *(f"{name}=={_version(name)}" for name in sorted(names, key=str.lower))]) + "\n"


def installed_from_index() -> bool:
    """Whether this rnnlab was installed from a package index rather than from a clone or a file.

    pip records other sources in the file direct_url.json (PEP 610).
    """
    if _in_clone():
        return False
    try:
        return metadata.distribution("rnnlab").read_text("direct_url.json") is None
    except metadata.PackageNotFoundError:
        return False


def check_wheel(wheel: Path) -> None:
    """Check that a file is a wheel of this version of rnnlab.

    Raises
    ------
    FileNotFoundError, ValueError
        If it does not exist, or is not such a wheel.
    """
    expected = f"rnnlab-{rnnlab.__version__}-py3-none-any.whl"
    if not wheel.exists():
        raise FileNotFoundError(
            f"wheel is {wheel}, which does not exist: `pip wheel --no-deps .` writes {expected}"
        )
    if wheel.name != expected or not zipfile.is_zipfile(wheel):
        raise InputError(
            f"wheel is {wheel}, expected a file {expected}, as `pip wheel --no-deps .` writes it"
        )


def readme(stem: str) -> str:
    """Instructions for students: how to begin, on a computer and on Colab, and what to hand in."""
    return f"""# {stem}

Complete `{stem}.ipynb`: replace each `raise NotImplementedError()` by your code, and each "YOUR ANSWER HERE"
by your answer. Do not change or delete the cells with tests. Hand in the notebook under the same name.

Your functions are marked without files, without a network and without plots. They may use NumPy,
`scipy.special` and these modules of Python:

{_modules()}

## On your computer

In this folder, with Python 3.11 or newer:

    python -m venv .venv
    source .venv/bin/activate
    pip install -r requirements.txt jupyterlab
    jupyter lab {stem}.ipynb

On Windows the second command is `.venv\\Scripts\\activate`.

No data is downloaded. The pictures and captions are generated on first use, in about 20 seconds.

## On Google Colab

1. "File", "Upload notebook": `{stem}.ipynb`.
2. Drag `{stem}.zip` into the list of files at the left.
3. Run this in a new first cell, and restart the session if Colab asks for it:

       !unzip -qo {stem}.zip && cd {stem} && pip install -q -r requirements.txt

Delete this cell before you hand in the notebook.
"""


def _modules() -> str:
    """The modules of Python that marked functions may import."""
    names = [f"`{name}`" for name in ALWAYS if name in sys.stdlib_module_names]
    return textwrap.fill(f"{', '.join(names[:-1])} and {names[-1]}.", 110)


def config(course_id: str) -> str:
    """The text of nbgrader_config.py."""
    return f'''"""Settings of nbgrader. Run its commands in this folder."""

import os

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = {course_id!r}
c.CourseDirectory.source_directory = "source"
c.CourseDirectory.release_directory = "release"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"
c.CourseDirectory.directory_structure = "{{nbgrader_step}}/{{student_id}}/{{assignment_id}}"

# The seconds that a cell may take. Some cells train a model.
c.Execute.timeout = 900

# nbgrader gives no points to a test that writes to stderr, as warnings and the notice of compiled kernels do.
os.environ.update(PYTHONWARNINGS="ignore", RNNLAB_KERNELS_ANNOUNCED="1")
'''


def archive(folder: Path, target: Path) -> None:
    """Write a folder to a zip file, under its own name."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(folder.rglob("*")):
            made.write(path, path.relative_to(folder.parent))


def _parent() -> Path:
    """The folder that contains the package: a clone, or the folder of installed packages."""
    return Path(rnnlab.__file__).parents[1]


def _in_clone() -> bool:
    return (_parent() / "setup.cfg").exists()


def _codes(content: Mapping[str, Any]) -> list[str]:
    """The code of each cell of a notebook, without IPython's commands."""
    cells = [source_of(cell) for cell in content["cells"] if cell["cell_type"] == "code"]
    return list(map(plain_python, cells))


def _imported(codes: Sequence[str]) -> set[str]:
    """The packages that cells import. Cells in other languages, such as %%bash, import none."""
    found = set()
    for node in (node for code in codes for node in ast.walk(parsed(code))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions of each installed package. Reading them takes a second."""
    return metadata.packages_distributions()


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        message = f"the notebook needs {distribution}, which is not installed: its version is unknown"
        raise InputError(message) from None
