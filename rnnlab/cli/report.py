"""``rnnlab report``, a page about runs, and ``rnnlab compare``, runs side by side in the terminal."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import Any, get_args

from rnnlab.cli.arguments import (
    add_first,
    add_metrics,
    check_output,
    check_outputs,
    natural_number,
    positive_integer,
)
from rnnlab.cli.device_option import add_device, add_matmul, device_words
from rnnlab.errors import InputError, MissingDataError
from rnnlab.ops import ops_on
from rnnlab.options import TokenizerName
from rnnlab.reporting.comparison import comparison_text
from rnnlab.reporting.page.build import JINJA, write_report
from rnnlab.reporting.record import Record, read_records
from rnnlab.reporting.results import Results, results_of
from rnnlab.reporting.table import write_table

_EXAMPLES = 40  # by default


def add(commands: Any) -> None:
    """Add the commands' arguments."""
    report = commands.add_parser("report", help="make a page about runs: scores, curves, recipes, examples")
    report.set_defaults(run=_report)
    report.add_argument("run_directories", nargs="+", metavar="RUN", help="a run directory")
    report.add_argument(
        "--out",
        metavar="FILE",
        help="the page (default: report.html in the run directory; of several runs, comparison.html in the "
        "first one)",
    )
    report.add_argument("--open", action="store_true", help="open the page in the browser")
    report.add_argument(
        "--examples",
        type=natural_number,
        metavar="N",
        help=f"the maximum number of images or sentences to show (default: {_EXAMPLES})",
    )
    add_scores(report)

    compare = commands.add_parser("compare", help="compare runs: scores, curves, recipes")
    compare.set_defaults(run=_compare)
    compare.add_argument("run_directories", nargs="+", metavar="RUN", help="a run directory")
    add_scores(compare)
    compare.add_argument(
        "--bootstrap",
        type=positive_integer,
        metavar="SAMPLES",
        help="differences of the scores from those of the first run, with intervals and p-values of a paired "
        "bootstrap of this number of samples, such as 1000",
    )
    add_table(compare)


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the file of a table."""
    parser.add_argument(
        "--csv",
        metavar="FILE",
        help="write a table with a row for each run: differences of the recipes, epochs, time, scores",
    )


def add_scores(parser: argparse.ArgumentParser) -> None:
    """Add the options for the split, the number of examples and the device of the scores."""
    add_device(parser)
    add_matmul(parser)
    parser.add_argument(
        "--split", help="the split to score (default: val, or the recipe's if the data have no val)"
    )
    add_metrics(parser, "the scores (default: those of each recipe)")
    parser.add_argument(
        "--tokenizer",
        choices=get_args(TokenizerName),
        help="the tokenizer of the scores of captions (default: that of each recipe)",
    )
    add_first(parser, "score only the first N")
    parser.add_argument(
        "--no-scores", dest="scores", action="store_false", help="read only the files that training has saved"
    )


def _report(options: argparse.Namespace) -> int:
    records = read_records(options.run_directories)
    default = "report.html" if len(records) == 1 else "comparison.html"
    path = Path(options.out or records[0].directory / default)
    JINJA.require()
    check_output("--out", path)
    _check_scoring(options, *["--examples"] * (options.examples is not None))
    examples = _EXAMPLES if options.examples is None else options.examples
    write_report(path, records, _scored_on_split(records, options), examples=examples)
    print(f"Report: {path} ({_size(path.stat().st_size)})")
    if options.open and not webbrowser.open(path.absolute().as_uri()):
        print(f"rnnlab report: found no browser to open {path}", file=sys.stderr)
    return 0


def _size(num_bytes: int) -> str:
    """A size of a file in kB, or in MB from 1 MB on."""
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e6 else f"{num_bytes / 1e3:.1f} kB"


def _compare(options: argparse.Namespace) -> int:
    records = read_records(options.run_directories)
    check_outputs(options, "csv")
    _check_scoring(options, *["--bootstrap"] * (options.bootstrap is not None))
    if options.bootstrap is not None and len(records) < 2:
        raise InputError("--bootstrap compares runs with the first one, found 1 run, expected at least 2")
    results = _scored_on_split(records, options)
    if options.csv:  # before printing, which may fail
        write_table(options.csv, records, results)
    encoding = sys.stdout.encoding or "ascii"
    print(comparison_text(records, results, bootstrap=options.bootstrap, encoding=encoding))
    return 0


def check_scores(options: argparse.Namespace, *others: str) -> None:
    """Raise InputError if an option for scores is given with ``--no-scores``.

    ``others`` are further options of the command that concern scores and that the user gave.
    """
    own = {"--split": options.split, "--metrics": options.metrics, "--max-images": options.first}
    own["--tokenizer"] = options.tokenizer
    given = [name for name, value in own.items() if value is not None] + list(others)
    if given and not options.scores:
        raise InputError(f"{given[0]} is for scores, and --no-scores is given: leave one of them out")


def _check_scoring(options: argparse.Namespace, *others: str) -> None:
    """The same for a command that only reads runs. The device of the scores is checked, too."""
    check_scores(options, *others, *device_words(options).split()[:1])
    if options.scores:
        ops_on(options.device)


def scored(records: list[Record], options: argparse.Namespace) -> list[Results]:
    """The scores of the runs, with a line on standard error for each; none if they are not wanted."""
    found = []
    for record in records if options.scores else ():
        print(f"rnnlab {options.command}: scoring {record.directory}", file=sys.stderr)
        results = results_of(
            record,
            options.split,
            metrics=options.metrics,
            first=options.first,
            tokenizer=options.tokenizer,
            device=options.device,
        )
        if results.evaluation is None:
            print(f"rnnlab {options.command}: {record.name}: {'; '.join(results.notes)}", file=sys.stderr)
        found.append(results)
    return found


def _scored_on_split(records: list[Record], options: argparse.Namespace) -> list[Results]:
    """The scores of the runs.

    Raises
    ------
    MissingDataError
        If the data of no run have the split of ``--split``.
    """
    found = scored(records, options)
    if options.split and found and all(each.lacks_split for each in found):
        raise MissingDataError(f"--split {options.split}: no run has this split in its data")
    return found
