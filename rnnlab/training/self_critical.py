"""Self-critical sequence training: the policy gradient of a reward of sampled sentences (Rennie et al. 2017).

A sentence w is drawn from the model's distribution p, word by word, until <END> or ``max_length`` words. The
gradient of the expected reward E[r(w)] is the expectation of (r(w) - b) grad log p(w), where the baseline b
does not depend on w (REINFORCE, Williams 1992). So the loss of a sentence is

    -(r(w) - b) sum_t log p(w_t | w_1 .. w_{t-1}, source)

which is the teacher-forced loss of w times a weight. Its mean over the sentences of a batch is minimised.
The baseline b:

    "greedy"  is the reward of the greedily decoded sentence (Rennie et al. 2017, eq. 8)
    "mean"    is the mean reward of the other samples of the same source, which needs no greedy decoding and
              has a lower variance (Luo 2020; a leave-one-out mean, so that the estimate is not biased)

<END> is a token of the sentence. The probability of a sentence that is cut at ``max_length`` words has no
factor for <END>. No token is forbidden. By default sampling and the loss both run as in inference: nothing
is dropped, and zoneout takes its expectation. The gradient is then that of the distribution that the
sentences are drawn from.
``feature_dropout`` is applied to the inputs once, so that sampling, greedy decoding and the loss read the
same features. With ``dropout``, the loss uses the dropout of the model, and sampling uses none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from rnnlab.decoding import Hypothesis, greedy, sample
from rnnlab.decoding.token_rows import token_rows
from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers import dropout_forward
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.models.parts.combinations import has_dropout
from rnnlab.models.parts.losses import LOSSES, check_sampled_losses
from rnnlab.options import Count, Probability, as_plain, check_options
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.protocols import Rollout, check_interface, check_takes
from rnnlab.types import Array

Baseline: TypeAlias = Literal["mean", "greedy"]

# (sources (M,), tokens (M, T), lengths (M,)) -> rewards (M,). The tokens of a sentence end with <END>, unless
# it was cut.
Reward = Callable[[Array, Array, Array], Array]

_SAMPLED = ("start", "advance", "start_token", "end_token", "null_token")


class SelfCritical:
    """The objective of self-critical sequence training, for :class:`~rnnlab.training.Solver`.

    A batch of the training data is the model's inputs, N rows, and an array (N,) that identifies the sources
    for the reward. Losses that need no true sentences (ARNet, doubly stochastic attention) are added where
    their weights are not 0.

    Parameters
    ----------
    reward : callable
        From sources (M,), tokens (M, T) and lengths (M,) to rewards (M,), the larger the better. Tokens begin
        with the first word and end with <END>, unless the sentence was cut; the length counts <END>.
    samples : int
        Number of sentences that are sampled for each source.
    baseline : "mean" or "greedy"
        Subtracted from the reward: the mean reward of the source's other samples, or the reward of the
        greedily decoded sentence.
    max_length : int
        Maximum number of words in a sampled sentence; longer sentences are truncated.
    feature_dropout : float in [0, 1)
        Probability of dropping an element of the inputs' features. Sampling and the loss drop the same ones.
    dropout : bool
        Whether the loss has the model's own dropout and zoneout, which sampling never has. The estimate of
        the gradient is then biased, but training overfits less.

    Raises
    ------
    ValueError
        If an option is out of range, or ``baseline`` is "mean" and ``samples`` is 1.
    """

    def __init__(
        self,
        reward: Reward,
        *,
        samples: Count = 5,
        baseline: Baseline = "mean",
        max_length: Count = 20,
        feature_dropout: Probability = 0.0,
        dropout: bool = False,
    ) -> None:
        options = {
            "samples": samples,
            "baseline": baseline,
            "max_length": max_length,
            "feature_dropout": feature_dropout,
            "dropout": dropout,
        }
        check_options("SelfCritical", SelfCritical, options)
        self._config = as_plain(options)
        if not callable(reward):
            raise InputTypeError(f"SelfCritical: reward is {reward!r}, expected a function")
        check_baseline(baseline, samples)
        self.reward, self.samples, self.baseline, self.max_length = reward, samples, baseline, max_length
        self.feature_dropout, self.dropout = feature_dropout, dropout

    def config(self) -> dict[str, Any]:
        """The options by name."""
        return {"name": "self_critical", **self._config}

    def check(self, model: Any) -> None:
        """Check that a model generates sentences, and that its loss can weight them and needs no true ones.

        Raises
        ------
        TypeError
            If the model lacks a method or a token of decoding, or its ``loss`` lacks a keyword.
        ValueError
            If the model has a loss that needs true sentences, or ``dropout`` is true and the model has none.
        """
        check_interface("model", model, _SAMPLED, "SelfCritical")
        for keyword in ("sentence_weights", "sentence_lengths"):
            check_takes(model, keyword, "SelfCritical weights sampled sentences")
        weights = {name: getattr(model, name, 0) for name in LOSSES}
        check_sampled_losses("SelfCritical: the model's ", weights)
        # a subclass may have dropout of its own
        if self.dropout and type(model) in (CaptioningRNN, Seq2Seq) and not has_dropout(model.config()):
            raise InputError(
                f"SelfCritical: dropout is True, and this {type(model).__name__} has no dropout or zoneout, "
                "expected one that has"
            )

    def __call__(self, model: Any, batch: tuple[Any, ...], rng: np.random.Generator) -> Rollout:
        """Sample sentences from the model as it is now, and compute the weights of their losses.

        Parameters
        ----------
        model : EncoderDecoder
        batch : tuple
            The model's inputs, N rows, and sources (N,).
        rng : numpy Generator
            Draws the samples, and the features to drop.

        Returns
        -------
        Rollout
            ``samples`` sentences of each source, (N, samples, L).

        Raises
        ------
        NonFiniteError
            If a reward is not finite.
        ValueError
            If the batch is not inputs and an array (N,) of sources.
        TypeError
            If features are to be dropped and the inputs are not of float32 or float64.
        """
        if len(batch) != 2 or np.ndim(batch[1]) != 1:
            given = f"{len(batch)} entries" if len(batch) != 2 else f"sources of shape {np.shape(batch[1])}"
            raise InputError(
                f"SelfCritical: a batch has {given}, expected the model's inputs, N rows, and sources (N,), "
                "which the reward is given, as rnnlab.data.CaptionedImages has"
            )
        inputs, sources = self._dropped(batch[0], rng), batch[1]
        state = model.start(inputs)
        decoded, samples = _Started(model), self.samples
        drawn = sample(decoded, state, rng=rng, count=samples, max_length=self.max_length)
        tokens, lengths = self._rows(model, drawn)
        rewards = self._rewards(np.repeat(sources, samples), tokens, lengths).reshape(-1, samples)
        if self.baseline == "mean":
            baselines = (rewards.sum(axis=1, keepdims=True) - rewards) / (samples - 1)
        else:
            best = greedy(decoded, state, max_length=self.max_length)
            baselines = np.broadcast_to(
                self._rewards(sources, *self._rows(model, best))[:, None], rewards.shape
            )
        advantages = rewards - baselines
        start = np.full((len(tokens), 1), model.start_token)
        return Rollout(
            (inputs, np.hstack([start, tokens]).reshape(*rewards.shape, -1)),
            {"sentence_weights": advantages, "sentence_lengths": lengths.reshape(rewards.shape)},
            rewards.size,
            int(lengths.sum()),
            {
                "reward": float(rewards.mean()),
                "baseline_reward": float(baselines.mean()),
                "sampled_length": float(lengths.mean()),
            },
        )

    def _dropped(self, inputs: Any, rng: np.random.Generator) -> Any:
        """The inputs, with dropout."""
        if not self.feature_dropout:
            return inputs
        if isinstance(inputs, tuple):
            return tuple(self._dropped(each, rng) for each in inputs)
        return dropout_forward(inputs, self.feature_dropout, rng=rng)[0]

    def _rows(self, model: Any, found: Sequence[Sequence[Hypothesis]]) -> tuple[np.ndarray, np.ndarray]:
        """The tokens (M, T) and the lengths (M,) of all sentences of all sources.

        A sentence of ``max_length`` words is cut, so that its probability is that of its words.
        """
        return token_rows(model, [each for row in found for each in row], max_length=self.max_length)

    def _rewards(self, sources: Array, tokens: Array, lengths: Array) -> np.ndarray:
        # copies, so that a reward may write into them
        rewards = np.asarray(self.reward(sources.copy(), tokens.copy(), lengths.copy()), np.float64)
        if rewards.shape != (len(tokens),):
            raise InputError(
                f"SelfCritical: reward returned the shape {rewards.shape}, expected (M,) = {(len(tokens),)}"
            )
        if not np.isfinite(rewards).all():
            row = int(np.argmin(np.isfinite(rewards)))
            raise NonFiniteError(f"SelfCritical: the reward of source {sources[row]} is {rewards[row]}")
        return rewards


def check_baseline(baseline: str, samples: int) -> None:
    """Raise ValueError if there are too few samples for a baseline."""
    if baseline == "mean" and samples < 2:
        raise InputError(
            f"samples is {samples}, expected at least 2 with baseline 'mean', the mean of a source's other "
            "samples; baseline 'greedy' needs only 1"
        )


class _Started:
    """A model whose sources are encoded already: a search starts from their decoding state."""

    def __init__(self, model: Any) -> None:
        self.start_token, self.end_token, self.advance = model.start_token, model.end_token, model.advance

    def start(self, source: Any) -> Any:
        """The decoding state, which is the source here."""
        return source
