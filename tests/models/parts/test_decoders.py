"""Decoders: gradients of inputs and parameters, padding, and decoding steps against whole sequences."""

import numpy as np
import pytest

from rnnlab.gradcheck.cases import CELLS
from rnnlab.gradcheck.numeric import eval_numerical_gradient, relative_distance
from rnnlab.models import Seq2Seq
from rnnlab.models.parts.attentive_decoder import AttentiveDecoder
from rnnlab.models.parts.decoders import (
    FirstInputDecoder,
    RecurrentDecoder,
    StackedDecoder,
    build_decoder,
    num_decoder_layers,
)
from rnnlab.models.parts.values import Decoded, Source

from ...layers.shifted import shift_states
from ..toys import WORD_TO_IDX, build
from .checks import (
    LENGTHS,
    H,
    N,
    P,
    T,
    W,
    assert_decodes,
    assert_part,
    dropout_rng,
    random_parameters,
    recurrence,
)


def stacked(cell, *image_dims):
    """A decoder of several layers, each of which may read an image vector."""
    first, *above = image_dims
    return StackedDecoder(
        RecurrentDecoder(cell, W, H, image_dim=first),
        [RecurrentDecoder(cell, H, H, image_dim=image_dim) for image_dim in above],
    )


DECODERS = {
    "initial_state": lambda cell: RecurrentDecoder(cell, W, H),
    "every_step": lambda cell: RecurrentDecoder(cell, W, H, image_dim=P),
    "first_input": lambda cell: FirstInputDecoder(RecurrentDecoder(cell, W, H)),
    "second_layer": lambda cell: stacked(cell, 0, P),
    "initial_state, 3 layers": lambda cell: stacked(cell, 0, 0, 0),
    "every_step, 2 layers": lambda cell: stacked(cell, P, 0),
    "first_input, 2 layers": lambda cell: FirstInputDecoder(stacked(cell, 0, 0)),
    "second_layer, 3 layers": lambda cell: stacked(cell, 0, P, 0),
}
every_decoder = pytest.mark.parametrize("decoder", DECODERS)
every_cell = pytest.mark.parametrize("cell", CELLS)


def image_for(decoder, rng):
    """Image vectors for one of the decoders; None if it reads none."""
    if decoder.startswith("initial_state"):
        return None
    return rng.standard_normal((N, W if decoder.startswith("first_input") else P))


@pytest.mark.one_in(2)
@every_decoder
@every_cell
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_gradients(decoder, cell, lengths, rng):
    part = DECODERS[decoder](recurrence(cell))
    inputs = {"words": rng.standard_normal((N, T, W))}
    if (image := image_for(decoder, rng)) is not None:
        inputs["image"] = image
    inputs |= {f"state{k}": rng.standard_normal((N, H)) for k in range(part.num_states)}

    def forward(params, words, image=None, **state):
        decoded, cache = part.forward(params, words, Source(tuple(state.values()), image), lengths)
        return decoded.hidden, *(() if decoded.first is None else (decoded.first,)), cache

    def backward(dhidden, *rest):
        *dfirst, cache, grads = rest
        dwords, dsource = part.backward(Decoded(dhidden, first=dfirst[0] if dfirst else None), cache, grads)
        return dwords, *(() if dsource.image is None else (dsource.image,)), *dsource.state

    assert_part(part, forward, backward, inputs, rng)


@every_decoder
def test_the_state_before_the_words(decoder, rng):
    """``first`` is the initial state, or the state after the image; None for a state of zeros."""
    part = DECODERS[decoder](recurrence("lstm"))
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    image, state = image_for(decoder, rng), tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    for zero_state in (False, True):
        source = Source(state, image, zero_state=zero_state)
        decoded, _ = part.forward(params, words, source, LENGTHS)
        if decoder == "first_input":
            (started, _, _) = part.start(params, source)
            np.testing.assert_allclose(decoded.first, started[0], rtol=1e-12)
        elif decoder == "first_input, 2 layers":
            (_, ((started, _, _),)) = part.start(params, source)
            np.testing.assert_allclose(decoded.first, started[0], rtol=1e-12)
        elif zero_state or isinstance(part, StackedDecoder):
            assert decoded.first is None
        else:
            np.testing.assert_array_equal(decoded.first, state[-2])


@every_decoder
def test_padding_carries_the_state_through(decoder, rng):
    part = DECODERS[decoder](recurrence("lstm"))
    image, state = image_for(decoder, rng), tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    words = rng.standard_normal((N, T, W))
    decoded, _ = part.forward(random_parameters(part, rng), words, Source(state, image), LENGTHS)
    for row, length in zip(decoded.hidden, LENGTHS, strict=True):
        padding = row[max(length - 1, 0) :]
        np.testing.assert_array_equal(padding, np.broadcast_to(padding[0], padding.shape))
        assert length < 2 or (row[length - 1] != row[length - 2]).all()


@every_decoder
@every_cell
def test_a_decoder_decodes_as_it_trains(decoder, cell, rng):
    part = DECODERS[decoder](recurrence(cell))
    image, state = image_for(decoder, rng), tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    assert_decodes(part, Source(state, image), rng)


@every_decoder
def test_the_whole_gradient_of_the_states(decoder, rng, monkeypatch):
    """Of the layer whose states the decoder returns, at the words' steps."""
    part = DECODERS[decoder](recurrence("lstm"))
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    image = image_for(decoder, rng)
    source = Source(tuple(rng.standard_normal((N, H)) for _ in range(part.num_states)), image)
    decoded, cache = part.forward(params, words, source, LENGTHS)
    whole, shift = np.full((N, T, H), np.nan), np.zeros((N, T, H))
    part.backward(Decoded(np.cos(decoded.hidden)), cache, params.zeros_like(), total_dh=whole)
    recurrent = params[[name for name in part.shapes() if name.endswith("Wh")][-1]]  # of the last layer
    shift_states(monkeypatch, recurrent, shift, LENGTHS, early=int(decoder.startswith("first_input")))

    def loss(_):
        return float(np.sin(part.forward(params, words, source, LENGTHS)[0].hidden).sum())

    assert relative_distance(whole, eval_numerical_gradient(loss, shift, verbose=False)) < 1e-8


@pytest.mark.parametrize("target", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_layers_above_attention(target, dropout, rng):
    """Gradients of all inputs and parameters, and one step at a time."""
    cell = recurrence("lstm")
    first = AttentiveDecoder(cell, W, H, memory_dim=P, attention_dim=3, target=target)
    part = StackedDecoder(first, [RecurrentDecoder(cell, H, H)], dropout=dropout)
    kinds = ["source"] + ["target"] * target
    inputs = {"words": rng.standard_normal((N, T, W)), "memory": rng.standard_normal((N, 2, P))}
    inputs |= {f"state{k}": rng.standard_normal((N, H)) for k in range(part.num_states)}

    def forward(params, words, memory, **state):
        source = Source(tuple(state.values()), memory=memory)
        decoded, cache = part.forward(params, words, source, LENGTHS, dropout_rng())
        return decoded.hidden, decoded.contexts, *decoded.weights.values(), cache

    def backward(dhidden, dcontexts, *rest):
        *dweights, cache, grads = rest
        ddecoded = Decoded(dhidden, dcontexts, dict(zip(kinds, dweights, strict=True)))
        dwords, dsource = part.backward(ddecoded, cache, grads)
        return dwords, dsource.memory, *dsource.state

    assert_part(part, forward, backward, inputs, rng)
    assert_decodes(part, Source((inputs["state0"], inputs["state1"]), memory=inputs["memory"]), rng)


@pytest.mark.parametrize("num_layers", [2, 3])
def test_a_stack_is_that_of_pytorch(num_layers, rng):
    torch = pytest.importorskip("torch")
    part = stacked(recurrence("lstm"), *[0] * num_layers)
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    state = tuple(rng.standard_normal((N, H)) for _ in range(2))
    lstm = torch.nn.LSTM(W, H, num_layers, batch_first=True).double()
    order = np.concatenate([np.arange(H) + H * gate for gate in (0, 1, 3, 2)])  # to i, f, g, o
    with torch.no_grad():
        for k in range(num_layers):
            layer = params.scope(f"layer{k + 1}_")
            for name, value in (("ih", layer["Wx"].T), ("hh", layer["Wh"].T)):
                getattr(lstm, f"weight_{name}_l{k}").copy_(torch.tensor(value[order]))
            getattr(lstm, f"bias_ih_l{k}").copy_(torch.tensor(layer["b"][order]))
            getattr(lstm, f"bias_hh_l{k}").zero_()
    first = [torch.tensor(each[None], requires_grad=True) for each in state]
    above = torch.zeros(num_layers - 1, N, H, dtype=torch.float64)
    x = torch.tensor(words, requires_grad=True)
    expected, _ = lstm(x, tuple(torch.cat([each, above]) for each in first))
    (expected * torch.tensor(np.arange(N * T * H).reshape(N, T, H) / 10)).sum().backward()

    decoded, cache = part.forward(params, words, Source(state), None)
    grads = params.zeros_like()
    dhidden = np.arange(N * T * H).reshape(N, T, H) / 10
    dwords, dsource = part.backward(Decoded(dhidden), cache, grads)
    np.testing.assert_allclose(decoded.hidden, expected.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(dwords, x.grad.numpy(), rtol=1e-8)
    for ours, theirs in zip(dsource.state, first, strict=True):
        np.testing.assert_allclose(ours, theirs.grad.numpy()[0], rtol=1e-8)
    for k in range(num_layers):
        gradient = getattr(lstm, f"weight_hh_l{k}").grad.numpy()
        np.testing.assert_allclose(grads[f"layer{k + 1}_Wh"].T[order], gradient, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, RecurrentDecoder),
        ({"decoder_layers": 2}, StackedDecoder),
        ({"decoder_layers": 1}, RecurrentDecoder),
        ({"decoder_layers": 2, "image_input": "first_input"}, FirstInputDecoder),
        ({"decoder_layers": 2, "attention": "additive"}, StackedDecoder),
        ({"decoder_layers": 2, "target_attention": True}, StackedDecoder),
        ({"image_input": "every_step"}, RecurrentDecoder),
        ({"image_input": "first_input"}, FirstInputDecoder),
        ({"image_input": "second_layer"}, StackedDecoder),
        ({"image_input": "second_layer", "decoder_layers": 3}, StackedDecoder),
        ({"attention": "additive"}, AttentiveDecoder),
        ({"target_attention": True}, AttentiveDecoder),
    ],
    ids=str,
)
def test_the_decoder_of_a_captioning_model(options, kind):
    defaults = build()._options
    decoder = build_decoder(recurrence("gru"), 7, defaults | options)
    assert type(decoder) is kind
    attends, remembers = "attention" in options, "target_attention" in options
    assert decoder.context_dim == 7 * attends + defaults["hidden_dim"] * remembers
    if kind is RecurrentDecoder:
        assert decoder.image_dim == (defaults["wordvec_dim"] if "image_input" in options else 0)
    prefixes = {name.partition("_")[0] for name in decoder.shapes() if name.startswith("layer")}
    layers = options.get("decoder_layers", 2 if options.get("image_input") == "second_layer" else 1)
    assert num_decoder_layers(defaults | options) == layers
    assert len(prefixes) == (layers if layers > 1 else 0)


TRANSLATION = Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, W, H)._options


@pytest.mark.parametrize(
    ("options", "kind", "context_dim"),
    [
        ({"attention": None}, RecurrentDecoder, 0),
        ({"attention": "additive"}, AttentiveDecoder, 7),
        ({"attention": None, "target_attention": True}, AttentiveDecoder, H),
        ({"attention": "additive", "target_attention": True}, AttentiveDecoder, 7 + H),
    ],
    ids=str,
)
def test_the_decoder_of_a_translation_model(options, kind, context_dim):
    decoder = build_decoder(recurrence("gru"), 7, TRANSLATION | options)
    assert type(decoder) is kind
    assert decoder.context_dim == context_dim
    assert getattr(decoder, "attends_to_source", False) == (options["attention"] is not None)


@pytest.mark.parametrize(("given", "units"), [(None, H), (3, 3)])
def test_the_units_of_additive_scores(given, units):
    decoder = build_decoder(recurrence("gru"), 7, TRANSLATION | {"attention_dim": given})
    assert decoder.shapes()["source_v"] == (units,)
