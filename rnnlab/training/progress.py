"""The display of a training run: nothing, lines as in cs231n's assignments, a bar, or a line per epoch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm

from rnnlab.training.epoch_totals import EpochTotals
from rnnlab.training.options import Options


class Progress:
    """Shows nothing. The base class of the other displays.

    Attributes
    ----------
    broken_pipe : BrokenPipeError or None
        The error of an output that its reader has closed.
    """

    broken_pipe: BrokenPipeError | None = None

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """Show that an iteration is done.

        Parameters
        ----------
        iteration : int
            Counted from 1.
        total : int
            The number of iterations of the run, as currently known.
        loss : float
        epoch : EpochTotals
            The sums over the iterations of the current epoch so far.
        """

    def epoch(self, epoch: int, num_epochs: int, totals: EpochTotals, metrics: Mapping[str, float]) -> None:
        """Show that an epoch, counted from 1, is done, with its sums and its validation metrics."""

    def message(self, text: str) -> None:
        """Show a message."""

    def close(self) -> None:
        """End the display."""


class Lines(Progress):
    """Prints the loss of every ``print_every``-th iteration as cs231n does, and each validation."""

    def __init__(self, print_every: int) -> None:
        self._print_every = print_every

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """Print a line at the first iteration and every ``print_every``-th after it."""
        if (iteration - 1) % self._print_every == 0:
            self.message(f"(Iteration {iteration} / {total}) loss: {loss:f}")

    def epoch(self, epoch: int, num_epochs: int, totals: EpochTotals, metrics: Mapping[str, float]) -> None:
        """Print the metrics, if there are any."""
        if metrics:
            self.message(f"(Epoch {epoch} / {num_epochs}) {_format(metrics)}")

    def message(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)


class Bar(Progress):
    """A progress bar with the smoothed loss, the epoch's loss per token, the speed and the time left.

    Each validation is a line above it.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file  # standard error if None
        self._bar: tqdm | None = None
        self._loss = 0.0

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """Move the bar. The first call opens it."""
        if self._bar is None:
            self._bar = tqdm(initial=iteration - 1, unit="it", dynamic_ncols=True, file=self._file)
            self._loss = loss
        self._loss += 0.05 * (loss - self._loss)
        self._bar.total = total
        losses = f"loss {self._loss:.3f}, {_format_totals(epoch)}"
        self._bar.set_postfix_str(losses, refresh=False)
        self._bar.update(iteration - self._bar.n)

    def epoch(self, epoch: int, num_epochs: int, totals: EpochTotals, metrics: Mapping[str, float]) -> None:
        """Print the metrics above the bar, if there are any."""
        if metrics:
            self.message(f"epoch {epoch} of {num_epochs}: {_format(metrics)}")

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        tqdm.write(text, file=self._file)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class EpochLines(Progress):
    """One line for each epoch with the numbers of :class:`Bar`, for files and pipes."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file  # standard error if None

    def epoch(self, epoch: int, num_epochs: int, totals: EpochTotals, metrics: Mapping[str, float]) -> None:
        """Print a line with the loss, the speed and the metrics."""
        parts = [f"epoch {epoch} of {num_epochs}: loss {_format_totals(totals)}"]
        self.message("  ".join([*parts, _format(metrics)] if metrics else parts))

    def message(self, text: str) -> None:
        """Print a line."""
        print(text, file=self._file or sys.stderr, flush=True)


class Tolerant(Progress):
    """Another display, until its output cannot be written, such as on a full disk; then nothing.

    Parameters
    ----------
    display : Progress
    stop : callable, optional
        Called with a reason, if the output is a pipe whose reader has closed it.

    Attributes
    ----------
    display : Progress
    """

    def __init__(self, display: Progress, stop: Callable[[str], None] | None = None) -> None:
        self.display, self._stop = display, stop

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """See :meth:`Progress.iteration`."""
        with self._until_an_error():
            self.display.iteration(iteration, total, loss, epoch)

    def epoch(self, epoch: int, num_epochs: int, totals: EpochTotals, metrics: Mapping[str, float]) -> None:
        """See :meth:`Progress.epoch`."""
        with self._until_an_error():
            self.display.epoch(epoch, num_epochs, totals, metrics)

    def message(self, text: str) -> None:
        """See :meth:`Progress.message`."""
        with self._until_an_error():
            self.display.message(text)

    def close(self) -> None:
        """See :meth:`Progress.close`."""
        with self._until_an_error():
            self.display.close()

    @contextmanager
    def _until_an_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.display = Progress()
            if isinstance(error, BrokenPipeError):
                self.broken_pipe = error
                if self._stop is not None:
                    self._stop("the reader of the output has closed it")


def make_progress(options: Options, stop: Callable[[str], None] | None = None) -> Progress:
    """The display that the options describe. A bar needs a terminal; elsewhere each epoch is a line.

    ``stop`` is that of :class:`Tolerant`.
    """
    if options.progress:
        return Tolerant(Bar() if sys.stderr.isatty() else EpochLines(), stop)
    return Tolerant(Lines(options.print_every), stop) if options.verbose else Progress()


def _format(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name}: {value:.4f}" for name, value in metrics.items())


def _format_totals(totals: EpochTotals) -> str:
    means = "".join(f"{name} {mean:.3f}, " for name, mean in totals.means.items())
    return f"{totals.loss_per_token:.3f} per token, {means}{totals.tokens_per_second:,.0f} tokens/s"
