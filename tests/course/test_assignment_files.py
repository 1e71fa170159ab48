"""The files of the assignment: unfinished they say so, and filled in they are the library's model."""

import inspect
import re
import sys
from importlib import import_module

import numpy as np
import pytest

import rnnlab.course.assignment.rnn_layers as unfinished
from rnnlab.course import assignment_files
from rnnlab.course.assignment.classifiers.rnn import CaptioningRNN as UnfinishedRNN
from rnnlab.course.assignment_files import write_assignment
from rnnlab.files import atomic_write
from rnnlab.models import CaptioningRNN

from .assignment import fill_in
from .plain_functions import PLAIN

WORDS = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "b", "c"])}
D, W, H = 5, 3, 4


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The assignment's package, filled in, importable as cs231n."""
    fill_in(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name: import_module(f"cs231n.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "cs231n"]:
        del sys.modules[name]


def data():
    rng = np.random.default_rng(3)
    captions = np.array([[1, 4, 5, 6, 2], [1, 5, 2, 0, 0], [1, 6, 6, 2, 0], [1, 4, 2, 0, 0]], np.int32)
    return {
        "train_captions": captions,
        "train_image_idxs": np.arange(4),
        "train_features": rng.standard_normal((4, D)).astype(np.float32),
        "train_urls": list("abcd"),
        "val_captions": captions[:1],
        "idx_to_word": list(WORDS),
        "word_to_idx": WORDS,
    }


# ---------------------------------------------------------------- unfinished


@pytest.mark.parametrize(
    "name", [name for name in unfinished.__all__ if name in PLAIN and "temporal" not in name]
)
def test_a_function_to_fill_in_says_so(name):
    function = getattr(unfinished, name)
    arguments = list(inspect.signature(function).parameters)
    assert arguments == [
        each for each in inspect.signature(PLAIN[name]).parameters if each not in ("c0", "lengths")
    ]
    with pytest.raises(NotImplementedError, match=f"^{name}: "):
        function(*[None] * len(arguments))
    if name.endswith("_forward"):  # it says what the cache holds
        assert re.search(r"^cache : (tuple|list)\n    \w+", inspect.getdoc(function), re.MULTILINE)


def test_the_model_to_fill_in_says_so():
    model = UnfinishedRNN(WORDS, D, W, H)
    with pytest.raises(NotImplementedError, match=r"^CaptioningRNN\.loss: "):
        model.loss(np.ones((1, D)), np.ones((1, 3), int))
    with pytest.raises(NotImplementedError, match=r"^CaptioningRNN\.sample: "):
        model.sample(np.ones((1, D)))
    with pytest.raises(ValueError, match="CaptioningRNN: cell_type is 'gru', expected 'rnn' or 'lstm'"):
        UnfinishedRNN(WORDS, D, W, H, "gru")


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_initial_parameters_are_those_of_the_library(cell, dtype):
    own, library = (kind(WORDS, D, W, H, cell, dtype, rng=5) for kind in (UnfinishedRNN, CaptioningRNN))
    assert list(own.params) == list(library.params)
    for name, array in own.params.items():
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, library.params[name])


def test_sigmoid_does_not_overflow():
    x = np.array([-1e4, -1.0, 0.0, 2.0, 1e4])
    expected = [0, 1 / (1 + np.e), 0.5, 1 / (1 + np.exp(-2)), 1]
    np.testing.assert_allclose(unfinished.sigmoid(x), expected, rtol=1e-15)


# ---------------------------------------------------------------- filled in


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_filled_in_it_is_the_model_of_the_library(package, cell):
    features, captions = data()["train_features"].astype(np.float64), data()["train_captions"]
    own = package("classifiers.rnn").CaptioningRNN(WORDS, D, W, H, cell, np.float64)
    library = CaptioningRNN(WORDS, D, W, H, cell, np.float64)
    loss, grads = own.loss(features, captions)
    expected, gradients = library.loss(features, captions)
    assert loss == pytest.approx(expected, rel=1e-12)
    for name in gradients:
        np.testing.assert_allclose(grads[name], gradients[name], atol=1e-12)
    rows = zip(own.sample(features, 9).tolist(), library.sample(features, 9).tolist(), strict=True)
    for found, right in rows:
        length = right.index(WORDS["<END>"]) + 1 if WORDS["<END>"] in right else 9
        assert found[:length] == right[:length]


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_the_solver_trains_it_as_the_model_of_the_library(package, cell):
    """Also in float32, where the plain functions return float64."""
    losses = []
    for kind in (package("classifiers.rnn").CaptioningRNN, CaptioningRNN):
        model = kind(WORDS, D, W, H, cell, np.float32)
        solver = package("captioning_solver").CaptioningSolver(
            model,
            data(),
            update_rule="adam",
            num_epochs=60,
            batch_size=2,
            optim_config={"learning_rate": 0.03},
            lr_decay=0.995,
            verbose=False,
        )
        solver.train()
        losses.append(solver.loss_history)
        assert model.sample(data()["train_features"])[0, :4].tolist() == [4, 5, 6, 2]
    np.testing.assert_allclose(losses[0][:20], losses[1][:20], rtol=1e-4)
    assert losses[0][-1] < 0.2 * losses[0][0]


def test_the_other_modules_are_those_of_rnnlab(package):
    for name in ("captioning_solver", "coco_utils", "gradient_check", "image_utils", "optim"):
        own, library = package(name), import_module(f"rnnlab.cs231n.{name}")
        assert own.__doc__
        assert set(own.__all__) == set(library.__all__)
        for each in own.__all__:
            assert getattr(own, each) is getattr(library, each)


def same(found, expected):
    """Whether two results are equal, but for caches."""
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, np.ndarray | float):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    return True


def test_the_complete_layers_compute_what_those_of_rnnlab_do(rng):
    """They are NumPy's alone, so that they take float64 states of a float32 model, as the course's do."""
    x, w, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((12, 5)), rng.standard_normal(5)
    own, library = (
        import_module(f"{where}.layers") for where in ("rnnlab.course.assignment", "rnnlab.cs231n")
    )
    pairs = import_module("rnnlab.course.assignment.layer_utils"), import_module("rnnlab.cs231n.layer_utils")
    results = []
    for layers, utils in zip((own, library), pairs, strict=True):
        out, cache = layers.affine_forward(x, w, b)
        positive, relu_cache = layers.relu_forward(x)
        both, both_cache = utils.affine_relu_forward(x, w, b)
        results.append([out, positive, layers.relu_backward(x, relu_cache), both])
        results[-1] += layers.affine_backward(out, cache)
        results[-1] += utils.affine_relu_backward(out, both_cache)
        results[-1] += layers.softmax_loss(out, np.array([1, 4]))
    assert len(results[0]) == 12
    assert same(*results)

    scores, cache = unfinished.temporal_affine_forward(x, w[:4], b)
    expected, plain = PLAIN["temporal_affine_forward"](x, w[:4], b)
    assert same([scores], [expected])
    assert same(
        unfinished.temporal_affine_backward(scores, cache), PLAIN["temporal_affine_backward"](scores, plain)
    )
    y, mask = rng.integers(5, size=(2, 3)), np.array([[1, 1, 0], [1, 0, 0]], bool)
    assert same(
        unfinished.temporal_softmax_loss(scores, y, mask), PLAIN["temporal_softmax_loss"](scores, y, mask)
    )


def test_the_loss_prints_a_shape_as_in_the_course(capsys):
    unfinished.temporal_softmax_loss(np.ones((2, 3, 4)), np.zeros((2, 3), int), np.ones((2, 3)), verbose=True)
    assert capsys.readouterr().out == "dx: (2, 3, 4)\n"


# ---------------------------------------------------------------- writing


def test_a_folder_that_exists_is_left_alone(tmp_path):
    written = write_assignment(tmp_path / "new" / "folder")
    assert written == tmp_path / "new" / "folder" / "cs231n"
    mine = written / "rnn_layers.py"
    mine.write_text("mine")
    files = sorted(written.rglob("*"))
    with pytest.raises(
        FileExistsError, match=r"cs231n already exists, expected no such folder: choose another one$"
    ):
        write_assignment(tmp_path / "new" / "folder")
    assert mine.read_text() == "mine"
    assert sorted(written.rglob("*")) == files


def test_an_interrupted_command_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(path):
        if path.name == "optim.py":
            raise KeyboardInterrupt
        return atomic_write(path)

    monkeypatch.setattr(assignment_files, "atomic_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_assignment(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_files_of_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notebook.ipynb").write_text("{}")
    write_assignment(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cs231n", "notebook.ipynb"]
    written = {path.relative_to(tmp_path / "cs231n").as_posix() for path in tmp_path.rglob("*.py")}
    assert written == {
        "__init__.py", "captioning_solver.py", "classifiers/__init__.py", "classifiers/rnn.py",
        "coco_utils.py", "gradient_check.py", "image_utils.py", "layer_utils.py", "layers.py", "optim.py",
        "rnn_layers.py",
    }  # fmt: skip
