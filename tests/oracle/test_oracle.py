"""Random configurations of the models against PyTorch's autograd: the loss and every gradient.

A failure names the seed of its configuration, which repeats it:

    pytest -m oracle --oracle-count 10000        new configurations each time
    pytest -m oracle --oracle-seed SEED          one of them again
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier

torch = pytest.importorskip("torch")

from .compare import assert_as_autograd, described  # noqa: E402, which need PyTorch
from .configurations import configuration  # noqa: E402

COUNT = 200  # configurations; the default tests have some of them, the slow tests the others
NOT_DRAWN = {"self", "dtype", "rng", "device"} | {
    "forget_bias", "initialisation", "init_scale"  # of the initial parameters, which the oracle overwrites
}  # fmt: skip


def check_all(kind: type) -> None:
    """Check all configurations of a kind of model, up to the first failure."""
    for seed in range(COUNT):
        drawn = configuration(seed)
        if isinstance(drawn.model, kind):
            assert_as_autograd(drawn)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(COUNT))
def test_configuration(seed):
    assert_as_autograd(configuration(seed))


@pytest.mark.oracle
def test_new_configurations(request):
    seed, count = (request.config.getoption(f"--oracle-{name}") for name in ("seed", "count"))
    seeds = [seed] if seed is not None else np.random.default_rng().integers(1 << 48, size=count).tolist()
    failures = []
    for each in seeds:
        try:
            assert_as_autograd(configuration(each))
        except Exception as error:  # a crash is a finding too
            failures.append(f"--oracle-seed {each}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(seeds)} fail:\n\n" + "\n\n".join(failures[:10])


def test_each_option_is_drawn():
    """A new option of a constructor fails here until the configurations have it."""
    drawn: dict[Any, set[str]] = defaultdict(set)
    for seed in range(COUNT):
        model = configuration(seed).model
        for name, value in model.config().items():
            drawn[type(model), name].add(str(value))
    for kind in (CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier):
        for name in inspect.signature(kind.__init__).parameters.keys() - NOT_DRAWN:
            if not name.endswith("word_to_idx"):
                assert len(drawn[kind, name]) > 1, f"{kind.__name__}: {name} has only {drawn[kind, name]}"


def unchanged(dout: Any, cache: Any, **options: Any) -> Any:
    """The backward of the identity, in the place of another one."""
    return dout


@pytest.mark.parametrize(
    ("kind", "function", "wrong"),
    [
        (CaptioningRNN, "rnnlab.models.parts.output.tanh_backward", unchanged),
        (Seq2Seq, "rnnlab.models.parts.token_encoder.tanh_backward", unchanged),
        (SequenceClassifier, "rnnlab.models.classification.dropout_backward", unchanged),
        (Seq2Seq, "rnnlab.models.parts.repeats.Repeats.summed", lambda self, dx: dx[:: self.count].copy()),
        (Seq2Seq, "rnnlab.models.parts.values.Decoded.add_first", lambda ddecoded, dstate: None),
    ],
    ids=["deep output", "initial state", "dropout", "several sentences", "first target of ARNet"],
)
def test_a_wrong_gradient_is_found(kind, function, wrong, monkeypatch):
    monkeypatch.setattr(function, wrong)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_all(kind)


def test_a_wrong_loss_is_found(monkeypatch):
    monkeypatch.setattr("rnnlab.models.encoder_decoder.loss_divisor", lambda *arguments: 7)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_all(CaptioningRNN)


def test_a_description_has_all_of_a_configuration():
    text = described(configuration(0))
    assert type(configuration(0).model).__name__ in text
    assert "cell_type" in text
    assert "shape" in text
