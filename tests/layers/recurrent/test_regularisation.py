"""Dropout and zoneout of a recurrence: what they do to the state, and gradients under fixed masks."""

import numpy as np
import pytest

from rnnlab.layers import Regularisation, attentive_forward, recurrent_backward, recurrent_forward
from rnnlab.layers.attention.decoder import attentive_backward, attentive_shapes
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.layers.recurrent.decoding import RecurrentStep

from ..reference import CELLS, assert_gradients, every_cell

RAGGED = np.array([2, 4, 0])
LSTM, SIMPLIFIED_GRU, RNN = CELLS[1], CELLS[3], CELLS[0]


def options_for(cell):
    """Every regularisation that a cell can have, alone and all together."""
    kinds = [
        {"zoneout_h": 0.3},
        {"recurrent_dropout": 0.4},
        {"weight_dropout": 0.4},
        {"zoneout_h": 0.3, "recurrent_dropout": 0.4, "weight_dropout": 0.2},
    ]
    if cell.name != "rnn":
        candidate = {"recurrent_dropout": 0.4, "recurrent_dropout_on": "candidate"}
        kinds += [candidate, candidate | {"zoneout_h": 0.3, "weight_dropout": 0.2}]
    if "c" in cell.states:
        kinds += [{"zoneout_c": 0.5}, {"zoneout_h": 0.2, "zoneout_c": 0.5, "recurrent_dropout": 0.3}]
    return [Regularisation(**kind) for kind in kinds]


EVERY = [
    pytest.param(
        cell,
        regularisation,
        id=f"{cell.name}-{','.join(f'{k}={v}' for k, v in regularisation._asdict().items() if v)}",
    )
    for cell in CELLS
    for regularisation in options_for(cell)
]
every_regularisation = pytest.mark.parametrize(("cell", "regularisation"), EVERY)


def run(cell, inputs, regularisation, *, seed=7, lengths=None):
    state = tuple(inputs[f"{name}0"] for name in cell.states)
    return recurrent_forward(
        inputs["x"],
        state,
        {name: inputs[name] for name in ("Wx", "Wh", "b")},
        cell=cell.name,
        regularisation=regularisation,
        rng=None if seed is None else np.random.default_rng(seed),
        lengths=lengths,
    )


def reorder(inputs, cell):
    """The order of the arguments, which is that of the gradients."""
    names = ["x", *(f"{name}0" for name in cell.states), "Wx", "Wh", "b"]
    return {name: inputs[name] for name in names}


@pytest.mark.one_in(2)
@every_regularisation
@pytest.mark.parametrize("seed", [7, None], ids=["training", "inference"])
@pytest.mark.parametrize("lengths", [None, RAGGED], ids=["full", "ragged"])
def test_gradients(cell, regularisation, seed, lengths, rng):
    def forward(**arrays):
        h, final, cache = run(cell, arrays, regularisation, seed=seed, lengths=lengths)
        return h, *final, cache

    def backward(dh, *rest):
        *dfinal, cache = rest
        dx, dstate, dparams = recurrent_backward(dh, cache, dfinal=tuple(dfinal))
        return dx, *dstate, *dparams.values()

    assert_gradients(forward, backward, reorder(cell.inputs(rng, D=2), cell), rng, directions=1)


@pytest.mark.one_in(2)
@every_regularisation
@pytest.mark.parametrize(("N", "T"), [(1, 1), (1, 3), (4, 1), (0, 2), (2, 0)])
def test_small_shapes(cell, regularisation, N, T, rng):
    inputs = cell.inputs(rng, N, T)
    h, final, cache = run(cell, inputs, regularisation)
    assert h.shape == (N, T, 5)
    dx, dstate, _ = recurrent_backward(np.ones_like(h), cache)
    assert dx.shape == inputs["x"].shape
    assert all(each.shape == (N, 5) for each in (*final, *dstate))


@every_cell
def test_unregularised_it_is_the_cell(cell, rng):
    inputs = cell.inputs(rng)
    h, final, cache = run(cell, inputs, Regularisation(), lengths=RAGGED)
    expected, *finals, own = cell.forward(**inputs, lengths=RAGGED, return_state=True)
    np.testing.assert_allclose(h, expected, rtol=1e-12)
    for found, wanted in zip(final, finals, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    dh = rng.standard_normal(h.shape)
    dx, _, dparams = recurrent_backward(dh, cache)
    found = (dx, *dparams.values())
    wanted = [cell.backward(dh, own)[k] for k in (0, 2, 3, 4)]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@every_cell
def test_dropout_does_nothing_in_inference(cell, rng):
    inputs = cell.inputs(rng)
    regularisation = Regularisation(recurrent_dropout=0.5, weight_dropout=0.5)
    np.testing.assert_array_equal(
        run(cell, inputs, regularisation, seed=None)[0], run(cell, inputs, Regularisation(), seed=None)[0]
    )


@every_regularisation
def test_draws_follow_from_the_seed(cell, regularisation, rng):
    inputs = cell.inputs(rng, N=5, H=20)
    first, again, other = (run(cell, inputs, regularisation, seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@every_cell
def test_zoneout_keeps_units_or_takes_the_cells(cell, rng):
    """Each unit is the one before or what the cell makes of the states before; the share is the rate."""
    N, T, H = 4, 6, 100
    inputs = cell.inputs(rng, N, T, 4, H)
    regularisation = Regularisation(zoneout_h=0.3, zoneout_c=0.6 if "c" in cell.states else 0.0)
    _, _, cache = run(cell, inputs, regularisation)
    states = [each.reshape(T + 1, N, H) for each in cache.states]
    kept = []
    for t in range(T):
        before = {f"prev_{name}": each[t] for name, each in zip(cell.states, states, strict=True)}
        fresh = cell.step_forward(inputs["x"][:, t], **before, **{k: inputs[k] for k in ("Wx", "Wh", "b")})
        for k, (each, made) in enumerate(zip(states, fresh, strict=False)):
            stays = each[t + 1] == each[t]
            np.testing.assert_allclose(each[t + 1][~stays], made[~stays], atol=1e-12)
            kept.append((k, stays.mean()))
    for k, rate in enumerate(regularisation.zoneout[: len(states)]):
        assert np.mean([share for which, share in kept if which == k]) == pytest.approx(rate, abs=0.03)


def test_zoneout_of_both_states_draws_twice(rng):
    inputs = LSTM.inputs(rng, 4, 1, 4, 200)
    _, _, cache = run(LSTM, inputs, Regularisation(zoneout_h=0.5, zoneout_c=0.5))
    stays = [each[4:] == each[:4] for each in cache.states]
    assert 0.4 < (stays[0] == stays[1]).mean() < 0.6


def test_the_state_has_one_mask_a_sequence(rng):
    """With an identity for Wh and no input, arctanh(h_t) is what the product read: m * h_{t-1}."""
    N, T, H = 3, 4, 200
    inputs = RNN.inputs(rng, N, T, 2, H)
    inputs |= {"Wx": np.zeros((2, H)), "Wh": np.eye(H), "b": np.zeros(H)}
    inputs["h0"] = np.full((N, H), 0.05)
    _, _, cache = run(RNN, inputs, Regularisation(recurrent_dropout=0.25))
    h = cache.states[0].reshape(T + 1, N, H)
    mask = np.arctanh(h[1]) / h[0]
    np.testing.assert_allclose(np.unique(mask.round(9)), [0, (1 / 0.75).__round__(9)])
    assert (mask == 0).mean() == pytest.approx(0.25, abs=0.05)
    assert not np.array_equal(mask[0], mask[1])
    for t in range(1, T):
        np.testing.assert_allclose(np.arctanh(h[t + 1]), mask * h[t], atol=1e-12)


def test_the_candidate_has_a_mask_a_step(rng):
    """With the update gate shut, h_t is m_t * g_t."""
    N, T, H = 3, 5, 200
    inputs = SIMPLIFIED_GRU.inputs(rng, N, T, 2, H)
    inputs["b"][:H] = -1000  # whose sigmoid is zero
    regularisation = Regularisation(recurrent_dropout=0.25, recurrent_dropout_on="candidate")
    _, _, cache = run(SIMPLIFIED_GRU, inputs, regularisation)
    h, g = cache.states[0].reshape(T + 1, N, H)[1:], cache.gates[:, H:].reshape(T, N, H)
    mask = h / g
    np.testing.assert_allclose(np.unique(mask.round(9)), [0, (1 / 0.75).__round__(9)])
    assert (mask == 0).mean() == pytest.approx(0.25, abs=0.03)
    assert not np.array_equal(mask[0], mask[1])


def test_weights_have_one_mask_a_batch(rng):
    N, T, H = 200, 2, 40
    inputs = RNN.inputs(rng, N, T, 2, H)
    inputs |= {"Wx": np.zeros((2, H)), "b": np.zeros(H), "h0": np.tile(np.eye(H), (N // H, 1))}
    h, _, _ = run(RNN, inputs, Regularisation(weight_dropout=0.25))
    used = np.arctanh(h[:, 0])
    mask = used[:H] / inputs["Wh"]
    np.testing.assert_allclose(np.unique(mask.round(9)), [0, (1 / 0.75).__round__(9)])
    np.testing.assert_allclose(used, np.tile(used[:H], (N // H, 1)), rtol=1e-12)
    np.testing.assert_allclose(np.arctanh(h[:, 1]), h[:, 0] @ used[:H], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_inference_is_zoneouts_expectation(rate, rng):
    inputs = LSTM.inputs(rng, 2, 1)
    regularisation = Regularisation(zoneout_h=rate, zoneout_c=rate / 2)
    _, final, _ = run(LSTM, inputs, regularisation, seed=None)
    draws = [run(LSTM, inputs, regularisation, seed=seed)[1] for seed in range(3000)]
    for k, expected in enumerate(final):
        np.testing.assert_allclose(np.mean([draw[k] for draw in draws], axis=0), expected, atol=0.06)
    step = RecurrentStep(cell_for("f", "lstm"), inputs, inputs["h0"], regularisation)
    for found, wanted in zip(step(inputs["x"][:, 0], (inputs["h0"], inputs["c0"])), final, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def attentive_inputs(cell, rng, *, target):
    shapes = attentive_shapes(
        cell.name, input_dim=6, hidden_dim=5, attention_dim=7, memory_dim=8, target=target
    )
    arrays = {"x": rng.standard_normal((3, 4, 6))}
    arrays |= {f"{name}0": rng.standard_normal((3, 5)) for name in cell.states}
    arrays["memory"] = rng.standard_normal((3, 2, 8))
    return arrays | {name: rng.standard_normal(shape) / 2 for name, shape in shapes.items()}


@pytest.mark.one_in(3)
@every_regularisation
def test_gradients_with_attention(cell, regularisation, rng):
    inputs = attentive_inputs(cell, rng, target=True)
    names = [name for name in inputs if name not in ("x", "h0", "c0", "memory")]

    def forward(**arrays):
        h, contexts, _, final, cache = attentive_forward(
            arrays["x"],
            tuple(arrays[f"{name}0"] for name in cell.states),
            arrays["memory"],
            {name: arrays[name] for name in names},
            cell=cell.name,
            target=True,
            lengths=RAGGED,
            regularisation=regularisation,
            rng=np.random.default_rng(3),
        )
        return h, contexts, *final, cache

    def backward(dh, dcontexts, *rest):
        *dfinal, cache = rest
        dx, dstate, dmemory, dparams = attentive_backward(dh, dcontexts, cache, dfinal=tuple(dfinal))
        return dx, *dstate, dmemory, *(dparams[name] for name in names)

    assert_gradients(forward, backward, inputs, rng, tolerance=1e-6, directions=1)


@pytest.mark.one_in(2)
@every_regularisation
def test_attention_that_adds_nothing_leaves_the_same_regularisation(cell, regularisation, rng):
    inputs = attentive_inputs(cell, rng, target=False)
    inputs["Wz"][...] = 0
    state = tuple(inputs[f"{name}0"] for name in cell.states)
    h, *_ = attentive_forward(
        inputs["x"],
        state,
        inputs["memory"],
        {name: inputs[name] for name in inputs if name not in ("x", "h0", "c0", "memory")},
        cell=cell.name,
        lengths=RAGGED,
        regularisation=regularisation,
        rng=np.random.default_rng(7),
    )
    np.testing.assert_allclose(h, run(cell, inputs, regularisation, lengths=RAGGED)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "cell", "message"),
    [
        ({"zoneout_h": 1.0}, "lstm", r"zoneout_h is 1.0, expected"),
        ({"recurrent_dropout": -0.1}, "gru", r"recurrent_dropout is -0.1, expected"),
        ({"weight_dropout": 2}, "gru", r"weight_dropout is 2, expected"),
        ({"zoneout_c": 0.1}, "gru", "zoneout_c is 0.1, but cell 'gru' has no cell state"),
        (
            {"recurrent_dropout": 0.1, "recurrent_dropout_on": "candidate"},
            "rnn",
            "recurrent_dropout_on is 'candidate', but cell 'rnn' has no candidate",
        ),
        (
            {"recurrent_dropout_on": "candidate", "zoneout_h": 0.1},
            "lstm",
            "recurrent_dropout_on is 'candidate', which needs a recurrent_dropout above 0",
        ),
        ({"recurrent_dropout_on": "input"}, "lstm", "recurrent_dropout_on is 'input', expected one of state"),
    ],
)
def test_regularisation_that_does_not_fit(options, cell, message):
    with pytest.raises(ValueError, match=message):
        Regularisation(**options).check("f", cell_for("f", cell))


def test_an_option_that_there_is_not():
    with pytest.raises(ValueError, match="f: regularisation has zoneout, expected zoneout_h, zoneout_c"):
        Regularisation.of("f", {"zoneout": 0.1})
    assert Regularisation.of("f", None) == Regularisation.of("f", {}) == Regularisation()


def test_a_seed_is_no_generator(rng):
    for seed in (0, 1):
        with pytest.raises(TypeError, match=f"recurrent_forward: rng is {seed}, expected a numpy Generator"):
            recurrent_forward(
                *(LSTM.inputs(rng)["x"], (np.zeros((3, 5)),) * 2),
                LSTM.weights(rng, 4, 5),
                cell="lstm",
                regularisation={"zoneout_h": 0.1},
                rng=seed,
            )


def test_gradients_of_as_many_states_as_there_are(rng):
    h, final, cache = run(LSTM, LSTM.inputs(rng), Regularisation(zoneout_h=0.1))
    with pytest.raises(ValueError, match="recurrent_backward: dfinal has 3 arrays, expected 2"):
        recurrent_backward(h, cache, dfinal=(*final, h))


@pytest.mark.parametrize("given", [0.1, "zoneout", [("zoneout_h", 0.1)]])
def test_what_is_no_mapping(given):
    with pytest.raises(TypeError, match="f: regularisation is .*, expected a mapping or a Regularisation"):
        Regularisation.of("f", given)
    same = Regularisation.of("f", Regularisation(zoneout_h=0.1))
    assert same == Regularisation.of("f", {"zoneout_h": 0.1})
