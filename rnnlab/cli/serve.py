"""``rnnlab serve``: a local web page where a trained run captions photographs or translates sentences."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from typing import Any

from rnnlab.cli.arguments import natural_number, positive_number
from rnnlab.cli.device_option import add_device, add_matmul
from rnnlab.cli.encoder_options import add_encoder, check_encoder, with_encoder
from rnnlab.cli.run_arguments import RUNS_HELP, add_average, open_runs
from rnnlab.cli.search_options import add_beam_search, search_options
from rnnlab.cli.task_commands import recipe_of
from rnnlab.errors import InputError
from rnnlab.recipes.data import ShapesTable
from rnnlab.recipes.recipe import CaptioningRecipe, TranslationRecipe
from rnnlab.serving.answerer import Answerer
from rnnlab.serving.captioning import PhotographCaptioner, PictureCaptioner
from rnnlab.serving.server import address_of, listen, require_gradio, serve
from rnnlab.serving.translation import Translator

_LAST_PORT = 65535
_MB = 2**20  # bytes, as counted in the page's message


def add(commands: Any) -> None:
    """Add the command's arguments."""
    parser = commands.add_parser("serve", help="open a local web page that captions or translates")
    parser.set_defaults(run=_serve)
    parser.add_argument("run_directories", nargs="+", metavar="RUN", help=RUNS_HELP)
    add_device(parser)
    add_matmul(parser)
    add_average(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1, this machine alone; 0.0.0.0: every machine that "
        "can reach this one)",
    )
    parser.add_argument(
        "--port", type=_port, help="the port (default: the first free one from 7860 on; 0: any)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--max-upload-mb",
        type=positive_number,
        default=20,
        metavar="MB",
        help="the largest file that the page takes (default: 20)",
    )
    add_encoder(parser, required=False)
    add_beam_search(parser)


def _serve(options: argparse.Namespace) -> int:
    require_gradio()
    check_encoder(options)
    with listen(options.host, options.port) as listener:
        serve(
            _answerer(options),
            listener,
            max_upload=int(options.max_upload_mb * _MB),
            announce=lambda: _announce(address_of(listener), options),
        )
    return 0


def _announce(address: str, options: argparse.Namespace) -> None:
    print(f"Serving {' '.join(options.run_directories)} at {address} (Ctrl-C ends it)", flush=True)
    if options.open and not webbrowser.open(address):
        print(f"rnnlab serve: found no browser to open {address}", file=sys.stderr)


def _answerer(options: argparse.Namespace) -> Answerer:
    """The runs, ready to answer. All errors of the runs are found here."""
    run, device = open_runs(options.run_directories, options, with_data=False), options.device
    translates = isinstance(run.recipe, TranslationRecipe)
    try:
        recipe = recipe_of(run, TranslationRecipe) if translates else recipe_of(run, CaptioningRecipe)
    except InputError as error:
        raise InputError(f"{error}; a page is for models that caption or translate") from None
    decoding = search_options(recipe.decoding, options)
    has_encoder = isinstance(recipe, CaptioningRecipe) and not isinstance(recipe.data, ShapesTable)
    if options.encoder and not has_encoder:
        raise InputError(f"--encoder is for photographs, and {run.directory} reads none")
    if has_encoder:
        return PhotographCaptioner(with_encoder(run, options), decoding, device)
    if isinstance(recipe, CaptioningRecipe):
        return PictureCaptioner(open_runs(options.run_directories, options), decoding, device)
    return Translator(run, decoding, device)


def _port(text: str) -> int:
    port = natural_number(text)
    if port > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r}, expected at most {_LAST_PORT}")
    return port
