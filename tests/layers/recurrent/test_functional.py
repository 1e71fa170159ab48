"""A cell from outside the package: its gradients, what its contract refuses, and training with it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnnlab import cli, layers, runs
from rnnlab.decoding import beam_search, greedy
from rnnlab.gradcheck import run as gradcheck
from rnnlab.gradcheck.recurrent_cases import check_cell
from rnnlab.layers import Cell, Regularisation, recurrent_backward, recurrent_forward
from rnnlab.layers.recurrent import cell as cells
from rnnlab.layers.recurrent import packing
from rnnlab.models import CaptioningRNN
from rnnlab.training import load_model

from .peephole import PeepholeLSTM

N, T, D, H = 3, 4, 5, 6
PATH = "outside_cells:PeepholeLSTM"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """The cell in a module that Python can import by name."""
    shutil.copy(Path(__file__).with_name("peephole.py"), tmp_path / "outside_cells.py")
    monkeypatch.syspath_prepend(tmp_path)
    yield PATH
    sys.modules.pop("outside_cells", None)


def parameters(rng, cell):
    return {name: rng.standard_normal(shape) / 2 for name, shape in cell.shapes(D, H).items()}


def batch(rng, states=2):
    return rng.standard_normal((N, T, D)), tuple(rng.standard_normal((N, H)) for _ in range(states))


# ---------------------------------------------------------------- gradients


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("recurrent, ", 7),  # full, lengths, and five regularisations
        ("attentive, ", 4),
        ("CaptioningRNN*second_layer", 1),
        ("CaptioningRNN*regularised", 1),
        ("CaptioningRNN*attention to both", 1),
        ("Seq2Seq*attention to both", 1),
        ("SequenceClassifier*mean", 1),
    ],
)
def test_every_gradient(outside, pattern, count):
    rows = list(gradcheck.check_all(cell=outside, only=pattern))
    assert [row for row in rows if not row.passed] == []
    assert len(rows) == count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "regularisation",
    [
        {},
        {"zoneout_h": 0.3, "zoneout_c": 0.2},
        {"recurrent_dropout": 0.4, "weight_dropout": 0.2},
        {"recurrent_dropout": 0.4, "recurrent_dropout_on": "candidate", "zoneout_h": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", [3, None], ids=["training", "inference"])
def test_without_peepholes_it_is_the_lstm(regularisation, seed, dtype, rng):
    """The same masks from the same seed, forward and backward."""
    x, state = batch(rng)
    params = parameters(rng, PeepholeLSTM())
    params["W_peephole"][...] = 0
    x, *state = (array.astype(dtype) for array in (x, *state))
    params = {name: array.astype(dtype) for name, array in params.items()}
    results = []
    for cell in (PeepholeLSTM(), "lstm"):
        generator = None if seed is None else np.random.default_rng(seed)
        h, final, cache = recurrent_forward(
            x,
            tuple(state),
            params,
            cell=cell,
            lengths=np.array([4, 2, 0]),
            regularisation=regularisation,
            rng=generator,
        )
        dx, dstate, dparams = recurrent_backward(np.cos(h), cache, dfinal=tuple(map(np.sin, final)))
        results.append([h, *final, dx, *dstate, *(dparams[name] for name in ("Wx", "Wh", "b"))])
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        assert found.dtype == dtype


def test_the_gradients_of_several_chunks_are_counted_once(rng, monkeypatch):
    x, state = batch(rng)
    params, results = parameters(rng, PeepholeLSTM()), []
    monkeypatch.setattr(packing, "_CHUNK_NUMBERS", 1)
    for rows in (1, 1000):
        monkeypatch.setattr(packing, "_CHUNK_ROWS", rows)
        h, _, cache = recurrent_forward(x, state, params, cell=PeepholeLSTM())
        results.append(recurrent_backward(np.cos(h), cache)[2])
    for name, gradient in results[0].items():
        np.testing.assert_allclose(gradient, results[1][name], rtol=1e-11, atol=1e-12)


def test_into_arrays_that_are_given(rng):
    x, state = batch(rng)
    params = parameters(rng, PeepholeLSTM())
    h, _, cache = recurrent_forward(x, state, params, cell=PeepholeLSTM())
    _, _, expected = recurrent_backward(np.cos(h), cache)
    into = {name: np.ones_like(array) for name, array in params.items()}
    _, _, found = recurrent_backward(np.cos(h), cache, into=into)
    for name, array in expected.items():
        assert found[name] is into[name]
        np.testing.assert_allclose(into[name], 1 + array, rtol=1e-12)


def test_forget_gates_start_at_the_bias(outside):
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2}
    model = CaptioningRNN(words, D, 3, H, outside, forget_bias=1.5)
    np.testing.assert_array_equal(model.params["b"], np.repeat([0, 1.5, 0, 0], H))
    assert model.params["W_peephole"].any()


class Leaking64(PeepholeLSTM):
    """Its state is float64 whatever comes in."""

    def step_forward(self, a, state, params, **options):
        (h, c), cache = super().step_forward(a, state, params, **options)
        return (h.astype(np.float64), c), cache


class Unnamed(Cell):
    """A vanilla RNN whose weight has another name."""

    def recurrent_shapes(self, hidden_dim):
        return {"U": (hidden_dim, hidden_dim)}

    def step_forward(self, a, state, params):
        h = np.tanh(a + state[0] @ params["U"])
        return (h,), (state[0], h)

    def step_backward(self, dstate, params, cache):
        da = dstate[0] * (1 - cache[1] ** 2)
        return da, (da @ params["U"].T,), {"U": cache[0].T @ da}


def test_what_numeric_gradients_do_not_see(monkeypatch, rng):
    with pytest.raises((ValueError, TypeError), match=r"next_state\[0\] has dtype float64, expected float32"):
        check_cell(Leaking64(), rng)
    monkeypatch.setattr(Leaky, "carries_h", False)
    with pytest.raises(ValueError, match="Leaky: carries_h is False, but .*, expected carries_h = True"):
        check_cell(Leaky(), rng)


def test_a_weight_of_another_name(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_CELLS", dict(cells._CELLS))
    layers.register_cell("unnamed", Unnamed())
    rows = list(gradcheck.check_all(cell="unnamed", only="CaptioningRNN*regularised"))
    assert [row.passed for row in rows] == [True]


@pytest.mark.slow
def test_a_cell_beside_the_recipe(tmp_path):
    """The command finds a module in the current folder."""
    shutil.copy(Path(__file__).with_name("peephole.py"), tmp_path / "cells_beside.py")
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.pop(0); from rnnlab.cli import main; sys.exit(main())",
    ]
    arguments = [
        "gradcheck",
        "--cell",
        "cells_beside:PeepholeLSTM",
        "--only",
        "recurrent*lengths",
        "--jobs",
        "1",
    ]
    done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "All 1 checks passed." in done.stdout


# ---------------------------------------------------------------- decoding


@pytest.mark.parametrize("options", [{}, {"target_attention": True}], ids=str)
def test_it_decodes_as_it_trains(outside, options, rng):
    words = {word: k for k, word in enumerate(["<NULL>", "<START>", "<END>", "a", "b", "c"])}
    model = CaptioningRNN(
        words, D, 3, H, outside, dtype=np.float64, init_scale=1.5, initialisation="uniform", **options
    )
    features = rng.standard_normal((4, D))
    found = [best.tokens for (best,) in beam_search(model, features, beam_size=1, max_length=6)]
    assert found == [best.tokens for (best,) in greedy(model, features, max_length=6)]
    (best,) = beam_search(model, features[:1], beam_size=3, max_length=6, forbid=(0,))[0]  # padding
    total, _ = model.nll(features[:1], np.array([[1, *best.tokens, 2]]))
    assert best.log_prob == pytest.approx(-total, rel=1e-9)


# ---------------------------------------------------------------- what the contract refuses


def broken(**methods):
    return type("Broken", (PeepholeLSTM,), methods)()


def backward_with(change):
    def step_backward(self, dstate, params, cache):
        return change(*PeepholeLSTM.step_backward(self, dstate, params, cache))

    return broken(step_backward=step_backward)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            backward_with(lambda da, dprev, dparams: (da, dprev)),
            "returned a tuple of 2, expected da,",
        ),
        (backward_with(lambda da, dprev, dparams: None), "returned a NoneType, expected da"),
        (
            backward_with(lambda da, dprev, dparams: (da, dprev, None)),
            "dparams is NoneType, expected",
        ),
        (
            backward_with(lambda da, dprev, dparams: (da, dprev, {"Wh": dparams["Wh"]})),
            "dparams is Wh, expected the gradients of Wh, W_peephole by name",
        ),
        (
            backward_with(lambda da, dprev, dparams: (da, dprev, dparams | {"Wh": dparams["Wh"].T})),
            r"dparams['Wh'] is of shape (24, 6), expected shape (6, 24)",
        ),
        (
            backward_with(lambda da, dprev, dparams: (da.astype(np.float32), dprev, dparams)),
            "da has dtype float32, expected float64",
        ),
        (
            backward_with(lambda da, dprev, dparams: (da, dprev[:1], dparams)),
            "dprev_state is a tuple of 1",
        ),
        (
            broken(step_forward=lambda self, a, state, params: (state[0], None)),
            "next_state is a ndarray",
        ),
        (
            broken(step_forward=lambda self, a, state, params: state[0]),
            "returned a ndarray, expected next",
        ),
    ],
)
def test_what_does_not_fit_is_refused(cell, message, rng):
    x, state = batch(rng)

    def forward_and_backward():
        h, _, cache = recurrent_forward(x, state, parameters(rng, cell), cell=cell)
        recurrent_backward(h, cache)

    with pytest.raises(ValueError, match=rf"Broken.step_(for|back)ward: .*{re.escape(message)}"):
        forward_and_backward()


def test_parameters_that_do_not_fit(rng):
    x, state = batch(rng)
    params = parameters(rng, PeepholeLSTM()) | {"W_peephole": np.zeros((2, H))}
    with pytest.raises(
        ValueError, match=r"recurrent_forward: W_peephole has shape \(2, 6\), expected \(3, 6\)"
    ):
        recurrent_forward(x, state, params, cell=PeepholeLSTM())
    params["W_peephole"] = np.zeros((3, H), np.float32)
    with pytest.raises(TypeError, match="W_peephole has dtype float32, expected float64 as the state"):
        recurrent_forward(x, state, params, cell=PeepholeLSTM())
    del params["W_peephole"]
    with pytest.raises(ValueError, match="recurrent_forward: params has no W_peephole"):
        recurrent_forward(x, state, params, cell=PeepholeLSTM())


class Leaky(Cell):
    """h_t = (h_{t-1} + tanh(a_t + h_{t-1} Wh)) / 2: it carries h_{t-1} beside the recurrent weights."""

    carries_h = True

    def step_forward(self, a, state, params):
        new = np.tanh(a + state[0] @ params["Wh"])
        return ((state[0] + new) / 2,), (state[0], new)

    def step_backward(self, dstate, params, cache):
        h, new = cache
        da = dstate[0] / 2 * (1 - new**2)
        return da, (dstate[0] / 2 + da @ params["Wh"].T,), {"Wh": h.T @ da}


def test_regularisation_that_step_functions_cannot_have():
    with pytest.raises(
        ValueError, match="recurrent_dropout_on is 'state', but the step functions of 'Leaky'"
    ):
        Regularisation(recurrent_dropout=0.1).check("f", Leaky())
    with pytest.raises(ValueError, match="zoneout_c is 0.1, but cell 'Leaky' has no cell state"):
        Regularisation(zoneout_c=0.1).check("f", Leaky())
    Regularisation(zoneout_h=0.1, weight_dropout=0.1).check("f", Leaky())
    with pytest.raises(ValueError, match="weight_dropout is 0.1, but cell 'Unnamed' has no Wh"):
        Regularisation(weight_dropout=0.1).check("f", Unnamed())
    Regularisation(recurrent_dropout=0.1).check("f", Unnamed())


# ---------------------------------------------------------------- from a recipe to captions


RECIPE = """
[data]
kind = "shapes"
[model]
cell_type = "outside_cells:PeepholeLSTM"
hidden_dim = 16
wordvec_dim = 8
forget_bias = 1.0
regularisation = { zoneout_h = 0.1, recurrent_dropout = 0.1 }
[training]
num_epochs = 1
batch_size = 50
[decoding]
beam_size = 2
[evaluation]
split = "val"
metrics = []
"""


@pytest.mark.slow
def test_training_resuming_and_decoding_by_the_commands(outside, tmp_path, capsys):
    from rnnlab.data import write_shapes

    write_shapes(tmp_path / "shapes", {"train": 60, "val": 10, "test": 10}, seed=3)
    recipe, run = tmp_path / "peephole.toml", tmp_path / "run"
    recipe.write_text(RECIPE)
    arguments = [
        str(recipe),
        "--set",
        f'data.directory="{tmp_path / "shapes"}"',
        "--out",
        str(run),
        "--no-progress",
    ]
    assert cli.main(["train", *arguments]) == 0
    once = load_model(run / "last.h5")
    assert cli.main(["train", "--resume", str(run), "--epochs", "2", "--no-progress"]) == 0
    assert not np.array_equal(once.params["W_peephole"], load_model(run / "last.h5").params["W_peephole"])
    assert cli.main(["caption", str(run), "val", "--max-images", "2"]) == 0
    assert cli.main(["gradcheck", "--cell", outside, "--only", "recurrent", "--jobs", "1"]) == 0
    assert runs.load_run(run).model.config()["cell_type"] == outside
    capsys.readouterr()


HALF = """
class Half(PeepholeLSTM):
    def step_backward(self, dstate, params, cache):
        da, dprev, dparams = super().step_backward(dstate, params, cache)
        return da.astype("float32"), dprev, dparams
"""


def test_a_command_shows_a_broken_contract_in_one_line(outside, tmp_path, capsys):
    module = tmp_path / "outside_cells.py"
    module.write_text(module.read_text() + HALF)
    cell = "outside_cells:Half"
    assert cli.main(["gradcheck", "--cell", cell, "--only", "recurrent, ", "--jobs", "1"]) == 2
    assert capsys.readouterr().err == (
        "rnnlab gradcheck: Half.step_backward: da has dtype float32, expected float64\n"
    )


@pytest.mark.parametrize("cell", [PeepholeLSTM, PeepholeLSTM()], ids=["a class", "an object"])
def test_a_model_takes_the_name_of_a_cell(cell):
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2}
    message = r"CaptioningRNN: cell_type is <.*>, expected a name: register it .*, or name it 'package"
    with pytest.raises(ValueError, match=message):
        CaptioningRNN(words, D, 3, H, cell)


def test_a_registered_name(monkeypatch, rng):
    monkeypatch.setattr(layers.recurrent.cell, "_CELLS", dict(layers.recurrent.cell._CELLS))
    layers.register_cell("peephole_lstm", PeepholeLSTM())
    assert layers.cell_names() == ("rnn", "lstm", "gru", "simplified_gru", "peephole_lstm")
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2}
    model = CaptioningRNN(words, D, 3, H, "peephole_lstm")
    assert model.config()["cell_type"] == "peephole_lstm"


def test_two_cells_of_one_class_have_their_own_names(monkeypatch):
    monkeypatch.setattr(layers.recurrent.cell, "_CELLS", dict(layers.recurrent.cell._CELLS))
    first, second = PeepholeLSTM(), PeepholeLSTM()
    layers.register_cell("first", first)
    layers.register_cell("second", second)
    names = [layers.recurrent.cell.cell_name(cell) for cell in (first, second, PeepholeLSTM())]
    assert names == ["first", "second", "first"]


def test_a_cell_may_return_the_same_arrays_at_each_step(rng):
    class Reusing(PeepholeLSTM):
        kept = None

        def step_backward(self, dstate, params, cache):
            da, dprev, dparams = super().step_backward(dstate, params, cache)
            self.kept = self.kept or dparams
            for name, gradient in dparams.items():
                self.kept[name][...] = gradient
            return da, dprev, self.kept

    params, (x, state), gradients = parameters(rng, PeepholeLSTM()), batch(rng), []
    for cell in (PeepholeLSTM(), Reusing()):
        h, _, cache = recurrent_forward(x, state, params, cell=cell)
        gradients.append(recurrent_backward(np.cos(h), cache)[2])
    for name, expected in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], expected, rtol=1e-12)
