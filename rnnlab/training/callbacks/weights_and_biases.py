"""A log for Weights & Biases, sent by its client (the extra ``wandb``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.extras import Library
from rnnlab.files import atomic_text
from rnnlab.options import Count, check_options
from rnnlab.training.callbacks.callback import Training
from rnnlab.training.callbacks.log import Log

WANDB = Library("wandb", "wandb", "WeightsAndBiases")


class WeightsAndBiases(Log):
    """Sends the curves of :class:`~rnnlab.training.callbacks.TensorBoard`, and the options of the solver.

    The client has its own settings: ``wandb login`` for the account, and the environment variable
    ``WANDB_MODE``, which is "offline" where there is no network. A run that resumes continues its curves: its
    directory holds the id in wandb_id.txt.

    Parameters
    ----------
    project : str
    every : int
        As in :class:`~rnnlab.training.callbacks.Log`.

    Raises
    ------
    ImportError
        If the extra is not installed.
    """

    def __init__(self, project: str = "rnnlab", *, every: Count = 10) -> None:
        super().__init__(every=every)
        check_options("WeightsAndBiases", WeightsAndBiases, {"project": project})
        WANDB.require()
        self._project = project
        self._run: Any = None

    def open(self, solver: Training) -> None:
        """Begin a run, or continue it."""
        import wandb

        options: dict[str, Any] = {"project": self._project, "config": solver.options.to_dict()}
        if solver.run_dir is not None:
            solver.run_dir.mkdir(parents=True, exist_ok=True)
            options |= {"dir": str(solver.run_dir), "name": solver.run_dir.name, "resume": "allow"}
            saved = solver.run_dir / "wandb_id.txt"
            if saved.exists():
                options["id"] = saved.read_text(encoding="utf-8").strip()
        self._run = wandb.init(**options)
        if solver.run_dir is not None:
            with atomic_text(saved) as file:
                file.write(f"{self._run.id}\n")
        self._run.define_metric("*", step_metric="iteration")

    def step(self, iteration: int, row: Mapping[str, float]) -> None:
        """Add a point to the curves of iterations."""
        self._send("train", iteration, row)

    def epoch(self, iteration: int, row: Mapping[str, Any]) -> None:
        """Add a point to the curves of epochs."""
        self._send("epoch", iteration, row)

    def close(self) -> None:
        """End the run."""
        if self._run is not None:
            self._run.finish()
            self._run = None

    def _send(self, group: str, iteration: int, row: Mapping[str, Any]) -> None:
        columns = {
            f"{group}/{name}": value for name, value in row.items() if name not in ("epoch", "iteration")
        }
        self._run.log({"iteration": iteration, **columns})
