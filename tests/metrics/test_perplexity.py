import math

import pytest

from rnnlab.metrics import perplexity


def test_uniform_model_hesitates_between_all_words():
    assert perplexity(7 * math.log(50), 7) == pytest.approx(50)


def test_certain_model():
    assert perplexity(0.0, 3) == 1


def test_overflow_is_infinity():
    assert perplexity(1e6, 1) == math.inf


def test_nan_stays_nan():
    assert math.isnan(perplexity(math.nan, 1))


def test_no_tokens():
    with pytest.raises(ValueError, match="num_tokens is 0, expected at least 1"):
        perplexity(0.0, 0)
