"""What an epoch adds up to, kept so that it survives a resume in the middle."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EpochTotals:
    """Sums over the iterations of one epoch."""

    iterations: int = 0
    loss: float = 0.0
    gradient_norm: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, *, loss: float, gradient_norm: float, tokens: int, seconds: float) -> None:
        """Add an iteration."""
        self.iterations += 1
        self.loss += loss
        self.gradient_norm += gradient_norm
        self.tokens += tokens
        self.seconds += seconds

    @property
    def tokens_per_second(self) -> float:
        """The speed of training, validation left out."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def row(self) -> dict[str, float]:
        """The epoch's columns of the history: means, and the speed."""
        return {
            "train_loss": self.loss / self.iterations,
            "gradient_norm": self.gradient_norm / self.iterations,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
        }
