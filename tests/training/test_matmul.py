"""The precision of a solver's products: of training, validation and callbacks, saved with the run."""

import json

import numpy as np
import pytest

from rnnlab import ops
from rnnlab.cs231n.captioning_solver import CaptioningSolver
from rnnlab.data import CaptionData, CaptionSplit, Vocabulary
from rnnlab.errors import InputError
from rnnlab.models import CaptioningRNN
from rnnlab.ops.precision import products_in, products_precision
from rnnlab.training import Callback, Solver
from rnnlab.training.checkpoint import load_checkpoint

OPTIONS = {"num_epochs": 2, "batch_size": 8, "verbose": False}

pytestmark = pytest.mark.usefixtures("no_pictures")


class Seen(Callback):
    """The precision at each call."""

    def __init__(self):
        self.found = set()

    def note(self, *_):
        self.found.add(products_precision())

    on_start = on_step = on_epoch = on_checkpoint = on_end = note


@pytest.fixture
def plain_numpy(monkeypatch):
    """NumPy's primitives, whatever is installed."""
    monkeypatch.setenv("RNNLAB_OPS", "numpy")
    ops._for_numpy.cache_clear()
    yield
    ops._for_numpy.cache_clear()


def captions():
    rng = np.random.default_rng(3)
    vocabulary = Vocabulary([f"word{i}" for i in range(12)])
    words = vocabulary.idx_to_word[4:]
    splits = {
        name: CaptionSplit(
            features=rng.standard_normal((16, 6)).astype(np.float32),
            captions=np.stack([vocabulary.encode(list(rng.choice(words, 4)), 6) for _ in range(16)]),
            image_idxs=np.arange(16),
            names=tuple(f"{name}{i}.jpg" for i in range(16)),
            references=[["a"]] * 16,
        )
        for name in ("train", "val")
    }
    return CaptionData(vocabulary, splits)


def trained(matmul, **options):
    data = captions()
    model = CaptioningRNN(data.vocabulary.word_to_idx, data.num_features, 8, 12, "lstm", rng=0, **options)
    solver = Solver(model, data, matmul=matmul, seed=1, **OPTIONS)
    solver.train()
    return solver


def test_losses_are_close_and_not_the_same(plain_numpy):
    full, rounded = trained("float32"), trained("bfloat16")
    assert rounded.loss_history != full.loss_history
    np.testing.assert_allclose(rounded.loss_history, full.loss_history, rtol=0.01)
    losses = [[row["val_loss"] for row in solver.history] for solver in (full, rounded)]
    assert losses[0] != losses[1]
    np.testing.assert_allclose(*losses, rtol=0.01)
    assert rounded.model.params.dtype == np.float32


def test_what_is_unchanged_on_a_cpu(plain_numpy):
    full = trained("float32")
    for matmul in ("tf32", "tf32x3"):
        assert trained(matmul).loss_history == full.loss_history
    double = trained("float32", dtype=np.float64)
    assert trained("bfloat16", dtype=np.float64).loss_history == double.loss_history


def test_all_of_training_has_it_and_nothing_else(make_model, data):
    seen, before = Seen(), products_precision()
    found = []

    class Watched(make_model):
        def loss(self, *batch, **options):
            found.append(products_precision())
            return super().loss(*batch, **options)

    def evaluate(model):
        found.append(products_precision())
        return {"val_loss": 1.0}

    solver = Solver(Watched(), data, matmul="bfloat16", callbacks=[seen], evaluate=evaluate, **OPTIONS)
    assert products_precision() == before
    solver.train()
    assert products_precision() == before
    assert set(found) == seen.found == {"bfloat16"}


def test_that_of_the_place_where_it_is_made_is_the_default(model, data):
    with products_in("tf32"):
        solver = Solver(model, data, **OPTIONS)
    assert solver.options.matmul == "tf32"
    assert Solver(model, data, **OPTIONS).options.matmul == products_precision()


def test_a_run_says_it_and_resumes_with_it(make_model, data, tmp_path):
    Solver(make_model(), data, matmul="bfloat16", run_dir=tmp_path, **OPTIONS).train()
    assert json.loads((tmp_path / "config.json").read_text())["solver"]["matmul"] == "bfloat16"
    assert load_checkpoint(tmp_path / "last.h5").solver["options"]["matmul"] == "bfloat16"
    seen = Seen()
    with products_in("tf32"):  # the run's own counts
        solver = Solver.resume(tmp_path, make_model(), data, num_epochs=3, callbacks=[seen])
        solver.train()
    assert solver.options.matmul == "bfloat16"
    assert seen.found == {"bfloat16"}


def test_a_run_resumes_with_another(make_model, data, tmp_path):
    Solver(make_model(), data, matmul="bfloat16", run_dir=tmp_path, **OPTIONS).train()
    seen = Seen()
    Solver.resume(tmp_path, make_model(), data, num_epochs=3, matmul="float32", callbacks=[seen]).train()
    assert seen.found == {"float32"}
    assert load_checkpoint(tmp_path / "last.h5").solver["options"]["matmul"] == "float32"
    with pytest.raises(InputError, match="Solver: matmul is 'half', expected one of 'float32', 'tf32'"):
        Solver.resume(tmp_path, make_model(), data, matmul="half")


def test_a_run_of_an_earlier_version_has_that_of_the_process(make_model, data, tmp_path, monkeypatch):
    to_dict = "rnnlab.training.options.Options.to_dict"
    with monkeypatch.context() as patch:
        patch.setattr(to_dict, lambda self: {k: v for k, v in vars(self).items() if k != "matmul"})
        Solver(make_model(), data, run_dir=tmp_path, **OPTIONS).train()
    assert "matmul" not in load_checkpoint(tmp_path / "last.h5").solver["options"]
    assert Solver.resume(tmp_path, make_model(), data).options.matmul == products_precision()


def test_a_bad_name(model, data):
    message = "Solver: matmul is 'bf16', expected one of 'float32', 'tf32', 'tf32x3', 'bfloat16'"
    with pytest.raises(InputError, match=message):
        Solver(model, data, matmul="bf16", **OPTIONS)


def test_the_solver_of_the_course_takes_it():
    data = captions()
    model = CaptioningRNN(data.vocabulary.word_to_idx, data.num_features, 8, 12, "rnn", rng=0)
    split = data.splits["train"]
    course = {
        "train_captions": split.captions,
        "train_image_idxs": split.image_idxs,
        "train_features": split.features,
        "word_to_idx": data.vocabulary.word_to_idx,
        "idx_to_word": data.vocabulary.idx_to_word,
        "train_urls": np.array(split.names),
    }
    seen = Seen()
    solver = CaptioningSolver(model, course, num_epochs=1, verbose=False, matmul="bfloat16", callbacks=[seen])
    solver.train()
    assert seen.found == {"bfloat16"}
