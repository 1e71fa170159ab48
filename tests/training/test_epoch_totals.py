from __future__ import annotations

import pytest

from rnnlab.training.epoch_totals import EpochTotals


def test_means_over_iterations_and_tokens():
    totals = EpochTotals()
    assert (totals.loss_per_token, totals.tokens_per_second) == (0.0, 0.0)
    totals.add(loss=6.0, averaged_over=2, gradient_norm=1.0, tokens=4, seconds=0.5)  # 12 nats
    totals.add(loss=2.0, averaged_over=3, gradient_norm=3.0, tokens=8, seconds=1.5)  # 6 nats
    assert totals.row() == pytest.approx(
        {
            "train_loss": 4.0,
            "train_loss_per_token": 18 / 12,
            "gradient_norm": 2.0,
            "seconds": 2.0,
            "tokens_per_second": 6.0,
        }
    )


def test_what_an_objective_measures_is_a_mean_over_iterations():
    totals = EpochTotals()
    for reward in (0.5, 1.0):
        totals.add(
            loss=1.0, averaged_over=2, gradient_norm=1.0, tokens=4, seconds=0.5, measured={"reward": reward}
        )
    assert totals.means == {"reward": 0.75}
    assert totals.row()["reward"] == 0.75


@pytest.mark.parametrize("name", ["train_loss", "epoch"])
def test_a_term_with_the_name_of_another_column(name):
    """It is found in the first iteration, not at the end of the epoch."""
    sums = {"loss": 1.0, "averaged_over": 1, "gradient_norm": 1.0, "tokens": 1, "seconds": 1.0}
    with pytest.raises(ValueError, match=f"is named {name}, which is a column of the history"):
        EpochTotals().add(**sums, measured={name: 2.0})
