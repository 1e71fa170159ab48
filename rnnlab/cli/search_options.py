"""The options of a search for sentences, which several commands share."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any, get_args

from rnnlab.cli.arguments import add_first, natural_number, positive_integer
from rnnlab.decoding.method_options import METHOD_OPTIONS, unmet_needs
from rnnlab.errors import InputError
from rnnlab.options import Normalisation, SearchMethod
from rnnlab.recipes.tables import DecodingTable


def add_search(parser: argparse.ArgumentParser, *, n_best: bool = True, first: bool = True) -> None:
    """Add the group of arguments. Their destinations are the keys of the table [decoding] of a recipe.

    ``n_best=False`` leaves that option out, for commands that use the best sentence only, and ``first=False``
    that of the number of sources, for a command without them.
    """
    group = parser.add_argument_group(
        "decoding",
        "the defaults are those of the recipe; options of beam search or of sampling choose that method",
    )
    group.add_argument("--method", choices=get_args(SearchMethod), help="the search")
    _add_beam(group)
    if n_best:
        group.add_argument(
            "--n-best",
            "--nbest",
            type=positive_integer,
            metavar="N",
            help=f"beam search that finds N sentences{' for each source' * first}",
        )
    _add_lengths(group)
    group.add_argument("--temperature", type=float, help="the temperature of sampling")
    group.add_argument(
        "--top-k",
        type=natural_number,
        metavar="K",
        help="sample from the K most probable words, and those as probable as the last of them; 0: from all",
    )
    group.add_argument("--top-p", type=float, metavar="P", help="sample from the nucleus of probability P")
    if first:
        add_first(group, "only the first N")


def add_beam_search(parser: argparse.ArgumentParser) -> None:
    """Add the group of arguments for a command that always uses beam search, without a list length."""
    group = parser.add_argument_group("beam search", "the defaults are those of the recipe")
    _add_beam(group)
    _add_lengths(group)
    parser.set_defaults(method="beam", n_best=1)


def _add_beam(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--beam",
        "--beam-size",
        dest="beam_size",
        type=positive_integer,
        metavar="K",
        help="beam search of width K",
    )
    group.add_argument(
        "--length-penalty", type=float, metavar="A", help="rank by log-probability / (words + 1)^A"
    )
    group.add_argument(
        "--normalisation", choices=get_args(Normalisation), help="gnmt: divide by ((words + 6) / 6)^A instead"
    )
    group.add_argument(
        "--groups",
        "--num-groups",
        dest="num_groups",
        type=positive_integer,
        metavar="G",
        help="G diverse groups of K / G sentences",
    )
    group.add_argument(
        "--diversity", type=float, metavar="D", help="the penalty for words that earlier groups chose"
    )


def _add_lengths(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--max-length", type=positive_integer, metavar="T", help="the maximum number of words")
    group.add_argument("--min-length", type=natural_number, metavar="T", help="the minimum number of words")
    group.add_argument(
        "--no-repeat-ngram",
        type=natural_number,
        metavar="N",
        help="no sequence of N words occurs twice in a sentence",
    )


_FLAGS = {"beam_size": "beam", "num_groups": "groups"}  # options whose keys have other names in a recipe


def flag_of(key: str) -> str:
    """The option of the command line for a key of the table [decoding]."""
    return f"--{_FLAGS.get(key, key.replace('_', '-'))}"


def given_search(options: argparse.Namespace) -> dict[str, Any]:
    """The keys of [decoding] that the command line sets."""
    keys = [field.name for field in dataclasses.fields(DecodingTable)]
    return {key: value for key in keys if (value := getattr(options, key, None)) is not None}


def search_options(recipe: DecodingTable, options: argparse.Namespace) -> DecodingTable:
    """The table [decoding] of the recipe with the changes of the command line.

    Keys of the recipe that have no effect after these changes get their defaults.
    """
    given = given_search(options)
    for of in ("beam", "sample"):
        if any(key in given for key in METHOD_OPTIONS[of]):
            given.setdefault("method", of)
    values = dataclasses.asdict(recipe) | given
    for key, need in unmet_needs(values).items():
        if key in given:
            raise InputError(
                f"{flag_of(key)} needs {flag_of(need.option)} {need.values}, found {values[need.option]}"
            )
    if getattr(options, "seed", None) is not None and values["method"] != "sample":
        raise InputError(f"--seed needs --method sample, found {values['method']}")
    found = given.get("beam_size", recipe.n_best) if values["method"] == "beam" else 1
    given.setdefault("n_best", min(recipe.n_best, found))
    return recipe.changed(**given)
