"""JSON files of results, with the run that they are from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import rnnlab
from rnnlab import files
from rnnlab.runs import Run


def write_json(path: str | os.PathLike[str], run: Run, results: Mapping[str, Any]) -> None:
    """Write results as JSON, after the version of rnnlab and the run.

    The key ``run`` holds the directory of the run; an ensemble has ``runs`` and ``average`` instead. Numbers
    that are not finite are null.
    """
    source: dict[str, Any] = {"run": os.fspath(run.directory)}
    if run.members:
        source = {"runs": list(map(os.fspath, run.members)), "average": run.model.average}
    contents = {"rnnlab_version": rnnlab.__version__, **source, **results}
    files.write_json(path, contents, indent=1)
