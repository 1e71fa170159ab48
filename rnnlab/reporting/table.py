"""Runs and their scores as a CSV table, with a row for each run."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

from rnnlab.files import atomic_text
from rnnlab.reporting.differences import differences, recipe_rows
from rnnlab.reporting.record import Record
from rnnlab.reporting.results import Results


def write_table(
    path: str | os.PathLike[str],
    records: Sequence[Record],
    results: Sequence[Results],
    keys: Sequence[str] = (),
) -> None:
    """Write a CSV file with a row for each run.

    The columns are the run's name and directory, the keys on which the recipes differ, the number of
    parameters, the finished epochs, the best epoch, the epoch whose parameters are scored, the seconds
    of training, the split, and each score. Numbers are not rounded. A cell is empty if the run has no such
    value.

    Parameters
    ----------
    path : path
    records : sequence of Record
    results : sequence of Results
        One for each record. If it is empty, the columns of split and scores are left out.
    keys : sequence of str, optional
        Keys of recipes that have a column even if these runs do not differ in them.

    Raises
    ------
    WriteError
        If the file cannot be written.
    """
    keys = list(dict.fromkeys([*keys, *(each.key for each in differences(records))]))
    columns = ["run", "directory", *keys, "parameters", "epochs", "best_epoch", "scored_epoch", "seconds"]
    rows: list[dict[str, Any]] = []
    for k, record in enumerate(records):
        recipe = dict(recipe_rows(record))
        row: dict[str, Any] = {"run": record.name, "directory": os.fspath(record.directory)}
        row |= {key: recipe.get(key, "") for key in keys}
        row |= {"parameters": record.num_parameters, "epochs": record.epochs}
        row |= {"best_epoch": record.best_epoch, "scored_epoch": record.scored_epoch}
        rows.append(row | {"seconds": record.seconds} | (_scores(results[k]) if results else {}))
    columns = list(dict.fromkeys([*columns, *(key for row in rows for key in row)]))
    with atomic_text(path) as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _scores(found: Results) -> dict[str, Any]:
    scores = found.evaluation.corpus() if found.evaluation is not None else {}
    return {"split": found.split, **scores}
