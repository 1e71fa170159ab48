"""The arguments that say how sentences are searched for, which several commands take."""

from __future__ import annotations

import argparse
import dataclasses

from rnnlab.config import DecodingConfig

# What only one method has.
_BEAM_ONLY = ("beam_size", "length_penalty", "normalisation", "num_groups", "diversity")
_SAMPLE_ONLY = ("temperature", "top_k", "top_p")


def count(text: str) -> int:
    """An argument that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer of at least 1")
    return int(text)


def natural(text: str) -> int:
    """An argument that counts something of which there may be none."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer of at least 0")
    return int(text)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the group of arguments. Their destinations are the keys of a recipe's table [decoding]."""
    group = parser.add_argument_group("decoding", "the recipe's if left out")
    group.add_argument("--method", choices=["greedy", "beam", "sample"])
    group.add_argument(
        "--beam", dest="beam_size", type=count, metavar="K", help="beam search with K partial sentences"
    )
    group.add_argument(
        "--n-best", "--nbest", type=count, metavar="N", help="find N sentences for each source"
    )
    group.add_argument(
        "--length-penalty", type=float, metavar="A", help="rank by log-probability / (words + 1)^A"
    )
    group.add_argument(
        "--normalisation", choices=["power", "gnmt"], help="gnmt: / ((words + 6) / 6)^A instead"
    )
    group.add_argument(
        "--groups", dest="num_groups", type=count, metavar="G", help="G diverse beams of K / G sentences"
    )
    group.add_argument(
        "--diversity", type=float, metavar="D", help="less log-probability for what earlier groups chose"
    )
    group.add_argument("--max-length", type=count, metavar="T", help="the most words in a sentence")
    group.add_argument("--min-length", type=natural, metavar="T", help="the fewest words in a sentence")
    group.add_argument(
        "--no-repeat-ngram", type=natural, metavar="N", help="no N words come twice in a sentence"
    )
    group.add_argument("--temperature", type=float, help="of sampling")
    group.add_argument("--top-k", type=natural, metavar="K", help="sample from the K likeliest words")
    group.add_argument("--top-p", type=float, metavar="P", help="sample from the nucleus of probability P")
    group.add_argument(
        "--max-images", "--max-sentences", dest="first", type=count, metavar="N", help="only the first N"
    )


def search_options(recipe: DecodingConfig, options: argparse.Namespace) -> DecodingConfig:
    """The recipe's decoding, with what the command line says instead."""
    keys = [field.name for field in dataclasses.fields(DecodingConfig)]
    given = {key: value for key in keys if (value := getattr(options, key, None)) is not None}
    for tells, of in ((("beam_size", "num_groups"), "beam"), (_SAMPLE_ONLY, "sample")):
        if any(key in given for key in tells):
            given.setdefault("method", of)
    method = given.get("method", recipe.method)
    for only, of in ((_BEAM_ONLY, "beam"), (_SAMPLE_ONLY, "sample")):
        for key in only:
            if key in given and method != of:
                raise ValueError(f"{key} is given, but only --method {of} has one, and this is {method}")
    if method != "beam":
        given.setdefault("n_best", 1)
    return dataclasses.replace(recipe, **given)
