"""Train and evaluate the models of the papers' tables, and write the results.

    RUNS/NAME-seedN/                files of rnnlab train
    RUNS/NAME-seedN/training.json   peak memory and processor time of the command, if they were measured
    RUNS/NAME-seedN.lock            held by the process that trains or evaluates it
    RUNS/NAME-seedN/scores*.json    output of rnnlab evaluate and rnnlab discrepancy; also in RUNS/ENSEMBLE

A run that ``rnnlab train`` made without this module is used if it is complete and has the recipe that the
table asks for.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import people, results
from benchmarks.bfloat16 import declined
from benchmarks.comments import comment_scores
from benchmarks.trainings import EXTRAS, RUNS, Ensemble, Entry, Extra, People, Table, Training, with_starts
from rnnlab.files import write_json
from rnnlab.recipes.recipe import load_recipe, recipe_from_dict
from rnnlab.training.monitor import Monitor
from rnnlab.training.run_directory import holds_run

# Keys of a recipe that change neither the trained model nor the epoch that is chosen.
_BAD_ARGUMENTS = 2  # exit status of a command that fails again if it is repeated
_WITHOUT_EFFECT = (
    "training.prefetch",
    "training.checkpoint_every",
    "training.accumulate",
    "evaluation.split",
    "evaluation.metrics",
    "evaluation.tokenizer",
    "data.images",
)

_PRECISION = (
    "training.matmul"  # chosen by `python -m benchmarks.papers --matmul` if the training does not set it
)


class OtherRun(SystemExit):
    """The results of a training belong to another run than the one to evaluate."""


class OtherPrecision(SystemExit):
    """A training asks for a precision that this machine does not have."""


class OtherRecipe(SystemExit):
    """A run was not trained by the recipe that a table asks for."""


def make(table: Table, runs: Path, to: Path = results.RESULTS, matmul: str | None = None) -> None:
    """Train and evaluate the entries without results; ``matmul`` as in :func:`train`."""
    for row in table.rows:
        for entry in row.entries:
            if missing(entry, row.options, table.extras, to):
                for training in entry.members:
                    train(training, runs, matmul)
                measure(entry, row.options, table.extras, runs, to)


def collect(tables: Sequence[Table], runs: Path, to: Path = results.RESULTS) -> list[str]:
    """Evaluate the entries that are trained and have no results; return their names.

    An entry is left out, with a message on standard error, if its run has another recipe or is not the run of
    its results.
    """
    done = []
    for table in tables:
        for row in table.rows:
            for entry in row.entries:
                trained = all(is_complete(training.directory(runs)) for training in entry.members)
                if not trained or not missing(entry, row.options, table.extras, to):
                    continue
                try:
                    measure(entry, row.options, table.extras, runs, to)
                except (OtherRecipe, OtherRun) as error:
                    print(error, file=sys.stderr)
                else:
                    done.append(entry.id)
    return list(dict.fromkeys(done))


def remaining(tables: Sequence[Table], runs: Path, to: Path = results.RESULTS) -> list[Training]:
    """The trainings without results that are not complete, each after the training that it starts from."""
    found: dict[str, Training] = {}
    for table in tables:
        for row in table.rows:
            for entry in row.entries:
                if missing(entry, row.options, table.extras, to):
                    found |= {each.id: each for each in _untrained(entry.members, runs)}
    return list(found.values())


def _untrained(trainings: Sequence[Training], runs: Path) -> Iterator[Training]:
    for training in trainings:
        if not is_complete(training.directory(runs)):
            if training.start is not None:
                yield from _untrained([training.start], runs)
            yield training


def missing(
    entry: Entry, options: Sequence[str], extras: Sequence[Extra], of: Path = results.RESULTS
) -> bool:
    """Whether the results lack an evaluation or one of the extra scores measured with it."""
    known = results.load(entry.id, of)
    if known is None or results.key_of(options) not in known["evaluations"]:
        return True
    found = known["evaluations"][results.key_of(options)]
    names = [
        name for extra in extras for name in EXTRAS[extra] if not name.startswith("METEOR")
    ]  # needs Java
    return any(name not in found for name in names)


# ---------------------------------------------------------------- training


def train(training: Training, runs: Path, matmul: str | None = None) -> None:
    """Train a model, after the one it starts from, or resume its run. A complete run is not changed.

    If another process trains it, wait. ``matmul`` is the precision of products in new trainings that do not
    set one; a run that resumes keeps its own.

    Exit if that is bfloat16 and this machine would compute in float32: the table would name the wrong
    precision.
    """
    directory = training.directory(runs)
    with locked(directory):
        if is_complete(directory):
            check_recipe(training, directory)
            return
        if training.start is not None:
            train(training.start, runs, matmul)
        begun = holds_run(directory)
        if begun:
            check_recipe(training, directory)
        precision = _precision(training, runs) if begun else training.precision or matmul
        if precision == "bfloat16" and (reason := declined()):
            raise OtherPrecision(f"{training.id} has products in bfloat16, and {reason}")
        command = ["train", "--resume", str(directory)] if begun else training.command(runs, matmul)
        used = rnnlab([*command, *([] if sys.stderr.isatty() else ["--no-progress"])])
        if begun:  # the time of the earlier part is unknown
            used = used._replace(cpu_minutes=None)
        write_json(directory / "training.json", used._asdict())


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a run; other processes wait until it is released."""
    path = directory.with_name(f"{directory.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for the process that trains {directory.name}", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_complete(directory: Path) -> bool:
    """Whether a run has trained all epochs or stopped early, according to its configuration and history."""
    files = [directory / name for name in ("config.json", "history.csv", "last.h5")]
    if not all(file.exists() for file in files):
        return False
    solver = json.loads(files[0].read_text(encoding="utf-8"))["solver"]
    epochs = results.read_history(files[1])
    if len(epochs) >= solver["num_epochs"]:
        return True
    monitor = Monitor(solver["monitor"], solver["patience"], solver["monitor_mode"])
    for number, epoch in enumerate(epochs, 1):
        monitor.update(epoch, number)
    return monitor.exhausted


def check_recipe(training: Training, directory: Path) -> None:
    """Exit with the differences if a run was not trained by the recipe that the table asks for."""
    path = _config_of(directory)
    found = json.loads(path.read_text(encoding="utf-8"))["config"]
    if different := differences(training, found, str(path)):
        raise OtherRecipe(
            f"{directory} differs from the recipe of its table: {'; '.join(different)}. Move it away to "
            "train it again, or change the table"
        )


def differences(training: Training, config: Mapping[str, Any], source: str) -> list[str]:
    """The differences between the recipe of a run and the one that the table asks for."""
    asked = _flat(load_recipe(training.recipe, training.all_changes).to_dict())
    found = _flat(recipe_from_dict(config, source).to_dict())
    asked["training.warm_start"] = None if training.start is None else training.start.id
    start = found.get("training.warm_start")
    found["training.warm_start"] = None if start is None else Path(start).name
    open_keys = _WITHOUT_EFFECT if training.precision else (*_WITHOUT_EFFECT, _PRECISION)
    return [
        f"{key} is {found.get(key)!r}, expected {asked.get(key)!r}"
        for key in dict.fromkeys([*asked, *found])
        if key not in open_keys and asked.get(key) != found.get(key)
    ]


def _flat(tables: Any, prefix: str = "") -> dict[str, Any]:
    """Dotted keys of nested tables."""
    if isinstance(tables, list) and tables and all(isinstance(each, dict) for each in tables):
        tables = {str(number): each for number, each in enumerate(tables, 1)}
    if not isinstance(tables, dict) or not tables:
        return {prefix: tables}
    found: dict[str, Any] = {}
    for key, value in tables.items():
        found |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return found


def _config_of(directory: Path) -> Path:
    """The configuration of a run, which may be in its first stage."""
    path = directory / "config.json"
    return path if path.exists() else directory / "stage1" / "config.json"


# ---------------------------------------------------------------- measuring


def measure(
    entry: Entry, options: Sequence[str], extras: Sequence[Extra], runs: Path, to: Path = results.RESULTS
) -> None:
    """Evaluate an entry whose models are trained, and add the scores to its results."""
    for training in entry.members:
        check_recipe(training, training.directory(runs))
        for each in with_starts(training):
            _check_history(each, runs, to)
    with locked(runs / entry.id):
        known = results.load(entry.id, to) or _described(entry, runs)
        scores = _scores(entry, options, extras, runs)
        evaluations = known["evaluations"]
        key = results.key_of(options)
        evaluations[key] = evaluations.get(key, {}) | scores
        known["evaluations"] = dict(sorted(evaluations.items()))
        for command in _commands(entry, options, extras, runs):
            if command not in known["commands"]:
                known["commands"].append(command)
        results.store(entry.id, known, to)


def _check_history(training: Training, runs: Path, to: Path) -> None:
    """Exit if there are both results and a run, and the results belong to another run."""
    directory, known = training.directory(runs), results.load(training.id, to)
    history = directory / "history.csv"
    if known is None or not history.exists():
        return
    if results.rounded(results.read_history(history)) != results.rounded(known["history"]):
        raise OtherRun(
            f"{directory} is not the run of the results {training.id}.json: their losses differ. "
            "Remove the results to evaluate this run for all of its tables"
        )


def _described(entry: Entry, runs: Path) -> dict[str, Any]:
    """The results of an entry before its evaluations."""
    if not isinstance(entry, Training):
        return {"training": entry.id, "commands": [], "evaluations": {}}
    directory = entry.directory(runs)
    run = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    measured = directory / "training.json"
    used = json.loads(measured.read_text(encoding="utf-8")) if measured.exists() else {}
    return {
        "training": entry.id,
        "rnnlab_version": run["rnnlab_version"],
        "commands": [],
        "config": run["config"] | {"training": run["config"]["training"] | _warm_start(entry)},
        "num_parameters": run["num_parameters"],
        **{name: used.get(name) for name in Usage._fields},
        "history": results.read_history(directory / "history.csv"),
        "evaluations": {},
    }


def _warm_start(training: Training) -> dict[str, str]:
    """The warm start of a training, without the folder of its runs."""
    return {} if training.start is None else {"warm_start": training.start.id}


def _commands(entry: Entry, options: Sequence[str], extras: Sequence[Extra], runs: Path) -> list[str]:
    """The commands that repeat the training and an evaluation."""
    if isinstance(entry, People):
        return [f"python -m benchmarks.people {entry.recipe} {shlex.join(options)}"]
    made = [training.command(matmul=_precision(training, runs)) for training in entry.members]
    directories = [str(training.directory(RUNS)) for training in entry.members]
    made.append(["evaluate", *directories, *options, *_average(entry)])
    if "discrepancy" in extras:
        made.append(["discrepancy", *directories, *_split_of(options)])
    return [f"rnnlab {shlex.join(words)}" for words in made]


def _precision(training: Training, runs: Path) -> str | None:
    """The precision of products that a run was trained in, if its recipe has one."""
    run = json.loads(_config_of(training.directory(runs)).read_text(encoding="utf-8"))
    return run["config"]["training"].get("matmul")


def _scores(entry: Entry, options: Sequence[str], extras: Sequence[Extra], runs: Path) -> dict[str, float]:
    """All numbers of one evaluation."""
    if isinstance(entry, People):
        return people.score_people(entry.recipe, _split_of(options)[-1])
    folder = runs / entry.id
    directories = [str(training.directory(runs)) for training in entry.members]
    report = _written(folder, ["evaluate", *directories, *options, *_average(entry)], options)
    scores = dict(report["corpus"])
    if "comments" in extras:
        scores |= comment_scores(report["sentences"])
    if "four references" in extras:
        scores |= people.four_references(report["images"])
    if "discrepancy" in extras:
        split = _split_of(options)
        distances = _written(folder, ["discrepancy", *directories, *split], ["discrepancy", *split])
        scores |= {name: distances[name] for name in EXTRAS["discrepancy"]}
    return scores


def _average(entry: Entry) -> list[str]:
    """The options of an ensemble, whose log-probabilities are averaged."""
    return ["--average", "log_probabilities"] if isinstance(entry, Ensemble) else []


def _written(folder: Path, command: Sequence[str], name: Sequence[str]) -> dict[str, Any]:
    """The JSON that a command writes; it is not run again where the file exists."""
    file = folder / f"{'-'.join(['scores', *(word.removeprefix('--') for word in name)])}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rnnlab([*command, "--json", str(file)])
    return json.loads(file.read_text(encoding="utf-8"))


def _split_of(options: Sequence[str]) -> list[str]:
    at = list(options).index("--split")
    return list(options[at : at + 2])


class Usage(NamedTuple):
    """The memory and the time of a command."""

    peak_megabytes: float  # peak resident memory
    cpu_minutes: float | None  # processor time of all its threads, without other work on the machine


def rnnlab(arguments: Sequence[str]) -> Usage:
    """Run ``rnnlab`` with these arguments; return its memory and time."""
    print(f"\n$ rnnlab {shlex.join(arguments)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "rnnlab", *arguments])
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:  # the command receives it as well: let it write its checkpoint
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        advice = "" if process.returncode == _BAD_ARGUMENTS else "; run the command again to resume"
        sys.exit(f"rnnlab {arguments[0]} ended with status {process.returncode}{advice}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    return Usage(peak, (usage.ru_utime + usage.ru_stime) / 60)
