"""``rnnlab compare``: runs side by side in the terminal."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rnnlab.cli.arguments import positive_integer
from rnnlab.cli.device_option import add_device
from rnnlab.reporting.comparison import comparison_text
from rnnlab.reporting.record import Record, read_records
from rnnlab.reporting.results import Results, results_of


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    compare = commands.add_parser("compare", help="compare runs: scores, curves, recipes")
    compare.set_defaults(run=_compare)
    compare.add_argument("run_directories", nargs="+", metavar="RUN", help="a run directory")
    _add_scores(compare)


def _add_scores(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is scored."""
    add_device(parser)
    parser.add_argument(
        "--split", help="the split to score (default: val, or the recipe's where the data have no val)"
    )
    parser.add_argument(
        "--max-images",
        "--max-sentences",
        dest="first",
        type=positive_integer,
        metavar="N",
        help="score only the first N",
    )
    parser.add_argument(
        "--no-scores", dest="scores", action="store_false", help="read only what the training has saved"
    )


def _compare(options: argparse.Namespace) -> int:
    records = read_records(options.run_directories)
    print(comparison_text(records, _results(records, options), encoding=sys.stdout.encoding or "ascii"))
    return 0


def _results(records: list[Record], options: argparse.Namespace) -> list[Results]:
    """The scores of the runs, with a line on standard error for each; none if they are not wanted."""
    found = []
    for record in records if options.scores else ():
        print(f"rnnlab {options.command}: scoring {record.directory}", file=sys.stderr)
        found.append(results_of(record, options.split, first=options.first, device=options.device))
    return found
