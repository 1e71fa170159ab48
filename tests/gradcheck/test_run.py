"""The command that checks every gradient must pass, cover every layer, and see what is wrong."""

import multiprocessing
import os

import numpy as np
import pytest

from rnnlab import layers
from rnnlab.gradcheck import run as gradcheck
from rnnlab.gradcheck.cases import CELLS, Case
from rnnlab.gradcheck.model import ParameterCheck
from rnnlab.models.captioning import IMAGE_INPUTS

ANNOUNCED = "RNNLAB_KERNELS_ANNOUNCED"  # as in rnnlab.ops.numba.kernel


SHARES = 16  # the cases take minutes, and the processes of a test run share them


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_layer_and_model_passes(share):
    names = gradcheck.case_names()
    options = {"tolerance": 1e-7, "seed": 0, "device": "cpu", "cell": None}
    indices = range(share, len(names), SHARES)
    rows = [gradcheck._check(index, **options) for index in indices]
    assert [row for row in rows if not row.passed or row.error > options["tolerance"]] == []
    assert [row.name for row in rows] == [names[index] for index in indices]


def test_there_is_a_case_of_every_model():
    kinds = ["layer" if isinstance(case, Case) else "model" for case in gradcheck._cases(0, None)]
    assert len(kinds) == len(gradcheck.case_names())
    assert (
        kinds.count("model") == len(CELLS) * (len(IMAGE_INPUTS) + 4 + 2 + 2 + 1 + 1 + 2 + 1 + 2 + 2 + 1) + 1
    )
    assert kinds == sorted(kinds)  # layers come first


@pytest.mark.slow
def test_rows_do_not_depend_on_the_other_cases_or_on_the_processes(monkeypatch):
    monkeypatch.setenv("RNNLAB_NUM_THREADS", "2")
    alone = list(gradcheck.check_all(only="GRU_step"))
    assert [row.name for row in alone] == ["gru_step", "simplified_gru_step"]
    together = list(gradcheck.check_all(only="gru_st?p", jobs=2))
    assert together == alone
    assert os.environ["RNNLAB_NUM_THREADS"] == "2"
    assert list(gradcheck.check_all(only="gru_step", seed=1)) != alone


def test_a_pattern_that_matches_nothing():
    with pytest.raises(ValueError, match=r"^only is 'lsmt_step', which matches no name, .*lstm_step"):
        gradcheck.case_names("lsmt_step")
    with pytest.raises(ValueError, match="matches no name"):
        next(gradcheck.check_all(only="transformer"))


@pytest.mark.parametrize(
    ("backward", "error"),
    [
        (lambda dout, cache: 1.001 * dout * (1 - cache.y**2), "gradient"),
        (lambda dout, cache: np.multiply(dout, 1 - cache.y**2, out=dout), "dout 0"),
        (lambda dout, cache: np.full_like(dout, np.nan), "gradient"),
    ],
    ids=["a gradient that is 0.1 % off", "a backward that writes into dout", "a gradient of NaN"],
)
def test_a_wrong_layer_does_not_pass(rng, backward, error):
    case = Case("tanh", layers.tanh_forward, backward, {"x": rng.standard_normal((3, 4))})
    row = gradcheck.check_case(case, tolerance=1e-7, rng=rng)
    assert not row.passed
    assert row.touched == ([] if error == "gradient" else [error])
    assert row.wrong == ["x"]


def test_an_error_that_rounding_explains_is_not_shown(monkeypatch):
    rows = [ParameterCheck("b", (1,), 1e-9, 1.0, True), ParameterCheck("Wq", (1,), 1e-5, 1e-12, True, True)]
    monkeypatch.setattr(gradcheck, "check_model", lambda *_, **options: rows)
    monkeypatch.setattr(gradcheck, "_cases", lambda seed, cell: [gradcheck.ModelCase("model", None, ())])
    row = gradcheck._check(0, tolerance=1e-7, seed=0, device="cpu", cell=None)
    assert (row.passed, row.worst, row.error) == (True, "b", 1e-9)
    rows = rows[1:]
    assert gradcheck._check(0, tolerance=1e-7, seed=0, device="cpu", cell=None).worst == "Wq"


class Gradients(dict):
    """By name, and flat."""


class Anywhere:
    """A model of one parameter, whose loss and gradient on a device are off by these factors."""

    def __init__(self, loss=1.0, gradient=1.0):
        self.factors, self.device = (loss, gradient), "cpu"

    def to(self, device):
        self.device = device
        return self

    def loss(self, x, *, rng):
        loss, gradient = self.factors if self.device == "gpu" else (1.0, 1.0)
        kept = rng.random(x.shape) < 0.5  # as with dropout
        grads = Gradients(w=gradient * x * kept)
        grads.flat = grads["w"]
        return loss * float(np.sum(x * kept)), grads


@pytest.mark.parametrize(
    ("factors", "wrong"),
    [({}, []), ({"loss": 1.01}, ["the loss"]), ({"loss": -1.0}, ["the loss"]), ({"gradient": 1.01}, ["w"])],
)
def test_a_model_on_a_device_has_the_loss_and_the_gradients_of_the_cpu(factors, wrong, monkeypatch, rng):
    case = "model", Anywhere(**factors), (rng.standard_normal(100),)
    monkeypatch.setattr(gradcheck, "_cases", lambda seed, cell: [case])
    row = gradcheck._check(0, tolerance=1e-7, seed=0, device="gpu", cell=None)
    assert (row.wrong, row.passed) == (wrong, not wrong)


def test_one_process_alone_says_that_kernels_are_compiled(monkeypatch):
    monkeypatch.setenv(ANNOUNCED, "")
    first_alone = multiprocessing.get_context("spawn").Semaphore(1)
    gradcheck._announce_once(first_alone)
    assert not os.environ[ANNOUNCED]
    gradcheck._announce_once(first_alone)
    assert os.environ[ANNOUNCED]
