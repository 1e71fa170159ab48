"""What the solver shows while it works: nothing, the course's lines, or a progress bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from tqdm import tqdm

from rnnlab.training.epoch_totals import EpochTotals
from rnnlab.training.options import Options


class Progress:
    """Shows nothing, and says what the others are told."""

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """Note that an iteration, counted from 1, of a total as far as it is known, is done.

        ``epoch`` is what the epoch under way adds up to so far.
        """

    def epoch(self, epoch: int, num_epochs: int, metrics: Mapping[str, float]) -> None:
        """Note that an epoch, counted from 1, is done, and what its validation gave."""

    def message(self, text: str) -> None:
        """Say something."""

    def close(self) -> None:
        """End the display."""


class Lines(Progress):
    """Prints the loss of every ``print_every``-th iteration in the course's words, and each validation."""

    def __init__(self, print_every: int) -> None:
        self._print_every = print_every

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """Print a line at the first iteration and every ``print_every``-th after it."""
        if (iteration - 1) % self._print_every == 0:
            self.message(f"(Iteration {iteration} / {total}) loss: {loss:f}")

    def epoch(self, epoch: int, num_epochs: int, metrics: Mapping[str, float]) -> None:
        """Print the metrics, if there are any."""
        if metrics:
            self.message(f"(Epoch {epoch} / {num_epochs}) {_words(metrics)}")

    def message(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)


class Bar(Progress):
    """A bar with the smoothed loss, the epoch's loss per token, the speed and the time left.

    Keeps a line for each validation.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file  # standard error if None
        self._bar: tqdm | None = None
        self._loss = 0.0

    def iteration(self, iteration: int, total: int, loss: float, epoch: EpochTotals) -> None:
        """Move the bar, and open it if this is the first time."""
        if self._bar is None:
            self._bar = tqdm(initial=iteration - 1, unit="it", dynamic_ncols=True, file=self._file)
            self._loss = loss
        self._loss += 0.05 * (loss - self._loss)
        self._bar.total = total
        losses = f"loss {self._loss:.3f}, {epoch.loss_per_token:.3f} a token"
        self._bar.set_postfix_str(f"{losses}, {epoch.tokens_per_second:,.0f} tokens/s", refresh=False)
        self._bar.update(iteration - self._bar.n)

    def epoch(self, epoch: int, num_epochs: int, metrics: Mapping[str, float]) -> None:
        """Print the metrics above the bar, if there are any."""
        if metrics:
            self.message(f"epoch {epoch} of {num_epochs}: {_words(metrics)}")

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        tqdm.write(text, file=self._file)

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def make_progress(options: Options) -> Progress:
    """The display that the options ask for."""
    if options.progress:
        return Bar()
    return Lines(options.print_every) if options.verbose else Progress()


def _words(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name}: {value:.4f}" for name, value in metrics.items())
