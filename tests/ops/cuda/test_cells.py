"""One step of each recurrent cell on CuPy against the reference."""

import importlib

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from ..cases import GATES, SHAPES, TOLERANCE, WITHOUT_MASKS, cell_arguments, run_regularised, step_masks
from .compare import assert_same, every_dtype

SEEDS = [11, 2**63 - 1, (5 << 32) + 7]


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", WITHOUT_MASKS)
def test_cells(name, shape, ops, dtype, normal):
    assert_same(ops, name, cell_arguments(name, *shape, normal))


@every_dtype
def test_gates_that_are_almost_closed_have_their_relative_precision(ops, dtype):
    a, prev_c = np.repeat(np.array([[-15.0, -20.0, -40.0, 40.0]], dtype), 4, axis=0), np.ones((4, 1), dtype)
    gates, c, h = ops.asarray(a), ops.empty((4, 1), dtype), ops.empty((4, 1), dtype)
    ops.lstm_forward(gates, ops.asarray(prev_c), c, ops.empty((4, 1), dtype), h)
    expected = np.exp(a[:, :3]) / (1 + np.exp(a[:, :3]))
    np.testing.assert_allclose(ops.asnumpy(gates)[:, :3], expected, rtol=4 * np.finfo(dtype).eps)


@every_dtype
@pytest.mark.parametrize("name", WITHOUT_MASKS)
def test_cells_do_not_swallow_what_is_not_finite(name, ops, dtype, normal):
    arguments = cell_arguments(name, 4, 20, normal)
    for k, array in enumerate(arguments):
        spoilt = [a.copy() for a in arguments]
        spoilt[k][array.shape[0] // 2, ::3] = np.nan
        assert_same(ops, name, spoilt)


# ---------------------------------------------------------------- with dropout and zoneout


def placed(seeds):
    """Seeds that kernels must read from memory, since the numbers that they are passed are others."""
    graphs = importlib.import_module("rnnlab.ops.cuda.graphs")
    graph = graphs.GraphParameters()
    others = [graphs.Seed(seed ^ 1) for seed in seeds]
    for other, seed in zip(others, graph.seeds(seeds), strict=True):
        other.address = seed.address
    graph.send()
    return others


@every_dtype
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (130, 70), (0, 4)], ids=str)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("seeds", ["numbers", "addresses", "inference"])
def test_regularised_steps(seeds, cell, shape, ops, dtype):
    for masks in step_masks(cell):
        drawn = masks._replace(seeds=None if seeds == "inference" else SEEDS, start=12345)
        given = drawn._replace(seeds=placed(SEEDS)) if seeds == "addresses" else drawn
        expected = run_regularised(numpy_ops, cell, *shape, drawn, np.random.default_rng(3), dtype)
        found = run_regularised(ops, cell, *shape, given, np.random.default_rng(3), dtype)
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=f"{name}, {masks}")


@every_dtype
@pytest.mark.parametrize("cell", GATES)
def test_one_launch_for_a_regularised_step(cell, simulated, dtype):
    ops, masks = importlib.import_module("rnnlab.ops.cuda"), step_masks(cell)[-1]._replace(seeds=SEEDS)
    simulated.launches.clear()
    run_regularised(ops, cell, 5, 3, masks, np.random.default_rng(3), dtype)
    assert simulated.launches == {f"{cell}_regularised_forward": 1, f"{cell}_regularised_backward": 1}
