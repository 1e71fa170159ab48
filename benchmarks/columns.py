"""The columns of the papers' tables: each finds its number in the results of an entry.

:mod:`benchmarks.results` describes the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Column:
    """The numbers of one column: where they are found, and how they are printed."""

    # Takes the results and one evaluation.
    find: Callable[[Mapping[str, Any], Mapping[str, float]], float | None]
    form: str


def score(name: str, form: str = ".1f", factor: float = 100) -> Column:
    """A score of the evaluation."""

    def find(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
        return factor * evaluation[name] if name in evaluation else None

    return Column(find, form)


def best(name: str, form: str = ".1f", factor: float = 100, least: bool = False) -> Column:
    """The best value of a metric over the epochs. If the metric chose the epoch, it is that of the model."""

    def find(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
        values = _history(results, name)
        return factor * (min(values) if least else max(values)) if values else None

    return Column(find, form)


def last(name: str, form: str = ".3f") -> Column:
    """The value of a metric in the last epoch."""

    def find(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
        values = _history(results, name)
        return values[-1] if values else None

    return Column(find, form)


def _history(results: Mapping[str, Any], name: str) -> list[float]:
    return [epoch[name] for epoch in results.get("history", ()) if name in epoch]


def _epochs(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    return float(len(results["history"])) if results.get("history") else None


def _seconds(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    values = _history(results, "seconds")
    return median(values) if values else None


def _cpu_minutes(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    return results.get("cpu_minutes")


def _million_parameters(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    found = results.get("num_parameters")
    return None if found is None else found / 1e6


def _peak_megabytes(results: Mapping[str, Any], evaluation: Mapping[str, float]) -> float | None:
    return results.get("peak_megabytes")


EPOCHS = {"epochs": Column(_epochs, ".0f")}
SIZE = {"million parameters": Column(_million_parameters, ".2f")}
SECONDS = {"seconds an epoch": Column(_seconds, ".0f")}  # the median, without validation
MINUTES = {"core minutes": Column(_cpu_minutes, ".1f")}  # whole command: epochs, validation, final scores
PEAK = {"peak memory, MB": Column(_peak_megabytes, ",.0f")}  # resident, data and validation included
COST = SIZE | SECONDS
BLEU = {f"BLEU-{n}": score(f"BLEU-{n}") for n in (1, 2, 3, 4)}
CAPTIONS = BLEU | {name: score(name) for name in ("METEOR", "ROUGE-L", "CIDEr")}
PERPLEXITY = {"perplexity": score("perplexity", ".2f", 1)}
DISTANCES = {name: score(name, ".3f", 1) for name in ("d_mc", "d_pw")}
