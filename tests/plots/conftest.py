from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def losses(rng):
    return 3 * np.exp(-np.arange(400) / 80) + 0.2 * rng.random(400)


@pytest.fixture
def history():
    """Three epochs of 100 iterations with 10, 10 and 8 tokens in an example."""
    return [
        {"epoch": epoch, "iteration": 100 * epoch, "train_loss": 3.0, "train_loss_per_token": 3.0 / tokens}
        for epoch, tokens in ((1, 10), (2, 10), (3, 8))
    ]
