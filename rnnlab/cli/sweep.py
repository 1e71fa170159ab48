"""``rnnlab sweep``: train a grid of settings, or several recipes, in parallel, and show their scores."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rnnlab.cli import bugs
from rnnlab.cli.arguments import check_outputs, positive_integer
from rnnlab.cli.device_option import add_graphs, device_words, graphs_words, matmul_setting
from rnnlab.cli.processes import Command, Processes, rnnlab_command
from rnnlab.cli.recipe_file import read_recipe
from rnnlab.cli.report import add_scores, add_table, check_scores, scored
from rnnlab.cli.train import AFTER_A_SIGNAL
from rnnlab.errors import InputError
from rnnlab.files import check_writable
from rnnlab.ops.threads import num_threads
from rnnlab.recipes.grid import grid
from rnnlab.recipes.recipe import Recipe
from rnnlab.reporting.comparison import differences_text, states_text
from rnnlab.reporting.differences import differences
from rnnlab.reporting.record import Record, read_records
from rnnlab.reporting.table import write_table
from rnnlab.shell import quoted
from rnnlab.training.run_directory import holds_run
from rnnlab.training.step_graphs import obstacle_of_place

_LOG = "train.log"  # in the directory of each run
_FINISHED, _FAILED, _INTERRUPTED, _NOT_STARTED = "finished", "failed", "interrupted", "not started"


class Trial(NamedTuple):
    """One run of a sweep."""

    directory: Path
    recipe: str
    overrides: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.directory.name

    def command(self, options: argparse.Namespace) -> Command:
        """The command that trains the run, or resumes it if it has begun."""
        if holds_run(self.directory):
            words = ["--resume", str(self.directory)]
        else:
            settings = [word for override in self.overrides for word in ("--set", override)]
            words = [self.recipe, *settings, "--out", str(self.directory)]
        train = [*rnnlab_command(), "train", *words, "--no-progress"]
        how = f"{device_words(options)}{graphs_words(options)}".split()
        return Command(self.name, [*train, *how], self.directory / _LOG)


def add(commands: Any) -> None:
    """Add the command's arguments."""
    sweep = commands.add_parser("sweep", help="train a grid of settings, or several recipes, in parallel")
    sweep.set_defaults(run=_sweep)
    sweep.add_argument(
        "recipes", nargs="+", metavar="RECIPE", help="a TOML file, or a name that rnnlab recipes list shows"
    )
    sweep.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE,VALUE",
        help="the values of a key, model.hidden_dim=256,512; several keys give every combination. A comma "
        "within brackets or quotation marks is part of a value",
    )
    sweep.add_argument(
        "--jobs",
        type=positive_integer,
        default=1,
        metavar="N",
        help="the maximum number of runs at a time, which share the processors (default: 1)",
    )
    sweep.add_argument(
        "--out", metavar="DIR", help="the folder of the run directories (default: runs/NAME_OF_RECIPE_sweep)"
    )
    add_graphs(sweep)
    add_scores(sweep)
    add_table(sweep)


def _sweep(options: argparse.Namespace) -> int:
    folder, trials = _trials(options)
    precision = matmul_setting(options)
    configs = {each: read_recipe(each.recipe, [*each.overrides, *precision]) for each in trials}
    plans = {each: _plan(each, recipe) for each, recipe in configs.items()}
    finished = {each for each, plan in plans.items() if _is_finished(each, plan)}
    check_writable("--out", folder, is_folder=True)
    check_outputs(options, "csv", inputs=options.recipes)
    check_scores(options)
    _check_trainable([recipe for each, recipe in configs.items() if each not in finished], options)
    states = {each.name: _FINISHED if each in finished else _NOT_STARTED for each in trials}
    left = [each.command(options) for each in trials if each not in finished]
    print(f"{folder}: {len(trials)} runs, {len(finished)} of them finished", flush=True)
    threads = str(max(1, num_threads() // min(options.jobs, max(1, len(left)))))
    processes = Processes(options.jobs, {"RNNLAB_NUM_THREADS": threads, "OMP_NUM_THREADS": threads})
    notes = []
    for command, status in processes.run(left):
        if status is None:
            continue
        states[command.name] = _state(status, is_ending=processes.received is not None)
        print(f"{command.name}: {states[command.name]}", flush=True)
        if states[command.name] == _FAILED:
            notes.append(f"{command.name}: {_last_line(command.log)} ({command.log})")
    if processes.received is None:
        _show(plans, states, notes, options)
        return 1 if _FAILED in states.values() else 0
    print("\n" + states_text(states, notes=notes))
    print("\nThe same command resumes the sweep.")
    return AFTER_A_SIGNAL + processes.received


def _trials(options: argparse.Namespace) -> tuple[Path, list[Trial]]:
    """The folder of the sweep, and its runs, each in a directory that is named after its values."""
    stems = [Path(recipe).stem for recipe in options.recipes]
    several = len(stems) > 1
    if doubled := [stem for stem in stems if stems.count(stem) > 1]:
        raise InputError(f"two recipes have the name {doubled[0]}, expected different names")
    out = Path(options.out or Path("runs") / ("sweep" if several else f"{stems[0]}_sweep"))
    trials = []
    for recipe, stem in zip(options.recipes, stems, strict=True):
        for point in grid(options.set):
            parts = [stem] * (several or not point.name) + [point.name] * bool(point.name)
            trials.append(Trial(out / ",".join(parts), recipe, tuple(point.overrides)))
    return out, trials


def _plan(trial: Trial, recipe: Recipe) -> Record:
    """The record of a run before its training."""
    return Record(trial.directory, trial.name, recipe.to_dict(), "", None, [])


def _check_trainable(configs: Sequence[Recipe], options: argparse.Namespace) -> None:
    """Check what would fail in every run, before the first one starts.

    Raises
    ------
    ValueError, ImportError, TypeError
        If there can be no CUDA graphs on the device, an extra of a recipe's callbacks is not installed, or a
        callback of the user cannot be created.
    """
    if options.graphs and (obstacle := obstacle_of_place(options.device, 1)) is not None:
        raise obstacle
    for recipe in configs:
        recipe.callbacks.callbacks()


def _is_finished(trial: Trial, plan: Record) -> bool:
    """Whether the directory of a trial holds its run, and the run has ended.

    Raises
    ------
    ValueError
        If it holds a run of another recipe.
    """
    if not holds_run(trial.directory):
        return False
    (record,) = read_records([trial.directory])
    if found := differences([record, plan]):
        key, (saved, wanted) = found[0]
        raise InputError(
            f"{trial.directory} holds a run with {key} = {saved}, and the sweep has {wanted}: choose another "
            "directory with --out"
        )
    return record.finished


def _state(status: int, *, is_ending: bool) -> str:
    if status == 0:
        return _FINISHED
    return _INTERRUPTED if is_ending else _FAILED


def _last_line(log: Path) -> str:
    """The last line of a log that is not blank: the error."""
    lines = bugs.without_reports(log.read_text(encoding="utf-8", errors="replace").split("\n"))
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _show(
    plans: Mapping[Trial, Record],
    states: Mapping[str, str],
    notes: Sequence[str],
    options: argparse.Namespace,
) -> None:
    """Print the scores of the runs that are finished, and the state of all."""
    records = read_records([each.directory for each in plans if states[each.name] == _FINISHED])
    records = [replace(each, name=each.directory.name) for each in records]  # not of a link's target
    results = scored(records, options)
    if options.csv:  # before printing, which may fail
        write_table(options.csv, records, results, [each.key for each in differences(list(plans.values()))])
    print("\n" + states_text(states, records, results, notes=notes))
    if len(options.recipes) > 1 and len(records) > 1:
        print("\n" + differences_text(records))
    if records:
        print(f"\nCurves and recipes: rnnlab compare {_words([each.directory for each in records])}")


def _words(directories: Sequence[Path]) -> str:
    """Directories in one folder as shell arguments: a pattern if it matches only these."""
    folder = directories[0].parent
    if set(directories) == {path for path in folder.iterdir() if not path.name.startswith(".")}:
        return f"{quoted(folder)}{os.sep}*"
    return quoted(*directories)
