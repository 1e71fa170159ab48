"""``python -m benchmarks.people RECIPE``: scores of human captions and of a model's captions.

Each image has five captions. The first captions of all images are scored against the other four, then the
second captions, and so on; the score is the mean over the five. With ``--scores FILE``, a file from ``rnnlab
evaluate --json``, the captions of a model are scored against the same sets of four references. Scores against
five references cannot be compared with these: more references give higher scores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from rnnlab.metrics import ptb_tokenizer, score_captions
from rnnlab.recipes import load_recipe
from rnnlab.runs import open_data


def one_against_the_others(
    references: Sequence[Sequence[str]], captions: Sequence[str] | None = None
) -> dict[str, float]:
    """Scores against all references but one, averaged over the reference that is left out.

    Parameters
    ----------
    references : sequence of sequences of str
        The sentences of each image: the same number for all images, at least two.
    captions : sequence of str, optional
        The caption to score for each image; by default the reference that is left out.

    Returns
    -------
    dict of str to float
        The scores by name. METEOR is left out without Java.

    Raises
    ------
    ValueError
        If the images have different numbers of references, or fewer than two.
    """
    numbers = {len(some) for some in references}
    if len(numbers) != 1 or min(numbers) < 2:
        raise ValueError(
            f"one_against_the_others: images have {', '.join(map(str, sorted(numbers)))} references, "
            "expected the same number for each, at least 2"
        )
    tokenize = ptb_tokenizer([*chain.from_iterable(references), *(captions or ())])
    scored = []
    for left_out in range(min(numbers)):
        others = [[*some[:left_out], *some[left_out + 1 :]] for some in references]
        candidates = captions or [some[left_out] for some in references]
        scored.append(score_captions(candidates, others, tokenize=tokenize).corpus)
    return {name: fmean(each[name] for each in scored) for name in scored[0]}


def score_people(recipe: str, split: str) -> dict[str, float]:
    """The scores of the references of a recipe's data, with "4 references" in their names."""
    data = open_data(load_recipe(recipe).data)
    return _named(one_against_the_others(data.split(split).references))


def four_references(images: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The scores of a model's captions against four references, with "4 references" in their names.

    Parameters
    ----------
    images : sequence of mappings
        The field ``images`` of the JSON of ``rnnlab evaluate --json``.
    """
    captions = [image["caption"] for image in images]
    return _named(one_against_the_others([image["references"] for image in images], captions))


def _named(scores: Mapping[str, float]) -> dict[str, float]:
    return {f"{name}, 4 references": value for name, value in scores.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the scores."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.people",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recipe", metavar="RECIPE", help="a recipe of captions, such as flickr8k_lstm")
    parser.add_argument("--split", default="test", help="the split whose captions are scored (default: test)")
    parser.add_argument("--scores", type=Path, metavar="FILE", help="a file from rnnlab evaluate --json")
    options = parser.parse_args(arguments)
    try:
        rows = {"people": score_people(options.recipe, options.split)}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if options.scores is not None:
        rows["model"] = four_references(json.loads(options.scores.read_text(encoding="utf-8"))["images"])
    for who, scores in rows.items():
        print("\n".join(f"{who:<8}{name:<28}{100 * value:6.1f}" for name, value in scores.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
