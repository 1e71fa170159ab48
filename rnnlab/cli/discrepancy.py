"""``rnnlab discrepancy``: compare a model's teacher-forced and free-running hidden states."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab import runs
from rnnlab.cli.arguments import add_first, check_outputs
from rnnlab.cli.device_option import add_device, add_matmul, device_here
from rnnlab.cli.mpi_option import add_mpi
from rnnlab.reporting.discrepancy import discrepancy_table, states_picture, write_discrepancy


def add(commands: Any) -> None:
    """Add the command's arguments."""
    discrepancy = commands.add_parser(
        "discrepancy",
        help="compare a model's teacher-forced and free-running hidden states",
        description="Cosine distances (X. Chen et al. 2018, eqs 10-12) between the last hidden states under "
        "teacher forcing and in greedy decoding: d_mc between their means, d_pw the mean over sentences.",
    )
    discrepancy.set_defaults(run=_discrepancy)
    discrepancy.add_argument("run_directory", metavar="RUN", help="a run directory")
    add_device(discrepancy)
    add_matmul(discrepancy)
    add_mpi(discrepancy)
    discrepancy.add_argument("--split", help="a split of the data, such as val (default: the recipe's)")
    discrepancy.add_argument(
        "--picture", metavar="FILE", help="write a PNG of all states by t-SNE (needs the extra sklearn)"
    )
    discrepancy.add_argument("--json", metavar="FILE", help="write the numbers as JSON")
    add_first(discrepancy, "only the first N images or sentences of the split", "--first")


def _discrepancy(options: argparse.Namespace) -> int:
    check_outputs(options, "json", "picture")
    if options.picture:
        from rnnlab import plots  # importing matplotlib takes half a second

        plots.SCIKIT_LEARN.require()
    run = runs.load_run(options.run_directory, device=device_here(options))
    ranks = options.communicator
    found = runs.discrepancy(run, options.split, first=options.first, communicator=ranks)
    if ranks.rank:
        return 0
    if options.json:  # before printing, which may fail
        write_discrepancy(options.json, run, options.split or run.recipe.evaluation.split, found)
    if options.picture:
        states_picture(options.picture, found)
    print(discrepancy_table(found))
    return 0
