"""The parts of a model as layers: the gradients of their inputs and of their parameters."""

import numpy as np
import pytest

from rnnlab.gradcheck.cases import CELLS
from rnnlab.layers import Regularisation
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.models.parts.decoders import Decoded, FactoredDecoder, FirstInputDecoder, RecurrentDecoder
from rnnlab.models.parts.embedding import DeepOutput, LinearOutput, Readout, WordEmbedding
from rnnlab.models.parts.encoders import ImageVectorEncoder, InitialStateEncoder, Source
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.parameters import Parameters

from ...layers.reference import assert_gradients

N, T, D, W, H, P, V = 3, 4, 5, 3, 4, 2, 6
LENGTHS = np.array([4, 2, 0])

DECODERS = {
    "initial_state": lambda cell: RecurrentDecoder(cell, W, H),
    "every_step": lambda cell: RecurrentDecoder(cell, W, H, image_dim=P),
    "first_input": lambda cell: FirstInputDecoder(cell, W, H),
    "second_layer": lambda cell: FactoredDecoder(cell, W, H, image_dim=P),
}
every_decoder = pytest.mark.parametrize("decoder", DECODERS)
every_cell = pytest.mark.parametrize("cell", CELLS)


def recurrence(cell):
    return Recurrence(cell_for("f", cell), Regularisation())


def random_parameters(part, rng):
    params = Parameters(part.shapes(), np.float64)
    params.flat[...] = rng.uniform(-0.8, 0.8, params.flat.size)
    return params


def noise():
    return np.random.default_rng(1)


def assert_part(part, forward, backward, inputs, rng):
    """Gradients of inputs and parameters, the latter added to what is there.

    ``forward(params, **inputs) -> *outs, cache``; ``backward(*douts, cache, grads) -> dinputs``.
    """
    params = random_parameters(part, rng)

    def run(**arrays):
        return forward(params, **{name: arrays[name] for name in inputs})

    def run_back(*douts):
        *douts, cache = douts
        grads = params.zeros_like()
        grads.flat[...] = 1
        dinputs = backward(*douts, cache, grads)
        return *dinputs, *(grads[name] - 1 for name in params)

    assert_gradients(run, run_back, {**inputs, **params}, rng)


@every_decoder
@every_cell
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_decoders(decoder, cell, lengths, rng):
    part = DECODERS[decoder](recurrence(cell))
    inputs = {"words": rng.standard_normal((N, T, W))}
    if decoder != "initial_state":
        inputs["image"] = rng.standard_normal((N, W if decoder == "first_input" else P))
    inputs |= {f"state{k}": rng.standard_normal((N, H)) for k in range(part.num_states)}

    def forward(params, words, image=None, **state):
        decoded, cache = part.forward(params, words, Source(tuple(state.values()), image), lengths)
        return decoded.hidden, decoded.first, cache

    def backward(dhidden, dfirst, cache, grads):
        dwords, dsource = part.backward(Decoded(dhidden, first=dfirst), cache, grads)
        return dwords, *(() if dsource.image is None else (dsource.image,)), *dsource.state

    assert_part(part, forward, backward, inputs, rng)


@every_decoder
def test_the_state_before_the_words(decoder, rng):
    """What the encoder made, or the decoder made of the image; zeros are not worth a mention."""
    part = DECODERS[decoder](recurrence("lstm"))
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    image = None if decoder == "initial_state" else rng.standard_normal((N, W if "first" in decoder else P))
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    for zero_state in (False, True):
        source = Source(state, image, zero_state=zero_state)
        decoded, _ = part.forward(params, words, source, LENGTHS)
        if decoder == "first_input":
            (started, _, _) = part.start(params, source)
            np.testing.assert_allclose(decoded.first, started[0], rtol=1e-12)
        elif zero_state:
            assert decoded.first is None
        else:
            np.testing.assert_array_equal(decoded.first, state[-2])


@every_decoder
def test_hidden_states_stand_still_past_the_end(decoder, rng):
    part = DECODERS[decoder](recurrence("lstm"))
    image = rng.standard_normal((N, W if decoder == "first_input" else P))
    image = None if decoder == "initial_state" else image
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    words = rng.standard_normal((N, T, W))
    decoded, _ = part.forward(random_parameters(part, rng), words, Source(state, image), LENGTHS)
    for row, length in zip(decoded.hidden, LENGTHS, strict=True):
        still = row[max(length - 1, 0) :]
        np.testing.assert_array_equal(still, np.broadcast_to(still[0], still.shape))
        assert length < 2 or (row[length - 1] != row[length - 2]).all()


@every_decoder
@every_cell
def test_a_decoder_decodes_as_it_trains(decoder, cell, rng):
    part = DECODERS[decoder](recurrence(cell))
    params = random_parameters(part, rng)
    words = rng.standard_normal((N, T, W))
    image = rng.standard_normal((N, W if decoder == "first_input" else P))
    image = None if decoder == "initial_state" else image
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    decoded, _ = part.forward(params, words, Source(state, image), None)
    decoding = part.start(params, Source(state, image))
    for t in range(T):
        step, decoding = part.advance(words[:, t], decoding)
        np.testing.assert_allclose(step.hidden, decoded.hidden[:, t], rtol=1e-12)


@pytest.mark.parametrize("project_cell", [False, True])
@pytest.mark.parametrize("activation", ["none", "tanh"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_initial_state_encoder(project_cell, activation, dropout, rng):
    part = InitialStateEncoder(D, H, 2, activation=activation, project_cell=project_cell, dropout=dropout)

    def forward(params, features):
        source, cache = part.forward(params, features, rng=noise())
        assert source.image is source.memory is None
        assert len(source.state) == 2
        assert project_cell or not source.state[1].any()
        assert not source.zero_state
        return *source.state, cache

    def backward(*arguments):
        *dstate, cache, grads = arguments
        return (part.backward(Source(tuple(dstate)), cache, grads),)

    assert_part(part, forward, backward, {"features": rng.standard_normal((N, D))}, rng)


def test_image_vector_encoder(rng):
    part = ImageVectorEncoder(D, P, H, 2, dropout=0.3)

    def forward(params, features):
        source, cache = part.forward(params, features, rng=noise())
        assert [array.shape for array in source.state] == [(N, H)] * 2
        assert not np.any(source.state)
        assert source.zero_state
        return source.image, cache

    def backward(dimage, cache, grads):
        return (part.backward(Source((), dimage), cache, grads),)

    assert_part(part, forward, backward, {"features": rng.standard_normal((N, D))}, rng)


def test_word_embedding(rng):
    part, tokens = WordEmbedding(V, W, dropout=0.3), rng.integers(V, size=(N, T))

    def backward(dwords, cache, grads):
        part.backward(dwords, cache, grads)
        return ()

    assert_part(part, lambda params: part.forward(params, tokens, rng=noise()), backward, {}, rng)


def test_linear_output(rng):
    part = LinearOutput(H, V, dropout=0.3)

    def backward(dscores, cache, grads):
        return (part.backward(dscores, cache, grads).hidden,)

    assert_part(
        part,
        lambda params, hidden: part.forward(params, Readout(hidden), rng=noise()),
        backward,
        {"hidden": rng.standard_normal((N, H))},
        rng,
    )


@pytest.mark.parametrize("context_dim", [0, P])
def test_deep_output(context_dim, rng):
    part = DeepOutput(H, context_dim, W, V, dropout=0.3)
    names = ["hidden", "contexts", "words"] if context_dim else ["hidden", "words"]

    def forward(params, **inputs):
        return part.forward(params, Readout(**inputs), rng=noise())

    def backward(dscores, cache, grads):
        dreadout = part.backward(dscores, cache, grads)
        return tuple(getattr(dreadout, name) for name in names)

    sizes = {"hidden": H, "contexts": P, "words": W}
    assert_part(part, forward, backward, {name: rng.standard_normal((N, sizes[name])) for name in names}, rng)
