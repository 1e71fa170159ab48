"""``rnnlab recipes``: list and copy the recipes that come with rnnlab, and print all keys of a recipe."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from pathlib import Path
from typing import Any

from rnnlab.cli.arguments import show_help
from rnnlab.files import atomic_text, check_writable
from rnnlab.recipes import shipped
from rnnlab.recipes.template import kinds, template
from rnnlab.shell import quoted


def add(commands: Any) -> None:
    """Add the commands and their arguments."""
    recipes = commands.add_parser("recipes", help="list and copy the recipes that come with rnnlab")
    show_help(recipes)
    actions = recipes.add_subparsers(title="commands", dest="action", metavar="COMMAND")

    listing = actions.add_parser("list", help="list the recipes that come with rnnlab")
    listing.set_defaults(run=_list)

    copy = actions.add_parser("copy", help="copy a recipe into a file of your own, to change it")
    copy.set_defaults(run=_copy)
    copy.add_argument("name", metavar="NAME", help="a name that rnnlab recipes list shows")
    copy.add_argument("file", nargs="?", metavar="FILE", help="where to (default: NAME.toml)")

    keys = actions.add_parser("keys", help="print a recipe with all keys, their defaults and meaning")
    keys.set_defaults(run=_keys)
    keys.add_argument("kind", help=f"the kind of data: {', '.join(kinds())}", metavar="KIND")


def _list(options: argparse.Namespace) -> int:
    column = max(map(len, shipped.names())) + 2
    for name in shipped.names():
        line = f"{name:<{column}}{shipped.subject(name)}"
        print(textwrap.fill(line, shutil.get_terminal_size().columns, subsequent_indent=" " * column))
    return 0


def _copy(options: argparse.Namespace) -> int:
    text = shipped.text(options.name)
    target = Path(options.file or f"{options.name}.toml")
    if target.exists():
        raise FileExistsError(f"{target} already exists: give another FILE")
    check_writable("FILE", target)
    with atomic_text(target) as file:
        file.write(text)
    print(f"{target}: train it with rnnlab train {quoted(target)}")
    return 0


def _keys(options: argparse.Namespace) -> int:
    print(template(options.kind), end="")
    return 0
