"""``rnnlab discrepancy``: how far a model's states under teacher forcing are from those when it runs free."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab import plots, runs
from rnnlab.cli.arguments import positive_integer
from rnnlab.cli.device_option import add_device
from rnnlab.reporting import report


def add(commands: Any) -> None:
    """Add the command's arguments."""
    discrepancy = commands.add_parser(
        "discrepancy",
        help="compare a model's last states under teacher forcing and when it runs free",
        description="Cosine distances (X. Chen et al. 2018, eqs 10-12) of the last hidden states when taught "
        "from those of greedy decoding: d_mc of their means, d_pw the mean over sentences.",
    )
    discrepancy.set_defaults(run=_discrepancy)
    discrepancy.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    add_device(discrepancy)
    discrepancy.add_argument("--split", help="one of the data's, such as val; the recipe's if left out")
    discrepancy.add_argument(
        "--picture", metavar="FILE", help="write a PNG of all states, placed by t-SNE (the extra sklearn)"
    )
    discrepancy.add_argument("--json", metavar="FILE", help="write the numbers")
    discrepancy.add_argument(
        "--first",
        type=positive_integer,
        metavar="N",
        help="only the first N images or sentences of the split",
    )


def _discrepancy(options: argparse.Namespace) -> int:
    if options.picture:
        plots.require_tsne()  # what is missing is said before the work
    run = runs.load_run(options.run_directory, device=options.device)
    found = runs.discrepancy(run, options.split, first=options.first)
    print(report.discrepancy_table(found))
    if options.json:
        report.write_discrepancy(options.json, run, options.split or run.config.evaluation.split, found)
    if options.picture:
        report.states_picture(options.picture, found)
    return 0
