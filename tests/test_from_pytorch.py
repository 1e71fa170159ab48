"""What docs/from_pytorch.md says about weights and optimizers agrees with PyTorch."""

import numpy as np
import pytest

from rnnlab.gradcheck.run import check_all
from rnnlab.layers import recurrent_backward, recurrent_forward, reversed_in_time
from rnnlab.layers.recurrent import cell
from rnnlab.training import make_schedule, make_update_rule

from .test_documents import ROOT, python_blocks

torch = pytest.importorskip("torch")

N, T, D, H = 4, 6, 3, 5
LENGTHS = np.array([6, 2, 4, 1])
PAGE = (ROOT / "docs" / "from_pytorch.md").relative_to(ROOT)


@pytest.fixture
def page(monkeypatch):
    """The names that the page defines."""
    monkeypatch.setattr(cell, "_CELLS", dict(cell._CELLS))
    namespace = {"__name__": "from_pytorch"}
    for block in python_blocks(PAGE):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), namespace)
    return namespace


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_weights_of_a_layer(kind, page, rng):
    """Outputs, final states and all gradients of both directions, with sequences of different lengths."""
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](D, H, batch_first=True, bidirectional=True)
    module = module.double()
    converted = page[f"{kind}_of_pytorch"]
    state = {name: weight.detach().numpy() for name, weight in module.state_dict().items()}
    array = rng.standard_normal((N, T, D))
    x = torch.tensor(array, requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(LENGTHS), True, enforce_sorted=False)
    out, final = module(packed)
    out, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    dh, mask = rng.standard_normal((N, T, 2 * H)), (np.arange(T) < LENGTHS[:, None])[:, :, None]
    (out * torch.tensor(dh)).sum().backward()
    dx = 0
    for k, layer in enumerate(("l0", "l0_reverse")):
        turned = reversed_in_time if k else lambda given, lengths: given.copy()
        names = ("Wx", "Wh", "b", "b_hn")
        params = dict(zip(names, converted(state, layer), strict=False))
        zeros = (np.zeros((N, H)),) * (2 if kind == "lstm" else 1)
        name = "lstm" if kind == "lstm" else "pytorch_gru"
        h, ends, cache = recurrent_forward(turned(array, LENGTHS), zeros, params, cell=name, lengths=LENGTHS)
        columns = slice(k * H, (k + 1) * H)
        np.testing.assert_allclose(
            (turned(h, LENGTHS) * mask), out.detach().numpy()[:, :, columns], atol=1e-12
        )
        theirs = final[0] if kind == "lstm" else final
        np.testing.assert_allclose(ends[0], theirs[k].detach().numpy(), atol=1e-12)
        added, _, grads = recurrent_backward(turned((dh * mask)[:, :, columns], LENGTHS), cache)
        dx = dx + turned(added, LENGTHS)
        of_theirs = {each: getattr(module, f"{each}_{layer}").grad.numpy() for each in
                     ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}  # fmt: skip
        if kind == "lstm":
            i, f, g, o = np.split(of_theirs["weight_hh"], 4)
            np.testing.assert_allclose(grads["Wh"], np.concatenate([i, f, o, g]).T, atol=1e-12)
        else:
            np.testing.assert_allclose(grads["Wh"], of_theirs["weight_hh"].T, atol=1e-12)
            np.testing.assert_allclose(grads["Wx"], of_theirs["weight_ih"].T, atol=1e-12)
            np.testing.assert_allclose(grads["b"], of_theirs["bias_ih"], atol=1e-12)
            np.testing.assert_allclose(grads["b_hn"], of_theirs["bias_hh"][2 * H :], atol=1e-12)
    np.testing.assert_allclose(dx, x.grad.numpy(), atol=1e-12)


@pytest.mark.slow
def test_the_gru_passes_its_gradient_checks(page):
    assert page["PyTorchGRU"]
    rows = list(check_all(cell="pytorch_gru", only="recurrent*"))
    assert rows
    assert all(row.passed for row in rows), rows


def test_patience_is_one_more():
    """Of a plateau, with the same metrics."""
    metrics = [3.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    for patience in (0, 1, 2):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience)
        ours, best = make_schedule({"name": "plateau", "factor": 0.5, "patience": patience + 1}), np.inf
        for metric in metrics:
            theirs.step(metric)
            ours.end_epoch(metric < best)
            best = min(best, metric)
            assert ours.multiplier(0, 0) == optimizer.param_groups[0]["lr"]


def test_a_cosine_after_a_warmup(page):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedulers = torch.optim.lr_scheduler
    rising = schedulers.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
    falling = schedulers.CosineAnnealingLR(optimizer, 20)
    theirs = schedulers.SequentialLR(optimizer, [rising, falling], [5])
    cosine = {"name": "cosine", "over": 20, "unit": "iterations"}
    ours = make_schedule({"name": "warmup", "over": 5, "then": cosine, "then_after": True})
    for iteration in range(24):
        assert ours.multiplier(iteration, 0) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        theirs.step()


def test_momentum_while_the_learning_rate_changes(rng):
    """Equal while it is constant; then different, as the page says."""
    w, theirs = np.zeros(4), torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([theirs], lr=0.1, momentum=0.9)
    rule, differences = make_update_rule("momentum", {"learning_rate": 0.1}), []
    for step in range(6):
        factor = 1.0 if step < 4 else 0.1
        optimizer.param_groups[0]["lr"] = 0.1 * factor
        gradient = rng.standard_normal(4)
        theirs.grad = torch.tensor(gradient)
        optimizer.step()
        rule.step(w, gradient, multiplier=factor)
        differences.append(np.abs(w - theirs.detach().numpy()).max())
    assert max(differences[:4]) < 1e-14
    assert differences[-1] > 1e-3
