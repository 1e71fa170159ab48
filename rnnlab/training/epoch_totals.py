"""Sums over the iterations of an epoch, saved so that a run can resume within the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rnnlab.errors import InputError

# columns with an option's previous value, after a run has resumed with another one
FORMER: Mapping[str, type] = {"former_learning_rate": float, "former_matmul": str}

# columns of the history that are not means over the epoch
RESERVED = ("epoch", "iteration", "learning_rate", "sampling", *FORMER)


def check_column_names(what: str, names: Iterable[str], columns: Iterable[str]) -> None:
    """Raise ValueError if ``what`` has the name of a reserved column, or of one of these columns."""
    if taken := next((name for name in names if name in (*columns, *RESERVED)), None):
        raise InputError(f"{what} named {taken}, which is a column of the history: choose another name")


@dataclass
class EpochTotals:
    """Sums over the iterations of one epoch."""

    iterations: int = 0
    loss: float = 0.0
    loss_of_tokens: float = 0.0
    gradient_norm: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    # Sums of the measurements of an objective and of the terms of the loss.
    sums: dict[str, float] = field(default_factory=dict)

    def add(
        self,
        *,
        loss: float,
        averaged_over: int,
        gradient_norm: float,
        tokens: int,
        seconds: float,
        measured: Mapping[str, float] | None = None,
    ) -> None:
        """Add an iteration, whose ``loss`` is a mean over ``averaged_over`` examples or tokens.

        ``measured`` are numbers of the iteration by name, such as its mean reward or a term of the loss.

        Raises
        ------
        ValueError
            If one of them has the name of another column.
        """
        self.iterations += 1
        self.loss += loss
        self.loss_of_tokens += loss * averaged_over
        self.gradient_norm += gradient_norm
        self.tokens += tokens
        self.seconds += seconds
        for name, value in (measured or {}).items():
            if name not in self.sums:
                what = "a term of the loss, or what the objective measures, is"
                check_column_names(what, [name], self._own_columns())
            self.sums[name] = self.sums.get(name, 0.0) + value

    @property
    def means(self) -> dict[str, float]:
        """Means over the iterations of the measurements of an objective and of the terms of the loss."""
        return {name: total / self.iterations for name, total in self.sums.items()}

    @property
    def loss_per_token(self) -> float:
        """The mean loss per token, in the unit of the validation loss."""
        return self.loss_of_tokens / max(1, self.tokens)

    @property
    def tokens_per_second(self) -> float:
        """The speed of training, without validation."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def row(self) -> dict[str, float]:
        """The epoch's columns of the history: means over the iterations, and the speed."""
        return self._own_columns() | self.means

    def _own_columns(self) -> dict[str, float]:
        return {
            "train_loss": self.loss / self.iterations,
            "train_loss_per_token": self.loss_per_token,
            "gradient_norm": self.gradient_norm / self.iterations,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
        }
