"""Batches that continue each other: states from batch to batch, in parts, in validation, over a resume."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.data import RunningText
from rnnlab.decoding import Ensemble
from rnnlab.models import CaptioningRNN, LanguageModel
from rnnlab.training import Solver, carried_state, validation_loss
from rnnlab.training.carried_state import CarriedState, carries_state, joined
from rnnlab.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from rnnlab.training.distributed import ALONE

from .conftest import LinearData, LinearModel
from .trainings import OPTIONS, assert_same, captioner, running, trained

pytestmark = pytest.mark.usefixtures("no_pictures")


class Recording(LanguageModel):
    """Keeps the states that the loss gets, and those that it returns."""

    def loss(self, sentences, *, state=None, return_state=False, rng=None, grads=None, sampling=0.0):
        result = super().loss(
            sentences, state=state, return_state=return_state, rng=rng, grads=grads, sampling=sampling
        )
        copy = tuple(array.copy() for array in result[-1])
        self.__dict__.setdefault("seen", []).append((state, copy))
        return result


def recording():
    _, data, _ = running()
    return Recording(data.vocabulary.word_to_idx, 3, 4, dtype=np.float64, decoder_layers=2, rng=2), data


def test_each_batch_begins_where_the_one_before_ends():
    model, data = recording()
    Solver(model, data, **OPTIONS).train()
    assert len(data.epoch("train", 6)) * 2 == len(model.seen) > 8
    half = len(model.seen) // 2
    for number, (state, _) in enumerate(model.seen):
        if number in (0, half):
            assert state is None
        else:
            for one, other in zip(state, model.seen[number - 1][1], strict=True):
                np.testing.assert_array_equal(one, other)


def test_parts_carry_the_states_of_their_rows():
    assert_same(trained(without_noise, accumulate=4), trained(without_noise))
    assert_same(trained(without_noise, batch_size=3, accumulate=5), trained(without_noise, batch_size=3))


def without_noise():
    model, data, _ = running()
    options = {"decoder_layers": 2, "reconstruction": 0.3, "dtype": np.float64}
    return LanguageModel(model.word_to_idx, 3, 4, rng=2, **options), data, {}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_nothing_is_updated_where_the_state_cannot_be_joined(monkeypatch, error):
    def fails(parts):
        raise error

    model, data, sampling = running()
    solver = Solver(model, data, **OPTIONS | sampling | {"accumulate": 3})
    step_once(solver)
    expected, before = solver._state.carried.arrays, model.params.flat.copy()
    with monkeypatch.context() as patch:
        patch.setattr(carried_state, "_joined", fails)
        with pytest.raises(error):
            solver.train()
    assert solver.iteration == 1
    assert solver._state.carried.arrays is expected
    np.testing.assert_array_equal(model.params.flat, before)
    solver.train()
    assert_same(solver, trained(running, accumulate=3))


def test_a_learned_text_needs_the_state():
    """The word after ``a`` depends on the one before, which may be in the window before."""
    line = ["b", "a", "c", "a"] * 48

    def perplexity(window, carries):
        data = RunningText({"train": [line] * 8, "val": [line]}, window=window, tokenizer="spaces")
        data.carries_state = carries
        model = LanguageModel(data.vocabulary.word_to_idx, 8, 16, "gru", rng=0)
        options = {"batch_size": 8, "num_epochs": 12, "optim_config": {"learning_rate": 0.03}}
        Solver(model, data, verbose=False, **options).train()
        return validation_loss(model, data, 1)["val_perplexity"]

    assert perplexity(3, carries=True) < 0.8 * perplexity(3, carries=False)


# ---------------------------------------------------------------- validation


@pytest.mark.parametrize("batch_size", [1, 4, 50])
def test_validation_is_that_of_whole_streams(batch_size):
    model, data, _ = running()
    nats, tokens = model.nll(data.streams("val", batch_size))
    assert tokens == len(data.split("val"))
    found = validation_loss(model, data, batch_size)
    assert found["val_loss"] == pytest.approx(nats / tokens, rel=1e-12)


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_run_resumes_within_an_epoch_to_the_bit(tmp_path, accumulate):
    def solver(directory, **changes):
        model, data, sampling = running()
        options = OPTIONS | sampling | {"accumulate": accumulate, "run_dir": directory} | changes
        return Solver(model, data, **options)

    whole = solver(tmp_path / "whole")
    whole.train()
    parts = solver(tmp_path / "parts", checkpoint_every=1)
    per_epoch = len(parts.data.epoch("train", 6))

    for stop in (1, per_epoch - 1, per_epoch, per_epoch + 2):
        while parts.iteration < stop:
            step_once(parts)
        model, data, _ = running()
        parts = Solver.resume(tmp_path / "parts", model, data)
    saved = load_checkpoint(tmp_path / "parts" / "last.h5")
    assert [array.shape for array in saved.state] == [(6, 4)] * 4
    parts.train()
    assert parts.loss_history == whole.loss_history
    np.testing.assert_array_equal(parts.model.params.flat, whole.model.params.flat)


def test_the_number_of_parts_may_change_within_an_epoch(tmp_path):
    model, data, _ = without_noise()
    begun = Solver(model, data, run_dir=tmp_path, checkpoint_every=1, **OPTIONS)
    step_once(begun)
    step_once(begun)
    resumed = Solver.resume(tmp_path, without_noise()[0], data, accumulate=3)
    resumed.train()
    assert_same(resumed, trained(without_noise))


def step_once(solver):
    """Train for one iteration."""
    original = solver._is_to_stop
    solver._is_to_stop = lambda interrupt: solver.iteration > before or original(interrupt)
    before = solver.iteration
    try:
        solver.train()
    finally:
        solver._is_to_stop = original


def test_a_checkpoint_within_an_epoch_needs_the_state(tmp_path):
    model, data, _ = running()
    solver = Solver(model, data, run_dir=tmp_path, checkpoint_every=1, **OPTIONS)
    step_once(solver)
    saved = load_checkpoint(tmp_path / "last.h5")
    saved.state = ()
    save_checkpoint(tmp_path / "last.h5", saved)
    with pytest.raises(CheckpointError, match=r"last\.h5: state: found nothing, expected the state at"):
        Solver.resume(tmp_path, running()[0], data)


def test_other_data_have_no_state(tmp_path):
    solver = Solver(LinearModel(), LinearData(), num_epochs=1, run_dir=tmp_path, verbose=False)
    solver.train()
    assert load_checkpoint(tmp_path / "last.h5").state == ()
    assert solver._state.carried is None
    assert not carries_state(LinearData())


def test_rows_of_parts_are_joined():
    carried = CarriedState()
    assert carried.of(slice(1, 3)) is None
    one, other = np.arange(6.0).reshape(3, 2), 9 + np.arange(4.0).reshape(2, 2)
    carried.arrays = joined([(one, -one), (other, -other)], ALONE)
    np.testing.assert_array_equal(carried.arrays[0], [[0, 1], [2, 3], [4, 5], [9, 10], [11, 12]])
    np.testing.assert_array_equal(carried.of(slice(2, 4))[1], [[-4, -5], [-9, -10]])
    carried.begin_epoch()
    assert carried.arrays is None


# ---------------------------------------------------------------- errors


def test_a_model_must_take_the_state():
    _, data, _ = running()

    class Own(LinearModel):
        pass

    with pytest.raises(TypeError, match="batches of the data continue each other, but the loss of this Own"):
        Solver(Own(), data, **OPTIONS)
    captioning = captioner()
    captioning.word_to_idx = data.vocabulary.word_to_idx
    assert isinstance(captioning, CaptioningRNN)
    with pytest.raises(TypeError, match="the loss of this CaptioningRNN takes no state"):
        Solver(captioning, data, **OPTIONS)
    ensemble = Ensemble([LanguageModel(data.vocabulary.word_to_idx, 3, 4)] * 2)
    with pytest.raises(TypeError, match="data continue each other, but the nll of this Ensemble takes no st"):
        validation_loss(ensemble, data, 6)


def test_a_model_must_take_the_state_in_validation():
    _, data, _ = running()

    class Own(LanguageModel):
        def nll(self, sentences):
            return super().nll(sentences)

    model = Own(data.vocabulary.word_to_idx, 3, 4)
    with pytest.raises(TypeError, match="continue each other, but the nll of this Own takes no state"):
        Solver(model, data, **OPTIONS)
    Solver(model, data, evaluate=lambda model: {"val_loss": 0.0}, **OPTIONS)


def test_a_model_must_return_the_state():
    _, data, _ = running()

    class Forgetful(LanguageModel):
        def loss(self, sentences, *, state=None, return_state=False, rng=None, grads=None):
            return super().loss(sentences, state=state, rng=rng, grads=grads)

    model = Forgetful(data.vocabulary.word_to_idx, 3, 4)
    with pytest.raises(TypeError, match="Forgetful.loss returned .*, expected three results: loss, grads"):
        Solver(model, data, **OPTIONS).train()


def test_batches_of_different_sizes_do_not_continue_each_other():
    model, data, _ = running()
    whole = data.epoch
    data.epoch = lambda *arguments: [*whole(*arguments)[:-1], whole(*arguments)[-1][:4]]
    with pytest.raises(ValueError, match="epoch returned batches of 4 and of 6 rows, expected equally many"):
        Solver(model, data, **OPTIONS).train()
    data.carries_state = False
    Solver(model, data, **OPTIONS | {"num_epochs": 1}).train()


def test_no_objective_and_no_graphs(simulated):
    model, data, _ = running()

    class Objective:
        dropout = False

        def check(self, model):
            """Any model."""

        def config(self):
            return {}

        def __call__(self, model, batch, rng):
            raise AssertionError

    with pytest.raises(ValueError, match="objective is given, expected none: the batches of the data"):
        Solver(model, data, objective=Objective(), **OPTIONS)
    with pytest.raises(ValueError, match="graphs is true, but the batches of the data continue each other"):
        Solver(model, data, device="gpu", graphs=True, **OPTIONS)


@pytest.mark.slow
def test_a_gpu_trains_as_a_cpu(simulated):
    on_gpu = trained(running, device="gpu")
    assert not on_gpu._update.graphs
    on_gpu.model.to("cpu")
    assert_same(on_gpu, trained(running))
