"""The scores of runs that differ only in their seed, as means and standard deviations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnlab.recipes.grid import short_names
from rnnlab.reporting.differences import differences, recipe_rows
from rnnlab.reporting.record import Record
from rnnlab.reporting.results import Results
from rnnlab.tasks.task import Evaluation

TITLE = "Mean ± std over seeds"
_SEED = "training.seed"


def means_over_seeds(
    records: Sequence[Record], results: Sequence[Results]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """A table of the means, with a row for each group of runs whose recipes differ only in the seed.

    Only runs that have a recipe and scores are included.

    Returns
    -------
    columns : list of str
        The names of the scores, and "runs".
    rows : list of (str, list of str)
        The difference of these runs from the others, such as "cell_type=gru", or "all"; for each score the
        mean and the sample standard deviation over the runs, such as "0.8353 ± 0.0065"; and the number of
        runs. There are no rows if no two runs differ only in their seed.
    """
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Record, Evaluation]]] = {}
    for record, found in zip(records, results, strict=False):
        if record.recipe is not None and found.evaluation is not None:
            equal = tuple(row for row in recipe_rows(record) if row[0] != _SEED)
            groups.setdefault(equal, []).append((record, found.evaluation))
    names = list(dict.fromkeys(name for [(_, first), *_] in groups.values() for name in first.corpus()))
    if all(len(runs) == 1 for runs in groups.values()):
        return [*names, "runs"], []
    firsts = [runs[0][0] for runs in groups.values()]
    changed = [each for each in differences(firsts) if each.key != _SEED]
    short = short_names([each.key for each in changed])
    rows = []
    for k, runs in enumerate(groups.values()):
        values = ", ".join(f"{short[each.key]}={each.values[k]}" for each in changed)
        scores = [_mean([found for _, found in runs], name) for name in names]
        rows.append((values or "all", [*scores, str(len(runs))]))
    return [*names, "runs"], rows


def _mean(evaluations: Sequence[Evaluation], name: str) -> str:
    """A score with as many decimals as in the table of a single run; empty if no run has it."""
    numbers = [each.corpus()[name] for each in evaluations if name in each.corpus()]
    if not numbers:
        return ""
    shown = next(dict(each.rows())[name] for each in evaluations if name in dict(each.rows()))
    decimals = len(shown.partition(".")[2])
    mean = f"{np.mean(numbers):,.{decimals}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {np.std(numbers, ddof=1):,.{decimals}f}"
