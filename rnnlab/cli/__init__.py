"""The ``rnnlab`` command.

rnnlab train RECIPE [--set key=value ...] [--out DIR]      train the model that a recipe describes
rnnlab train --resume DIR                                  resume a run
rnnlab sweep RECIPE ... [--set key=value,value ...]        train a grid of settings, or several recipes
rnnlab features IMAGES --encoder FILE --out FILE           compute the features of photographs
rnnlab caption RUN ... IMAGES_OR_SPLIT                     caption images, by one run or an ensemble
rnnlab translate RUN ... SENTENCE ... | --file FILE        translate sentences, by one run or an ensemble
rnnlab write RUN ... PROMPT                                write sentences of a language model
rnnlab lexicon RUN FILE                                    make a lexicon from a model's attention
rnnlab serve RUN ... --open                                open a local page that captions or translates
rnnlab evaluate RUN ... --split val --beam 3 --json FILE   score the model of a run
rnnlab report RUN RUN ... --open                           make a page about runs
rnnlab compare RUN RUN ...                                 compare scores, curves and recipes of runs
rnnlab discrepancy RUN --picture FILE                      compare teacher-forced and free-running states
rnnlab gradcheck                                           check every gradient against a numeric one
rnnlab kernels [--warm-up]                                 show which kernels compute here, and compile them
rnnlab data prepare | info                                 prepare data sets, and describe them
rnnlab recipes list | copy NAME | keys KIND                the recipes that come with rnnlab, and all keys
rnnlab course cs231n DIR                                   write the files of the cs231n assignment
rnnlab course check FOLDER                                 check the files that a student has filled in
rnnlab course release DIR                                  write assignments, for nbgrader or Otter
rnnlab course grade SUBMITTED                              mark the functions of submitted notebooks

Each module here holds one command, or two related ones. Its function ``add`` adds their arguments.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import rnnlab
from rnnlab.cli import (
    caption,
    course,
    data,
    discrepancy,
    evaluate,
    features,
    gradcheck,
    kernels,
    recipes,
    report,
    serve,
    sweep,
    train,
    translate,
    write,
)
from rnnlab.cli.arguments import Parser, show_help
from rnnlab.cli.bugs import how_to_report
from rnnlab.cli.closed_output import quiet_when_closed
from rnnlab.cli.device_option import products_of
from rnnlab.cli.mpi_option import find_ranks
from rnnlab.errors import RnnlabError
from rnnlab.files import WriteError
from rnnlab.ops.precision import products_precision
from rnnlab.shell import expanded
from rnnlab.training.distributed import ALONE, Communicator, rank_0_prints

_FAILURES = (RnnlabError, OSError, MemoryError)  # any other error is a bug
_PATHS = "run_directories", "images", "recipes"  # lists of paths, which may have wildcards
_STRICT = "strict", "surrogateescape"  # Python's choices for output; the second is that of the C locale
_INTERRUPTED = 130  # the exit status of shells for Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status.

    It is 0 for success, 1 if a check failed or a file could not be written, 2 if the input is wrong or
    something is missing, 75 if the time budget of a training run is used up, 130 after Ctrl-C, 143 after
    SIGTERM, 138 after SIGUSR1, 129 after SIGHUP, and 141 if the reader of the output has closed it.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed, as by >&-; no file of the run may take its place
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in _STRICT:
        # a word that the terminal cannot encode must not be an error
        sys.stdout.reconfigure(errors="backslashreplace")
        if os.name == "nt" and not sys.stdout.isatty() and "PYTHONIOENCODING" not in os.environ:
            sys.stdout.reconfigure(encoding="utf-8")  # a file, which other commands can then read
    return quiet_when_closed(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    """Run the command; return its exit status, or raise BrokenPipeError if the output is closed."""
    with suppress(OSError):  # the working directory was deleted
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())  # for the user's own cells and rules, named "module:Object"
    options, rest = _parser().parse_known_args(arguments)
    if "#" in (sys.argv[1:] if arguments is None else arguments):
        options.parser.error("this shell passes comments on: leave out # and the words after it")
    lists = [getattr(options, name) for name in ("sentences", "images") if hasattr(options, name)]
    if rest and lists and not any(word.startswith("-") for word in rest):
        lists[0] += rest  # argparse does not accept them after an option
    elif rest:
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    for name in _PATHS:
        if hasattr(options, name):
            setattr(options, name, expanded(getattr(options, name)))
    ranks: Communicator = ALONE
    try:
        ranks = options.communicator = find_ranks(options)
        products_precision()  # an invalid RNNLAB_MATMUL is an error before any work is done
        with rank_0_prints(ranks), products_of(options):
            return options.run(options)
    except KeyboardInterrupt:
        return _failed(options, "interrupted", _INTERRUPTED, ranks)
    except BrokenPipeError:  # an OSError, but not a failure: main ends the command
        raise
    except _FAILURES as error:
        if options.traceback:
            raise
        said = "out of memory" if isinstance(error, MemoryError) and not str(error) else error
        return _failed(options, said, 1 if isinstance(error, WriteError) else 2, ranks)
    except Exception as error:
        error.add_note(how_to_report())
        raise


def _failed(options: argparse.Namespace, error: object, status: int, ranks: Communicator) -> int:
    """Show an error and return the exit status; with several ranks, end the job."""
    ranks.begin_abort()
    with suppress(OSError):  # a terminal that is closed
        print(f"rnnlab {options.command}: {error}", file=sys.stderr)
    ranks.abort(status)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rnnlab", description="Train recurrent networks that generate sequences, and use them."
    )
    show_help(parser)
    parser.add_argument("--version", action="version", version=f"rnnlab {rnnlab.__version__}")
    parser.add_argument("--traceback", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in (
        train,
        sweep,
        features,
        caption,
        translate,
        write,
        serve,
        evaluate,
        report,
        discrepancy,
        gradcheck,
        kernels,
        data,
        recipes,
        course,
    ):
        module.add(commands)
    return parser
