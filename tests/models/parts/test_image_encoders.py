"""Encoders of images: gradients, and the outputs that a decoder gets."""

import numpy as np
import pytest

from rnnlab.models.parts.image_encoders import (
    ImageVectorEncoder,
    InitialStateEncoder,
    RegionEncoder,
    build_image_encoder,
)
from rnnlab.models.parts.values import Source

from .. import toys
from .checks import D, H, N, P, assert_part, dropout_rng, random_parameters


@pytest.mark.parametrize("project_cell", [False, True])
@pytest.mark.parametrize("activation", ["none", "tanh"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_initial_state_encoder(project_cell, activation, dropout, rng):
    part = InitialStateEncoder(D, H, 2, activation=activation, project_cell=project_cell, dropout=dropout)

    def forward(params, features):
        source, cache = part.forward(params, features, rng=dropout_rng())
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
        source, cache = part.forward(params, features, rng=dropout_rng())
        assert [array.shape for array in source.state] == [(N, H)] * 2
        assert not np.any(source.state)
        assert source.zero_state
        return source.image, cache

    def backward(dimage, cache, grads):
        return (part.backward(Source((), dimage), cache, grads),)

    assert_part(part, forward, backward, {"features": rng.standard_normal((N, D))}, rng)


@pytest.mark.parametrize("global_dim", [None, P])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_region_encoder(global_dim, dropout, rng):
    initial_state = InitialStateEncoder(
        global_dim or D, H, 1, activation="tanh", dropout=dropout if global_dim else 0.0
    )
    part = RegionEncoder(initial_state, dropout=dropout)
    inputs = {"regions": rng.standard_normal((N, 2, D))}
    if global_dim:
        inputs["vector"] = rng.standard_normal((N, P))

    def forward(params, regions, vector=None):
        features = regions if vector is None else (regions, vector)
        source, cache = part.forward(params, features, rng=dropout_rng())
        assert source.image is None
        assert not source.memory_gradient
        return source.memory, *source.state, cache

    def backward(dmemory, dstate, cache, grads):
        dfeatures = part.backward(Source((dstate,), memory=dmemory), cache, grads)
        return dfeatures if global_dim else (dfeatures,)

    assert_part(part, forward, backward, inputs, rng)


@pytest.mark.parametrize("global_dim", [None, P])
def test_regions_without_a_gradient_of_the_memory(global_dim, rng):
    part = RegionEncoder(InitialStateEncoder(global_dim or D, H, 1))
    regions, vector = rng.standard_normal((N, 2, D)), rng.standard_normal((N, P))
    features = regions if global_dim is None else (regions, vector)

    def backward(dstate, cache, grads):
        assert part.backward(Source((dstate,)), cache, grads, input_gradient=False) is None
        return ()

    def forward(params):
        source, cache = part.forward(params, features)
        np.testing.assert_array_equal(source.memory, regions)
        return *source.state, cache

    assert_part(part, forward, backward, {}, rng)


@pytest.mark.parametrize("project_cell", [False, True])
def test_the_gradient_of_the_inputs_is_an_option(project_cell, rng):
    initial_state = InitialStateEncoder(D, H, 2, project_cell=project_cell, dropout=0.3)
    features, regions = rng.standard_normal((N, D)), rng.standard_normal((N, 2, D))
    for part, given in [
        (initial_state, features),
        (ImageVectorEncoder(D, P, H, 2, dropout=0.3), features),
        (RegionEncoder(initial_state, dropout=0.3), regions),
        (RegionEncoder(initial_state, dropout=0.3), (regions, features)),
    ]:
        params = random_parameters(part, rng)
        source, cache = part.forward(params, given, rng=dropout_rng())
        dsource = Source(source.state, source.image, memory=source.memory)
        grads, expected = params.zeros_like(), params.zeros_like()
        assert part.backward(dsource, cache, expected) is not None
        assert part.backward(dsource, cache, grads, input_gradient=False) is None
        assert grads.flat.any()
        np.testing.assert_array_equal(grads.flat, expected.flat)


def test_the_mean_of_the_regions_is_taken_after_dropout(rng):
    part = RegionEncoder(InitialStateEncoder(D, H, 1), dropout=0.5)
    params, regions = random_parameters(part, rng), rng.standard_normal((N, 2, D))
    source, _ = part.forward(params, regions, rng=dropout_rng())
    assert (source.memory == 0).any()
    expected = source.memory.mean(axis=1) @ params["W_proj"] + params["b_proj"]
    np.testing.assert_allclose(source.state[0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "kind", "dropout"),
    [
        ({}, InitialStateEncoder, 0.3),
        ({"image_input": "first_input"}, ImageVectorEncoder, 0.3),
        ({"image_input": "second_layer"}, ImageVectorEncoder, 0.3),
        ({"attention": "dot"}, RegionEncoder, 0.3),
        ({"attention": "dot", "global_dim": toys.G}, RegionEncoder, 0.3),
        ({"target_attention": True}, InitialStateEncoder, 0.3),
    ],
    ids=str,
)
def test_the_options_choose_an_encoder(options, kind, dropout):
    encoder = build_image_encoder(1, toys.build()._options | {"feature_dropout": dropout} | options)
    assert type(encoder) is kind
    assert encoder.dropout == dropout
    if kind is RegionEncoder:  # the mean of regions is not dropped twice
        assert encoder.initial_state.dropout == (dropout if "global_dim" in options else 0)
    rows = {"W_proj": (options.get("global_dim") or toys.D)}
    assert all(encoder.shapes()[name][0] == size for name, size in rows.items())
