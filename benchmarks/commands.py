"""The parts that the commands of ``python -m benchmarks`` share: parsers, and files of results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from rnnlab.cli.arguments import check_outputs
from rnnlab.files import atomic_text


def parser_of(name: str, description: str) -> argparse.ArgumentParser:
    """The parser of ``python -m benchmarks NAME``, which keeps the lines of the description."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}".rstrip(),
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_outputs(parser: argparse.ArgumentParser, results: str) -> None:
    """Add --markdown, and --json, which writes ``results``."""
    parser.add_argument("--json", metavar="FILE", help=f"write {results}")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The options; an error if --json names a file that cannot be written."""
    options = parser.parse_args(arguments)
    try:
        check_outputs(options, "json")
    except OSError as error:
        parser.error(str(error))
    return options


def write_json(options: argparse.Namespace, results: Any) -> None:
    """Write the file of --json, if there is one, and its folder."""
    if options.json:
        with atomic_text(options.json) as file:
            json.dump(results, file, indent=1)
            file.write("\n")
