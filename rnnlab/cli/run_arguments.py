"""The arguments of commands that take one run, or several as an ensemble."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rnnlab.cli.device_option import device_here
from rnnlab.decoding.ensemble import ENSEMBLE_AVERAGES
from rnnlab.decoding.search import attends
from rnnlab.ensembles import load_ensemble
from rnnlab.errors import InputError
from rnnlab.runs import Run
from rnnlab.training.run_directory import holds_run

RUNS_HELP = "a run directory; several form an ensemble"


def add_average(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--average``."""
    parser.add_argument(
        "--average",
        choices=ENSEMBLE_AVERAGES,
        help=f"of several runs: what is averaged at each word (default: {ENSEMBLE_AVERAGES[0]})",
    )


def open_runs(directories: Sequence[str], options: argparse.Namespace, *, with_data: bool = True) -> Run:
    """One run, or several as an ensemble, by the options ``--device`` and ``--average``.

    Raises
    ------
    ValueError
        If ``--average`` is given for one run, or the runs do not form an ensemble.
    """
    if options.average and len(directories) == 1:
        raise InputError("--average is given with one run, expected several runs")
    average = options.average or ENSEMBLE_AVERAGES[0]
    return load_ensemble(directories, with_data=with_data, device=device_here(options), average=average)


def check_attends(run: Run, option: str, source: str) -> None:
    """Raise ValueError if an option draws attention weights and the model does not attend to its source."""
    if attends(run.model):
        return
    if run.members:
        names = ", ".join(map(str, run.members))
        raise InputError(f"{option}: none of the models of {names} attends to {source}")
    raise InputError(
        f"{option}: the model of {run.directory} does not attend to {source}; it was trained with "
        "model.attention = none"
    )


def leading_runs(first: str, others: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split positional arguments into the runs and the arguments after them.

    The first argument is a run, and so are the next ones up to the first that is not the directory of a run.
    A directory without a run counts, too, if its path has several parts; :func:`open_runs` then reports it.
    """
    count = next((k for k, text in enumerate(others) if not _is_meant_as_run(text)), len(others))
    return [first, *others[:count]], list(others[count:])


def _is_meant_as_run(text: str) -> bool:
    path = Path(text)
    # not path.is_dir(), which fails if a sentence is too long for a file name
    return os.path.isdir(path) and (holds_run(path) or len(path.parts) > 1)
