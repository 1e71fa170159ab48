"""The whole model written again in PyTorch, with autograd: the same loss and the same gradients."""

import numpy as np
import pytest

from rnnlab.layers import dropout_forward

from .toys import DROPOUT, NULL, PLAIN, H, W, batch, build, name_of

ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
RECONSTRUCTING = [
    options | ARNET | {"detach_target": detach}
    for options in PLAIN
    for detach in (False, True)
    if options["cell_type"] in ("lstm", "gru")
]

torch = pytest.importorskip("torch")


def rnn_step(x, state, Wx, Wh, b):
    return (torch.tanh(x @ Wx + state[0] @ Wh + b),)


def lstm_step(x, state, Wx, Wh, b):
    h, c = state
    i, f, o, g = (x @ Wx + h @ Wh + b).chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(x, state, Wx, Wh, b):
    (h,) = state
    from_x, (Wh_zr, Wh_h) = x @ Wx + b, Wh.split([2 * H, H], dim=1)
    z, r = (from_x[:, : 2 * H] + h @ Wh_zr).sigmoid().chunk(2, dim=1)
    return (torch.lerp((from_x[:, 2 * H :] + (r * h) @ Wh_h).tanh(), h, z),)


def simplified_gru_step(x, state, Wx, Wh, b):
    (h,) = state
    z, g = (x @ Wx + h @ Wh + b).chunk(2, dim=1)
    return (torch.lerp(g.tanh(), h, z.sigmoid()),)


STEPS = {"rnn": rnn_step, "lstm": lstm_step, "gru": gru_step, "simplified_gru": simplified_gru_step}


def torch_loss(params, features, captions, noise, *, cell_type, image_input="initial_state", **options):
    """Teacher forcing written as a loop; ``noise`` multiplies features, words and scored hidden states.

    Returns the loss, and with their gradients the word vectors (N, T, W) and the hidden states, each (N, H).
    """
    features = features * torch.tensor(noise["features"])
    zeros = torch.zeros(len(captions), H, dtype=torch.float64)
    step, states = STEPS[cell_type], 2 if cell_type == "lstm" else 1

    def projected(key, activation="none"):
        out = features @ params[f"W{key}"] + params[f"b{key}"]
        return out.tanh() if activation == "tanh" else out

    def weights(layer=""):
        return tuple(params[f"{layer}{name}"] for name in ("Wx", "Wh", "b"))

    activation = options.get("state_activation", "none")
    lower, upper = (zeros,) * states, (zeros,) * states
    if image_input == "initial_state":
        cell = (projected("_proj_c", activation),) if options.get("project_cell") else (zeros,)
        lower = (projected("_proj", activation), *cell)[:states]
    else:
        image = projected("_proj")
    if image_input == "first_input":
        lower = step(image, lower, *weights())

    before = lower[0] if image_input in ("initial_state", "first_input") else None  # the state, if not zero

    vectors = params["W_embed"][torch.tensor(captions[:, :-1], dtype=torch.long)]
    words, hidden = vectors * torch.tensor(noise["words"]), []
    for t in range(words.shape[1]):
        if image_input == "second_layer":
            lower = step(words[:, t], lower, *weights("layer1_"))
            upper = step(torch.cat([lower[0], image], dim=1), upper, *weights("layer2_"))
            hidden.append(upper[0])
        else:
            x = torch.cat([words[:, t], image], dim=1) if image_input == "every_step" else words[:, t]
            lower = step(x, lower, *weights())
            hidden.append(lower[0])
    targets = torch.tensor(captions[:, 1:], dtype=torch.long)
    last = (targets != NULL) * torch.arange(
        1, targets.shape[1] + 1
    )  # the decoder reads up to the last target
    real = torch.arange(targets.shape[1]) < last.amax(dim=1, keepdim=True)

    def reconstruction():
        total, state = 0, (torch.zeros(len(captions), ARNET["reconstructor_dim"], dtype=torch.float64),) * 2
        for t, target in enumerate([before, *hidden[:-1]] if ARNET.keys() <= options.keys() else []):
            state = lstm_step(hidden[t], state, *(params[f"arnet_{name}"] for name in ("Wx", "Wh", "b")))
            if target is not None:
                target = target.detach() if options["detach_target"] else target
                errors = state[0] @ params["arnet_W"] + params["arnet_b_out"] - target
                total += (errors.square().sum(dim=1) * real[:, t]).sum()
        return total

    scored = torch.stack(hidden, dim=1)[targets != NULL] * torch.tensor(noise["hidden"])
    scores = scored @ params["W_vocab"] + params["b_vocab"]
    nll = torch.nn.functional.cross_entropy(scores, targets[targets != NULL], reduction="sum")
    for each in (vectors, *hidden):
        each.retain_grad()
    loss = (nll + options.get("reconstruction", 0) * reconstruction()) / len(captions)
    return loss, vectors, hidden


@pytest.mark.parametrize("options", PLAIN + RECONSTRUCTING, ids=name_of)
@pytest.mark.parametrize("dropout", [{}, DROPOUT], ids=["plain", "dropout"])
def test_loss_and_gradients(options, dropout, rng):
    model = build(**options, **dropout)
    features, captions = batch(rng)
    generator = np.random.default_rng(2) if dropout else None
    loss, grads, inputs = model.loss(features, captions, rng=generator, inputs=True)

    N, T = captions.shape[0], captions.shape[1] - 1
    source = np.random.default_rng(2)  # drawn from as the model does: features, words, hidden states
    shapes = {"features": features.shape, "words": (N, T, W), "hidden": ((captions[:, 1:] != NULL).sum(), H)}
    rates = dropout.values() if dropout else [0.0] * 3
    noise = {
        name: dropout_forward(np.ones(shape), p, rng=source)[0]
        for (name, shape), p in zip(shapes.items(), rates, strict=True)
    }
    params = {name: torch.tensor(array, requires_grad=True) for name, array in model.params.items()}
    features = torch.tensor(features, requires_grad=True)
    expected, vectors, hidden = torch_loss(params, features, captions, noise, **options)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    expected_grads = {name: array.grad for name, array in params.items()}
    expected_grads |= {"features": features.grad, "words": vectors.grad}
    expected_grads["hidden"] = torch.stack([each.grad for each in hidden], dim=1)
    for name, grad in {**grads, **inputs._asdict()}.items():
        np.testing.assert_allclose(grad, expected_grads[name], rtol=1e-9, atol=1e-13, err_msg=name)
