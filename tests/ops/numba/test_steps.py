"""Which steps run at once, how they are divided among threads, and what arguments are refused."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from hypothesis import given
from hypothesis import strategies as st

from rnnlab.ops import numba as numba_ops
from rnnlab.ops.numba import bfloat16, kernel, products, steps
from rnnlab.ops.numba.kernel import always_parallel
from rnnlab.ops.precision import products_in
from rnnlab.ops.steps import Steps

from ..chunk_cases import CELLS, Chunk
from .compare import strided

every_cell = pytest.mark.parametrize("cell", CELLS)


def lengths_to_alive(lengths):
    return [sum(length > t for length in lengths) for t in range(max(lengths))]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 5))
def test_edges_divide_all_sequences(lengths, parts):
    counts = np.array(lengths_to_alive(lengths))
    found = steps.edges_of_parts(counts, parts)
    assert found.dtype == np.int64
    assert found.shape == (parts + 1,)
    assert found[0] == 0
    assert found[-1] == len(lengths)
    assert (np.diff(found) >= 0).all()


def test_parts_have_about_the_same_number_of_steps():
    counts = np.array(lengths_to_alive([100] * 4 + [10] * 40))
    assert steps.edges_of_parts(counts, 2).tolist() == [0, 4, 44]
    assert steps.edges_of_parts(np.array([10, 10]), 2).tolist() == [0, 5, 10]


def test_large_weights_are_divided(monkeypatch):
    monkeypatch.setattr(kernel, "_threads", 2)
    many = Steps(50, [50] * 20)
    small, large = (products.prepacked(np.zeros((units, units), np.float32)) for units in (256, 1024))
    assert steps.choose_parts([small], many) == (2, True)
    assert steps.choose_parts([small] * 4, many) == (2, True)
    assert steps.choose_parts([small] * 5, many) == (2, False)
    assert steps.choose_parts([large], many) == (2, False)
    monkeypatch.setattr(kernel, "_threads", 1)
    assert steps.choose_parts([large], many) == (1, True)


def test_little_work_is_for_one_thread(monkeypatch):
    monkeypatch.setattr(kernel, "_threads", 2)
    assert steps.choose_parts([products.prepacked(np.zeros((32, 32)))], Steps(4, [4] * 5)) == (1, True)


def run_and_compare(chunk, view=np.copy):
    """Whether the steps ran at once; if not, nothing is written."""
    pairs = []  # each array of the chunk, and what the primitives get in its place

    def kept(array):
        pairs.append((array, view(array)))
        return pairs[-1][1]

    ran = chunk.run(numba_ops, at_once=True, view=kept) is not None
    unchanged = [np.array_equal(array, passed) for array, passed in pairs]
    assert len(unchanged) >= 5
    assert not all(unchanged) if ran else all(unchanged)
    return ran


@every_cell
@pytest.mark.parametrize("units", [1, 2, 7, 16])
def test_weights_that_are_not_worth_packing_for_single_products(units, cell, rng):
    chunk = Chunk(cell, (5, 4, 4), units, float, rng, earlier=1)
    expected, found = (chunk.run(numba_ops, at_once=at_once) for at_once in (False, True))
    for name, array in found.items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=1e-14, err_msg=name)


@every_cell
def test_no_units(cell, rng):
    chunk = Chunk(cell, (5, 4, 4), 40, float, rng)
    chunk.gates, chunk.saved = chunk.gates[:, :0], chunk.saved[:, :0]
    chunk.states = tuple(each[:, :0] for each in chunk.states)
    weights = [np.zeros((0, 0))] * (2 if cell == "gru" else 1)
    assert not steps.steps_forward(cell, chunk.gates, weights, chunk.states, chunk.saved, chunk.steps)


@every_cell
def test_arrays_of_another_layout(cell, rng):
    chunk = Chunk(cell, (5, 4, 4), 40, float, rng)
    assert run_and_compare(chunk)
    assert not run_and_compare(chunk, view=strided)


@every_cell
@pytest.mark.parametrize("number", [0, 1])
def test_steps_that_are_not_several(number, cell, rng):
    chunk = Chunk(cell, (5, 4, 4), 40, float, rng)
    chunk.steps = chunk.steps[:number]
    assert not run_and_compare(chunk)


@every_cell
def test_a_large_weight_with_several_threads(cell, rng, monkeypatch):
    monkeypatch.setattr(kernel, "_threads", 2)
    monkeypatch.setattr(steps, "SMALL", 0)
    with always_parallel():
        assert run_and_compare(Chunk(cell, (5, 4, 4), 40, float, rng)) == (cell == "lstm")


@pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())
@every_cell
@pytest.mark.parametrize("units", [7, 40])
def test_rounded_factors(units, cell, rng):
    with products_in("bfloat16"):
        assert run_and_compare(Chunk(cell, (5, 4, 4), units, np.float32, rng))


def flat(value):
    return [value] if isinstance(value, np.ndarray) else list(value)


def call(way, chunk, **changed):
    """Call the primitive for a chunk, some arguments of which are changed by name."""
    run = chunk.prepared(numba_ops)
    gates, states, saved = chunk.forward_arrays()
    weights = [getattr(product, f"{way}_weight") for product in run.prepared._products]
    arguments = {"gates": gates, "weights": weights, "states": states, "saved": saved, "steps": chunk.steps}
    if way == "backward":
        arguments |= dict(zip(("dh", "dstate", "da"), chunk.backward_arrays(), strict=True))
    for name, change in changed.items():
        arguments[name] = change(run.masks if name == "masks" else arguments[name])
    others = {"weights", "steps", "masks"}
    arrays = [array for name in arguments.keys() - others for array in flat(arguments[name])]
    before = [np.copy(array) for array in arrays]
    function = {"forward": steps.steps_forward, "backward": steps.steps_backward}[way]
    try:
        return function(chunk.cell, **{"masks": run.masks, **arguments})
    finally:
        for array, kept in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, kept)


def narrower(array):
    return array[:, :-1].copy()


def shorter(array):
    return array[:-1].copy()


def rounded(array):
    return array.astype(np.float32)


def first(change):
    return lambda arrays: (change(arrays[0]), *arrays[1:])


@every_cell
@pytest.mark.parametrize(
    ("way", "changed"),
    [
        ("forward", {"gates": narrower}),
        ("forward", {"gates": shorter}),
        ("forward", {"states": first(shorter)}),
        ("forward", {"states": first(rounded)}),
        ("forward", {"weights": lambda weights: [*weights, weights[0]]}),
        ("backward", {"gates": shorter}),
        ("backward", {"states": first(narrower)}),
        ("backward", {"states": first(shorter)}),
        ("backward", {"da": narrower}),
        ("backward", {"da": shorter}),
        ("backward", {"dh": shorter}),
        ("backward", {"dstate": first(shorter)}),
        ("backward", {"dstate": first(rounded)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_arguments_that_do_not_fit(way, changed, cell, rng):
    with pytest.raises((ValueError, TypeError), match=r"^(steps|_\w+_steps)_(forward|backward): "):
        call(way, Chunk(cell, (5, 5, 4), 40, float, rng), **changed)


@every_cell
@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize(
    "weight",
    [np.zeros((32, 40)), np.zeros((40, 48)), np.zeros((40, 40), np.float32)],
    ids=["rows", "columns", "dtype"],
)
def test_a_weight_that_does_not_fit(weight, way, cell, rng):
    with pytest.raises((ValueError, TypeError), match=rf"^steps_{way}: a weight has "):
        call(
            way,
            Chunk(cell, (5, 5, 4), 40, float, rng),
            weights=lambda own: [products.prepacked(weight), *own[1:]],
        )


@every_cell
@pytest.mark.parametrize("way", ["forward", "backward"])
def test_slices_are_no_steps(way, cell, rng):
    with pytest.raises(TypeError, match=f"steps_{way}: steps is a tuple, expected Steps"):
        call(way, Chunk(cell, (5, 5, 4), 40, float, rng), steps=tuple)


@every_cell
@pytest.mark.parametrize("beyond", [Steps(5, (5, 5, 4, 4)), Steps(6, (5, 5, 4))])
def test_steps_beyond_the_arrays(beyond, cell, rng):
    with pytest.raises(ValueError, match="^steps_forward: .* rows, expected at least"):
        call("forward", Chunk(cell, (5, 5, 4), 40, float, rng), steps=lambda _: beyond)


@every_cell
def test_a_mask_of_the_state_that_is_too_short(cell, rng):
    chunk = Chunk(cell, (5, 5, 4), 40, float, rng, regularisation={"recurrent_dropout": 0.5})
    chunk.steps = Steps(6, (6, 4, 4))
    with pytest.raises(ValueError, match="^steps_forward: state has 5 rows, expected at least 6"):
        call("forward", chunk, states=lambda states: [np.vstack([each, each]) for each in states])


def test_a_cell_without_kernels(rng):
    chunk = Chunk("rnn", (5, 5, 4), 40, float, rng)
    with pytest.raises(ValueError, match="steps_forward: cell is 'peephole', expected one of rnn, lstm, gru"):
        steps.steps_forward("peephole", chunk.gates, [chunk.Wh], chunk.states, chunk.saved, chunk.steps)


@every_cell
@pytest.mark.parametrize(
    ("way", "changed", "message"),
    [
        ("forward", {"states": lambda states: (*states, states[0])}, r"[23] states are given, expected [12]"),
        ("backward", {"dstate": lambda dstate: (*dstate, dstate[0])}, r"[23] arrays of dstate are given"),
        ("backward", {"dh": np.ravel}, r"dh has shape \(560,\), expected 2 axes"),
        ("backward", {"da": np.ndarray.tolist}, "da is list, expected a NumPy array"),
    ],
    ids=["states", "dstate", "axes", "list"],
)
def test_arrays_that_are_not_those_of_a_cell(way, changed, message, cell, rng):
    with pytest.raises((ValueError, TypeError), match=f"^steps_{way}: {message}"):
        call(way, Chunk(cell, (5, 5, 4), 40, float, rng), **changed)


@every_cell
@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zoneout": (0.3,)}, "1 probabilities of zoneout are given, expected 2"),
        ({"seeds": [5, 7]}, "2 seeds are given, expected 3"),
    ],
    ids=["zoneout", "seeds"],
)
def test_masks_that_are_not_complete(change, message, way, cell, rng):
    chunk = Chunk(cell, (5, 5, 4), 40, float, rng, regularisation={"zoneout_h": 0.3})
    with pytest.raises(ValueError, match=f"^steps_{way}: {message}"):
        call(way, chunk, masks=lambda masks: masks._replace(steps=masks.steps._replace(**change)))
