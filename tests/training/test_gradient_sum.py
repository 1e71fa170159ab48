"""The sum of gradients in pieces: complete when they are sent, each number once, and the same sum."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.parameters import Parameters
from rnnlab.training import gradient_sum
from rnnlab.training.gradient_sum import GradientSum

from .ranks import on_ranks
from .trainings import (
    WORDS,
    arnet,
    assert_same,
    attentive,
    captioner,
    classifier,
    language,
    reviewer,
    sentence_pairs,
    trained,
    translator,
)


def lstm():
    _, data, _ = attentive()
    data.splits = {split: (features[:, 0], captions) for split, (features, captions) in data.splits.items()}
    return captioner(cell_type="lstm"), data, {}


def both_reconstructors():
    data = sentence_pairs()
    sizes = data.source_vocabulary.word_to_idx, data.vocabulary.word_to_idx, 3, 4
    options = {"reviewer": {"blocks": 1, "steps": 2}, "reconstruction": 0.3, "encoder_reconstruction": 0.2}
    return Seq2Seq(*sizes, dtype=np.float64, attention="dot", output="deep", rng=2, **options), data, {}


MODELS = [lstm, attentive, arnet, reviewer, both_reconstructors, translator, language, classifier]


@pytest.mark.parametrize("make", MODELS)
def test_what_a_model_calls_complete_is_complete(make):
    """No number changes after it, and nothing that the model has not begun is named."""
    model, data, _ = make()
    found = {}

    def remember(names):
        assert not found.keys() & set(names)
        found.update({name: grads[name].copy() for name in names})

    grads = model.params.zeros_like()
    grads.on_complete = remember
    rng = np.random.default_rng(3)
    model.loss(*data.batch("train", np.arange(6)), grads=grads, rng=rng)
    parts = (getattr(model, name, None) for name in ("output", "reconstructor", "decoder", "embedding"))
    names = [name for part in parts if part is not None for name in part.shapes()]
    assert set(found) == (set() if make is classifier else set(names))
    for name, complete in found.items():
        np.testing.assert_array_equal(complete, grads[name])
        assert complete.any(), name


@pytest.mark.parametrize("make", MODELS)
def test_the_sum_in_pieces_is_the_sum(make, monkeypatch):
    def steps(communicator):
        solver = trained(make, communicator, num_epochs=1, batch_size=18, accumulate=2)
        return solver, communicator.calls

    whole = on_ranks(3, steps)
    monkeypatch.setattr(gradient_sum, "_SMALLEST", 1)
    pieces = on_ranks(3, steps)
    for (one, calls), (other, more) in zip(whole, pieces, strict=True):
        assert calls.count("sum") == calls.count("end") == more.count("end") == one.iteration
        assert (more.count("sum") > calls.count("sum")) == (make is not classifier)
        np.testing.assert_array_equal(one.model.params.flat, other.model.params.flat)


def test_ranks_without_rows_begin_no_sum_early(monkeypatch):
    """Batches of 2 rows, and the last of one, on 3 ranks."""
    monkeypatch.setattr(gradient_sum, "_SMALLEST", 1)
    solvers = on_ranks(3, lambda communicator: trained(arnet, communicator, num_epochs=1, batch_size=2))
    assert_same(solvers[0], trained(arnet, num_epochs=1, batch_size=2, accumulate=3))


def test_a_loss_that_adds_to_the_gradient_afterwards(monkeypatch):
    """The penalty of a user's own model reaches the sum."""

    class Penalised(CaptioningRNN):
        def loss(self, *batch, **options):
            loss, grads = super().loss(*batch, **options)
            grads["W_vocab"] += 0.1 * self.params["W_vocab"] / 3
            return loss, grads

    def make():
        _, data, _ = attentive()
        return Penalised(WORDS, 4, 3, 4, attention="additive", dtype=np.float64, rng=2), data, {}

    monkeypatch.setattr(gradient_sum, "_SMALLEST", 1)
    solvers = on_ranks(3, lambda communicator: trained(make, communicator, num_epochs=1, batch_size=19))
    assert_same(solvers[0], trained(make, num_epochs=1, batch_size=19, accumulate=3))


class Noting:
    """A communicator of two ranks with the same gradient, which notes what is sent."""

    rank, size = 0, 2

    def __init__(self):
        self.sent = []

    def begin_sum(self, array):
        self.sent.append(array.size)
        array *= 2

    def end_sums(self):
        pass


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
@settings(max_examples=40)
def test_each_number_is_summed_once(sizes, data):
    grads = Parameters({str(index): (size,) for index, size in enumerate(sizes)})
    grads.flat[...] = numbers = np.arange(1, sum(sizes) + 1)
    noting = Noting()
    total = GradientSum(noting, grads)
    for _ in range(2):
        total.may_begin = data.draw(st.booleans())
        order = data.draw(st.permutations(list(grads)))
        cuts = sorted(data.draw(st.sets(st.integers(0, len(order)))))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gradient_sum, "_SMALLEST", data.draw(st.integers(1, 4)))
            for start, stop in pairwise(cuts):
                grads.complete(order[start:stop])
        total.end()
        np.testing.assert_array_equal(grads.flat, 2 * numbers)
        assert sum(noting.sent) == sum(sizes)
        grads.flat[...] = numbers
        noting.sent.clear()


def test_small_pieces_wait_for_the_rest():
    grads, noting = Parameters({"a": (10,), "W": (gradient_sum._SMALLEST,), "b": (10,)}), Noting()
    total = GradientSum(noting, grads)
    total.may_begin = True
    grads.complete(["a"])
    grads.complete(["W"])
    assert noting.sent == [gradient_sum._SMALLEST]
    total.end()
    assert noting.sent == [gradient_sum._SMALLEST, 10, 10]
