"""The ``rnnlab`` command.

rnnlab train RECIPE [--set key=value ...] [--out DIR]      train what a recipe describes
rnnlab train --resume DIR                                  go on with a run
rnnlab caption RUN IMAGES_OR_SPLIT                         caption images
rnnlab translate RUN SENTENCE ... | --file FILE            translate sentences
rnnlab lexicon RUN FILE                                    words for <UNK>, from a model's attention
rnnlab evaluate RUN --split val --beam 3 --json FILE       score captions, translations or classes
rnnlab discrepancy RUN --picture FILE                      compare states under teacher forcing and free ones
rnnlab gradcheck                                           hold every gradient against a numeric one
rnnlab kernels [--warm-up]                                 show what arrays are worked on with, compile it
rnnlab data prepare | info                                 make data sets, and look at them

A module here has one command, or two that belong together, and its function ``add`` their arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import rnnlab
from rnnlab.cli import caption, data, discrepancy, evaluate, gradcheck, kernels, train, translate

# What a command may end in: bad input, or a machine that is not up to it. All else is a fault of ours.
_FAILURES = (ArithmeticError, ImportError, LookupError, MemoryError, OSError, TypeError, ValueError)
_INTERRUPTED = 130  # the exit status that shells give to Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status.

    It is 0, 1 if a check failed, 2 if the command could not be carried out, 130 after Ctrl-C.
    """
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and hasattr(options, "sentences") and not any(word.startswith("-") for word in rest):
        options.sentences += rest  # argparse takes no sentences after an option
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print(f"rnnlab {options.command}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except _FAILURES as error:
        if options.traceback:
            raise
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"rnnlab {options.command}: {text}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rnnlab", description=rnnlab.__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"rnnlab {rnnlab.__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (train, caption, translate, evaluate, discrepancy, gradcheck, kernels, data):
        module.add(commands)
    return parser
