"""``rnnlab recipe``: print a recipe with all keys, their defaults and what they mean."""

from __future__ import annotations

import argparse
from typing import Any

from rnnlab.recipes.template import kinds, template


def add(commands: Any) -> None:
    """Add the command's arguments."""
    recipe = commands.add_parser("recipe", help="print a recipe with all keys and their meaning")
    recipe.set_defaults(run=_recipe)
    recipe.add_argument("kind", help=f"the kind of data: {', '.join(kinds())}", metavar="KIND")


def _recipe(options: argparse.Namespace) -> int:
    print(template(options.kind), end="")
    return 0
