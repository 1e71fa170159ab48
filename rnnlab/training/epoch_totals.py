"""What an epoch adds up to, kept so that it survives a resume in the middle."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EpochTotals:
    """Sums over the iterations of one epoch."""

    iterations: int = 0
    loss: float = 0.0
    loss_of_tokens: float = 0.0
    gradient_norm: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    def add(
        self, *, loss: float, averaged_over: int, gradient_norm: float, tokens: int, seconds: float
    ) -> None:
        """Add an iteration; its ``loss`` is a mean over so many examples or tokens."""
        self.iterations += 1
        self.loss += loss
        self.loss_of_tokens += loss * averaged_over
        self.gradient_norm += gradient_norm
        self.tokens += tokens
        self.seconds += seconds

    @property
    def loss_per_token(self) -> float:
        """The loss that compares with that of the validation."""
        return self.loss_of_tokens / max(1, self.tokens)

    @property
    def tokens_per_second(self) -> float:
        """The speed of training, validation left out."""
        return self.tokens / self.seconds if self.seconds else 0.0

    def row(self) -> dict[str, float]:
        """The epoch's columns of the history: means, and the speed."""
        return {
            "train_loss": self.loss / self.iterations,
            "train_loss_per_token": self.loss_per_token,
            "gradient_norm": self.gradient_norm / self.iterations,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
        }
