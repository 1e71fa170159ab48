"""SequenceClassifier: gradients, what must hold for any batch, PyTorch, options and errors."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.gradcheck import check_model, projected_check
from rnnlab.gradcheck.cases import CELLS
from rnnlab.layers import reversed_in_time
from rnnlab.models import SequenceClassifier
from rnnlab.models.classification import READOUTS
from rnnlab.training import (
    Checkpoint,
    CheckpointError,
    Solver,
    load_model,
    load_parameters,
    save_checkpoint,
)
from rnnlab.training.checkpoint import describe_model

N, T, D, H, C = 4, 5, 2, 3, 3
LENGTHS = np.array([T, 2, 0, 1])

OPTIONS = [
    {"cell_type": cell, "readout": readout, "num_layers": layers}
    for cell, readout, layers in product(CELLS, READOUTS, (1, 2))
]
OPTIONS += [
    {"cell_type": "lstm", "reconstruction": 0.3, "reconstructor_dim": 4},
    {"cell_type": "gru", "reconstruction": 0.3, "readout": "mean", "num_layers": 2},
    {"cell_type": "gru", "label_smoothing": 0.2},
    {"cell_type": "lstm", "regularisation": {"zoneout_h": 0.2, "zoneout_c": 0.4}},
    {
        "cell_type": "simplified_gru",
        "num_layers": 2,
        "reconstruction": 0.2,
        "regularisation": {"recurrent_dropout": 0.3, "recurrent_dropout_on": "candidate"},
    },
    {"cell_type": "rnn", "regularisation": {"recurrent_dropout": 0.3, "weight_dropout": 0.2}},
]
OPTIONS += [
    {"cell_type": cell, "readout": readout, "bidirectional": True}
    for cell, readout in product(CELLS, READOUTS)
]
OPTIONS += [
    {"cell_type": "gru", "bidirectional": True, "num_layers": 2, "layer_dropout": 0.3},
    {"cell_type": "lstm", "bidirectional": True, "reconstruction": 0.3, "reconstructor_dim": 2},
    {
        "cell_type": "rnn",
        "bidirectional": True,
        "num_layers": 2,
        "readout": "mean",
        "reconstruction": 0.2,
        "regularisation": {"zoneout_h": 0.3},
    },
]
every_model = pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(map(str, options.values()))
)
ragged_or_full = pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])


def build(**options):
    model = SequenceClassifier(C, D, H, **{"dtype": np.float64} | options)
    # biases too, which would start at zero, so that a wrong one shows
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def batch(rng, rows=N, steps=T):
    return rng.standard_normal((rows, steps, D)), rng.integers(0, C, rows)


# ---------------------------------------------------------------- gradients


@pytest.mark.slow
@every_model
@ragged_or_full
def test_every_parameter(options, lengths, rng):
    model = build(**options, output_dropout=0.4)
    for row in check_model(model, (*batch(rng), lengths), seed=3, verbose=False):
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row  # relative, or absolute where tiny
        assert row.grad_norm > 1e-6, f"{row.name} has no gradient: a vacuous check"


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize(("rows", "steps"), [(1, 1), (1, T), (N, 1)])
def test_a_batch_of_one_and_a_length_of_one(cell, readout, rows, steps, rng):
    model, given = build(cell_type=cell, readout=readout), batch(rng, rows, steps)
    _, grads = model.loss(*given)
    error = projected_check(lambda: model.loss(*given)[0], model.params.flat, grads.flat, rng=rng)
    assert error < 1e-7


def test_gradients_are_written_over_what_was_there(rng):
    model, given = build(), batch(rng)
    _, expected = model.loss(*given)
    grads = model.params.zeros_like()
    grads.flat[...] = 7
    _, found = model.loss(*given, grads=grads)
    assert found is grads
    np.testing.assert_array_equal(found.flat, expected.flat)


def test_an_empty_batch(rng):
    loss, grads = build().loss(*batch(rng, 0))
    assert loss == 0
    assert not grads.flat.any()
    assert build().nll(*batch(rng, 0)) == (0, 0)
    assert build().predict(batch(rng, 0)[0]).shape == (0,)


@pytest.mark.parametrize("readout", READOUTS)
def test_sequences_without_steps_are_read_as_zeros(readout, rng):
    model, (x, labels) = build(readout=readout), batch(rng)
    nothing = np.zeros(N, int)
    np.testing.assert_allclose(model.scores(x, nothing), np.tile(model.params["b_class"], (N, 1)))
    _, grads = model.loss(x, labels, nothing)
    assert grads["b_class"].any()
    assert not any(grad.any() for name, grad in grads.items() if name != "b_class")


# ---------------------------------------------------------------- any batch


@st.composite
def ragged_batches(draw, models=tuple(OPTIONS)):
    options = draw(st.sampled_from(models))
    rows, steps = draw(st.tuples(st.integers(1, 4), st.integers(1, 5)))
    lengths = np.array(draw(st.lists(st.integers(0, steps), min_size=rows, max_size=rows)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return build(**options), *batch(rng, rows, steps), lengths, rng


@given(ragged_batches())
@settings(max_examples=30)
def test_gradients_along_a_random_direction(drawn):
    model, x, labels, lengths, rng = drawn
    _, grads = model.loss(x, labels, lengths)
    error = projected_check(lambda: model.loss(x, labels, lengths)[0], model.params.flat, grads.flat, rng=rng)
    assert error < 1e-7


@given(ragged_batches(), st.integers(1, 3))
@settings(max_examples=20)
def test_padding_and_order_change_nothing(drawn, extra):
    model, x, labels, lengths, rng = drawn
    loss, grads = model.loss(x, labels, lengths)
    padded = np.concatenate([x, np.full((len(x), extra, D), np.nan)], axis=1)
    order = rng.permutation(len(x))
    other, permuted = model.loss(padded[order], labels[order], lengths[order])
    assert other == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(permuted.flat, grads.flat, rtol=1e-9, atol=1e-12)


@given(ragged_batches())
@settings(max_examples=15)
def test_a_batch_is_its_sequences_one_at_a_time(drawn):
    model, x, labels, lengths, _ = drawn
    loss, grads = model.loss(x, labels, lengths)
    alone = [
        model.loss(x[n : n + 1, : max(length, 1)], labels[n : n + 1], lengths[n : n + 1])
        for n, length in enumerate(lengths)
    ]
    assert np.mean([one for one, _ in alone]) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(
        np.mean([grad.flat for _, grad in alone], axis=0), grads.flat, rtol=1e-9, atol=1e-12
    )


WITHOUT_OTHER_TERMS = [each for each in OPTIONS if not {"label_smoothing", "reconstruction"} & set(each)]


@given(ragged_batches(WITHOUT_OTHER_TERMS))
@settings(max_examples=15)
def test_likelihood_scores_and_predictions_agree(drawn):
    model, x, labels, lengths, _ = drawn
    scores = model.scores(x, lengths)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    total, sequences = model.nll(x, labels, lengths)
    assert sequences == len(x)
    assert total == pytest.approx(-np.log(p[np.arange(len(x)), labels]).sum())
    assert model.loss(x, labels, lengths)[0] == pytest.approx(total / sequences)
    np.testing.assert_array_equal(model.predict(x, lengths), p.argmax(axis=1))


@given(ragged_batches())
@settings(max_examples=15)
def test_the_last_hidden_states_give_the_scores(drawn):
    model, x, _, lengths, _ = drawn
    hidden, ends = model.hidden_states(x, lengths), np.asarray(lengths)
    assert hidden.shape[:2] == x.shape[:2]
    last = hidden[np.arange(len(x)), ends - 1]
    np.testing.assert_array_equal(hidden[:, -1, :H], last[:, :H])
    if model.readout == "last":
        last = np.concatenate([last[:, :H], np.where(ends[:, None] > 0, hidden[:, 0, H:], 0)], axis=1)
        scores = last @ model.params["W_class"] + model.params["b_class"]
        np.testing.assert_allclose(model.scores(x, lengths), scores)


def test_two_directions_are_two_models(rng):
    """With equal parameters, a reversed sequence has the states of the other direction."""
    model, (x, _) = build(bidirectional=True, cell_type="gru"), batch(rng)
    for name in ("Wx", "Wh", "b"):
        model.params[f"backward_{name}"] = model.params[f"forward_{name}"]
    hidden = model.hidden_states(x, LENGTHS)
    opposite = model.hidden_states(reversed_in_time(x, LENGTHS), LENGTHS)
    real = np.arange(T) < LENGTHS[:, None]
    np.testing.assert_allclose(reversed_in_time(opposite, LENGTHS)[real][:, :H], hidden[real][:, H:])
    alone = SequenceClassifier(C, D, H, "gru", np.float64)
    for name in ("Wx", "Wh", "b"):
        alone.params[name] = model.params[f"forward_{name}"]
    np.testing.assert_array_equal(alone.hidden_states(x, LENGTHS), hidden[:, :, :H])


@pytest.mark.one_in(3)
@every_model
def test_the_mean_of_one_state_is_the_last(options, rng):
    x, _ = batch(rng)
    ones = np.ones(N, int)
    last, mean = (build(**options | {"readout": readout}).scores(x, ones) for readout in READOUTS)
    np.testing.assert_allclose(last, mean, rtol=1e-14)


# ---------------------------------------------------------------- PyTorch


@pytest.mark.one_in(2)
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True], ids=["forward", "both directions"])
@pytest.mark.parametrize("lengths", [None, np.array([T, 2, 3, 1])], ids=["full", "ragged"])
def test_an_lstm_in_pytorch(readout, layers, both, lengths, rng):
    torch = pytest.importorskip("torch")
    model, (x, labels) = build(readout=readout, num_layers=layers, bidirectional=both), batch(rng)
    loss, grads = model.loss(x, labels, lengths)

    def theirs(array):  # i, f, o, g to i, f, g, o
        i, f, o, g = np.split(array, 4, axis=-1)
        return torch.tensor(np.concatenate([i, f, g, o], axis=-1).T)

    names = {  # of the parameters: theirs -> ours
        f"{kind}_l{k}" + "_reverse" * backward: f"layer{k + 1}_" * (layers > 1)
        + ("backward_" if backward else "forward_") * both
        + name
        for k, backward in product(range(layers), (False, True)[: 1 + both])
        for name, kind in (("Wx", "weight_ih"), ("Wh", "weight_hh"), ("b", "bias_ih"))
    }
    lstm = torch.nn.LSTM(D, H, num_layers=layers, batch_first=True, bidirectional=both).double()
    for name, weight in lstm.named_parameters():
        weight.data = theirs(model.params[names[name]]) if name in names else torch.zeros_like(weight)
    output = torch.nn.Linear(H * (1 + both), C).double()
    output.weight.data, output.bias.data = (torch.tensor(model.params[n].T) for n in ("W_class", "b_class"))
    real = torch.tensor(np.full(N, T) if lengths is None else lengths)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x), real, True, enforce_sorted=False)
    h, (final, _) = lstm(packed)
    h, _ = torch.nn.utils.rnn.pad_packed_sequence(h, batch_first=True)
    last = torch.cat([*final[-(1 + both) :]], dim=1)
    read = last if readout == "last" else h.sum(dim=1) / real[:, None]
    expected = torch.nn.functional.cross_entropy(output(read), torch.tensor(labels))
    expected.backward()

    assert loss == pytest.approx(expected.item(), rel=1e-12)
    for name, ours in names.items():
        expected_grad = getattr(lstm, name).grad
        np.testing.assert_allclose(theirs(grads[ours]), expected_grad, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(grads["W_class"].T, output.weight.grad, rtol=1e-9)
    np.testing.assert_allclose(grads["b_class"], output.bias.grad, rtol=1e-9)


# ---------------------------------------------------------------- learning, configuration, errors


class Counting:
    """Is the mark in the first half of the sequence or in the second? Batches of three arrays."""

    in_memory = True

    def __init__(self, rng):
        self.splits, self.lengths = {"train": None, "val": None}, rng.integers(4, 11, 400)
        self.places = rng.integers(0, self.lengths)
        self.x = np.zeros((400, 10, 1), np.float32)
        self.x[np.arange(400), self.places] = 1

    def epoch(self, split, batch_size, rng):
        rows = np.arange(300) if split == "train" else np.arange(300, 400)
        return np.array_split(rows if rng is None else rng.permutation(rows), len(rows) // batch_size)

    def batch(self, split, rows):
        return self.x[rows], (2 * self.places[rows] >= self.lengths[rows]).astype(int), self.lengths[rows]

    @staticmethod
    def num_tokens(given):
        return len(given[1])


@pytest.mark.slow
def test_the_solver_trains_it_on_ragged_sequences(rng):
    data, model = Counting(rng), SequenceClassifier(2, 1, 16, "gru")
    solver = Solver(
        model, data, num_epochs=25, batch_size=20, optim_config={"learning_rate": 2e-2}, verbose=False
    )
    solver.train()
    x, labels, lengths = data.batch("val", data.epoch("val", 100, None)[0])
    assert np.mean(model.predict(x, lengths) == labels) > 0.9
    row = solver.history[-1]
    assert row["train_loss_per_token"] == pytest.approx(row["train_loss"], rel=0.05)  # a label is a token


def test_float32_is_float64_in_short(rng):
    x, labels = batch(rng)
    single, double = (build(dtype=dtype) for dtype in (np.float32, np.float64))
    (loss, grads), (expected, expected_grads) = (model.loss(x, labels) for model in (single, double))
    assert single.scores(x).dtype == grads.dtype == np.float32
    assert loss == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(grads.flat, expected_grads.flat, rtol=1e-3, atol=1e-6)


def test_dropout_needs_a_generator_and_is_its_own(rng):
    model, given = build(output_dropout=0.5), batch(rng)
    assert model.loss(*given)[0] == build().loss(*given)[0] == pytest.approx(model.nll(*given)[0] / N)
    losses = [model.loss(*given, rng=np.random.default_rng(seed))[0] for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]


def test_where_forget_gates_start():
    params = SequenceClassifier(C, D, H, num_layers=2, forget_bias=1.5).params
    for name in ("layer1_b", "layer2_b"):
        np.testing.assert_array_equal(params[name], np.repeat([0, 1.5, 0, 0], H))


def test_initial_parameters_follow_the_options():
    uniform = SequenceClassifier(C, D, 40, initialisation="uniform", init_scale=0.3, rng=4)
    assert 0.25 < np.abs(uniform.params["Wh"]).max() <= 0.3
    again = SequenceClassifier(C, D, 40, initialisation="uniform", init_scale=0.3, rng=4)
    np.testing.assert_array_equal(uniform.params.flat, again.params.flat)
    assert not uniform.params["b_class"].any()


@every_model
def test_a_model_from_its_configuration(options):
    model = build(**options, output_dropout=0.1)
    again = SequenceClassifier.from_config(model.config())
    assert again.params.shapes == model.params.shapes
    assert again.config() == model.config()
    assert again.dtype == np.float64
    assert repr(model).startswith("SequenceClassifier(num_classes=3, input_dim=2, hidden_dim=3, cell_type=")


def test_a_checkpoint_brings_it_back(tmp_path, rng):
    model, (x, _) = build(cell_type="gru", readout="mean"), batch(rng)
    path = tmp_path / "model.h5"
    save_checkpoint(path, Checkpoint(model.params, describe_model(model)))
    found = load_model(path)
    assert type(found) is SequenceClassifier
    np.testing.assert_array_equal(found.scores(x), model.scores(x))
    with pytest.raises(CheckpointError, match="expected one called layer1_Wx"):
        load_parameters(path, build(cell_type="gru", num_layers=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_classes": 1}, "num_classes is 1, expected an integer of at least 2"),
        ({"input_dim": 0}, "input_dim is 0, expected an integer of at least 1"),
        ({"hidden_dim": 0}, "hidden_dim is 0, expected an integer of at least 1"),
        ({"num_layers": 0}, "num_layers is 0, expected an integer of at least 1"),
        ({"readout": "first"}, "readout is 'first', expected one of 'last', 'mean'"),
        ({"bidirectional": "both"}, "bidirectional is 'both'"),
        ({"layer_dropout": 0.2}, "layer_dropout is 0.2, which needs num_layers of at least 2"),
        ({"output_dropout": 1.0}, "output_dropout is 1.0"),
        ({"cell_type": "tree"}, "cell_type is 'tree'"),
        ({"cell_type": "gru", "forget_bias": 1.0}, "forget_bias is 1.0, but cell 'gru' has no forget gate"),
        ({"dtype": np.float16}, "dtype is 'float16', expected one of 'float32', 'float64'"),
        ({"initialisation": "zeros"}, "initialisation is 'zeros'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        SequenceClassifier(**{"num_classes": C} | options)


def test_bad_batches(rng):
    model, (x, labels) = build(), batch(rng)
    for wrong in (x[0], x[:, :0], x[:, :, :1]):
        with pytest.raises(ValueError, match=r"SequenceClassifier\.loss: x has shape .* and D = 2"):
            model.loss(wrong, labels)
    with pytest.raises(ValueError, match=r"loss: labels has shape \(3,\), expected \(N,\) = \(4,\)"):
        model.loss(x, labels[:3])
    with pytest.raises(TypeError, match=r"nll: labels has dtype float64, expected integers"):
        model.nll(x, labels.astype(float))
    for label in (-1, 3):
        with pytest.raises(IndexError, match=f"loss: labels holds {label}, expected classes from 0 to 2"):
            model.loss(x, np.array([0, label, 1, 2]))
    with pytest.raises(ValueError, match="lengths holds 6, expected numbers from 0 to T = 5"):
        model.loss(x, labels, np.array([1, 6, 0, 0]))
    with pytest.raises(ValueError, match="lengths has shape"):
        model.scores(x, np.array([1, 2]))
