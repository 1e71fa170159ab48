"""One training step: its options together, scheduled sampling passed to the model, and a step that fails."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.training.solver import Solver

from .trainings import ARNET, Captions, captioner


def quiet(model, data, **options):
    options = {"num_epochs": 2, "batch_size": 8, "optim_config": {"learning_rate": 0.05}, **options}
    return Solver(model, data, verbose=False, restore_best=False, **options)


def test_a_loss_without_its_gradient(model, data):
    model.loss = lambda *batch, rng=None, grads=None: 0.5
    with pytest.raises(TypeError, match="^LinearModel.loss returned a float, expected two results: loss, gr"):
        quiet(model, data).train()


@pytest.mark.parametrize("average", ["tokens", 3, None])
def test_what_the_loss_is_a_mean_over(model, data, average):
    model.loss_average = average
    with pytest.raises(
        ValueError, match="^LinearModel: loss_average is .*, expected one of 'batch', 'token'"
    ):
        quiet(model, data)


def test_parameters_that_are_a_dict(model, data):
    model.params = dict(model.params.items())
    with pytest.raises(TypeError, match="^Solver: model.params is a dict, expected"):
        quiet(model, data)


def test_the_probability_reaches_the_model_and_the_history(model, data):
    class Spy(type(model)):
        def loss(self, *batch, sampling, **options):
            seen.append(sampling)
            return super().loss(*batch, **options)

    seen = []
    schedule = {"name": "linear", "stop": 0.5, "over": 2}
    solver = quiet(Spy(), data, scheduled_sampling=schedule, num_epochs=4)
    solver.train()
    assert seen == [0.0] * 7 + [0.25] * 7 + [0.5] * 14
    assert [row["sampling"] for row in solver.history] == [0, 0.25, 0.5, 0.5]
    assert solver.options.scheduled_sampling == {"start": 0.0, "unit": "epochs", **schedule}


def test_in_iterations_the_history_has_the_last_one(model, data):
    class Spy(type(model)):
        def loss(self, *batch, sampling, **options):
            return super().loss(*batch, **options)

    schedule = {"name": "linear", "stop": 1.0, "over": 20, "unit": "iterations"}
    solver = quiet(Spy(), data, scheduled_sampling=schedule)
    solver.train()
    assert [row["sampling"] for row in solver.history] == pytest.approx([6 / 20, 13 / 20])


def test_a_model_without_sampling(model, data):
    schedule = {"name": "constant", "value": 0.5}
    with pytest.raises(
        TypeError, match="scheduled_sampling is given, but the loss of this LinearModel takes"
    ):
        quiet(model, data, scheduled_sampling=schedule)
    with pytest.raises(ValueError, match="scheduled_sampling constant: value is 2"):
        quiet(model, data, scheduled_sampling=schedule | {"value": 2})


def test_a_step_that_runs_out_of_memory_changes_nothing(model, data):
    """The error says what needs the memory; the same step succeeds afterwards."""

    class Full(type(model)):
        is_full = False

        def loss(self, *batch, rng, **options):
            rng.random()
            if self.is_full:
                raise MemoryError("no memory")
            return super().loss(*batch, rng=rng, **options)

    failing, plain = (quiet(Full(), data, num_epochs=1) for _ in range(2))
    failing.model.is_full = True
    drawn = failing._state.rng.bit_generator.state
    with pytest.raises(
        MemoryError, match="iteration 1: out of memory: no memory; .* smaller batch_size needs"
    ):
        failing.train()
    assert failing._state.rng.bit_generator.state == drawn
    assert failing._state.rule.steps == 0
    failing.model.is_full = False
    failing.train()
    plain.train()
    assert failing.loss_history == plain.loss_history
    np.testing.assert_array_equal(failing.model.params.flat, plain.model.params.flat)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_within_an_update_counts_nothing(error, model, data):
    """Its loss has been recorded; another call of train continues from the iteration before."""

    class Once:
        is_raised = False

        def __call__(self, iteration, epoch):
            if iteration == 3 and not self.is_raised:
                self.is_raised = True
                raise error
            return 1.0

    failing, plain = (
        quiet(type(model)(), data, num_epochs=2, schedule=each) for each in (Once(), lambda *_: 1.0)
    )
    with pytest.raises(error):
        failing.train()
    failing.train()
    plain.train()
    assert failing.loss_history == plain.loss_history
    np.testing.assert_array_equal(failing.model.params.flat, plain.model.params.flat)


def test_graphs_need_a_gpu(model, data):
    with pytest.raises(ValueError, match="graphs is true, but the model is on the CPU: .* with graphs=False"):
        quiet(model, data, graphs=True)
    assert quiet(model, data).options.graphs is None


class RecordedCaptions(Captions):
    """Captions that remember the batches of training."""

    def epoch(self, split, batch_size, rng):
        found = super().epoch(split, batch_size, rng)
        if split == "train":
            self.batches = found
        return found


def adam(dw, t, m, v):
    """Algorithm 1 of Kingma and Ba (2015), for a step size of 1."""
    m[...], v[...] = 0.9 * m + 0.1 * dw, 0.999 * v + 0.001 * dw**2
    return m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)


STEPS = {"sgd": lambda dw, t, m, v: dw, "adam": adam}


@pytest.mark.parametrize("rule", STEPS)
@pytest.mark.parametrize("loss_average", ["batch", "token"])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_all_options_of_an_update_together(rule, loss_average, accumulate):
    """Both clippings, decay, schedule, frozen parameters, parts of batches and average, as a loop."""
    data, options = RecordedCaptions(), {"attention": "dot", "loss_average": loss_average, **ARNET}
    model, own = captioner(**options), captioner(**options)
    Solver(
        model,
        data,
        update_rule=rule,
        optim_config={"learning_rate": 0.05},
        schedule={"name": "step", "every": 2, "unit": "iterations"},
        weight_decay={"W_vocab": 0.3, "W*": 0.1},
        trains=["!W_embed"],
        clip_value=0.05,
        clip_norm=0.2,
        ema_decay=0.2,
        accumulate=accumulate,
        num_epochs=1,
        batch_size=6,
        verbose=False,
    ).train()
    params, average = own.params, own.params.flat.copy()
    decays, (m, v) = params.zeros_like(), np.zeros((2, params.flat.size))
    for name, decay in {"W_vocab": 0.3, "Wx": 0.1, "Wh": 0.1, "W_proj": 0.1, "Wz": 0.1}.items():
        decays[name] = np.full(params[name].shape, decay)
    assert len(data.batches) == 4
    for t, indices in enumerate(data.batches, 1):
        _, grads = own.loss(*data.batch("train", indices))
        grads["W_embed"] = np.zeros(grads["W_embed"].shape)
        dw = np.clip(grads.flat, -0.05, 0.05)
        norm = np.linalg.norm(dw)
        assert abs(grads.flat).max() > 0.05
        assert norm > 0.2
        step = STEPS[rule](dw * 0.2 / norm, t, m, v)
        params.flat[...] -= 0.05 * 0.5 ** ((t - 1) // 2) * (decays.flat * params.flat + step)
        decay = min(0.2, t / (9 + t))
        average = decay * average + (1 - decay) * params.flat
    np.testing.assert_allclose(model.params.flat, average, rtol=1e-9, atol=1e-12)
