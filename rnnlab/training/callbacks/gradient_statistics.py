"""Norms and histograms of the gradient of each parameter over the iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnnlab.ops import ops_for
from rnnlab.options import Count, check_options
from rnnlab.parameters import Parameters
from rnnlab.training.callbacks.callback import Callback, Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Powers of ten, four bins to each.
EDGES = np.linspace(-12, 4, 65)


class GradientStatistics(Callback):
    """Records the norm of the gradient of each parameter, and how its elements are distributed.

    The gradient is that of ``on_step``: not clipped by norm. At the end of training, a picture is written to
    gradients.png in the run directory, if there is one. A run that resumes begins new records, and so does
    each stage of a run.

    Parameters
    ----------
    every : int
        Record the first iteration, and every ``every``-th after it. On a GPU each record copies the gradient
        to the host.

    Attributes
    ----------
    iterations : list of int
        The iterations of the records.
    norms : dict of str to list of float
        The Euclidean norms, by parameter.
    histograms : dict of str to list of (B,) int arrays
        By parameter, the number of elements in each bin. Bins are intervals of the decimal logarithm of the
        absolute value, between two of :data:`EDGES`. The first bin also counts smaller elements and zeros,
        the last one larger elements.

    Raises
    ------
    ValueError
        If ``every`` is less than 1.
    """

    def __init__(self, *, every: Count = 10) -> None:
        check_options("GradientStatistics", GradientStatistics, {"every": every})
        self.every = every
        self.iterations: list[int] = []
        self.norms: dict[str, list[float]] = {}
        self.histograms: dict[str, list[np.ndarray]] = {}

    def on_start(self, solver: Training) -> None:
        """Begin new records."""
        self.iterations, self.norms, self.histograms = [], {}, {}

    def on_step(self, solver: Training, loss: Any, grads: Parameters) -> None:
        """Record every ``every``-th iteration."""
        if (solver.iteration - 1) % self.every:
            return
        self.iterations.append(solver.iteration)
        for name, gradient in grads.on(ops_for(grads.flat).asnumpy).items():
            magnitudes = np.abs(gradient.ravel().astype(np.float64))
            self.norms.setdefault(name, []).append(float(np.linalg.norm(magnitudes)))
            logarithms = np.log10(np.maximum(magnitudes, np.finfo(np.float64).tiny))
            bins = np.histogram(np.clip(logarithms, EDGES[0], EDGES[-1]), EDGES)[0]
            self.histograms.setdefault(name, []).append(bins)

    def on_end(self, solver: Training) -> None:
        """Write the picture."""
        if solver.run_dir is None or not self.iterations:
            return
        from rnnlab import plots  # importing matplotlib takes half a second

        plots.save(self.plot(), solver.run_dir / "gradients.png")

    def plot(self) -> Figure:
        """The records as a picture: :func:`rnnlab.plots.gradient_statistics`."""
        from rnnlab import plots

        return plots.gradient_statistics(self.iterations, self.norms, self.histograms, EDGES)
