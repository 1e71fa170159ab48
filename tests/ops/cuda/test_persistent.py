"""An LSTM's steps in one launch with barriers, against step by step and against NumPy."""

import importlib

import numpy as np
import pytest

from rnnlab.layers import lstm_backward, lstm_forward
from rnnlab.layers.recurrent import packing
from rnnlab.layers.recurrent.packing import Packing
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.cuda_source import kernel_source
from rnnlab.ops.precision import products_in
from rnnlab.ops.steps import StepInputs, Steps

from ..cases import TOLERANCE
from ..chunk_cases import lstm_steps_backward, lstm_steps_forward

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
NAMES = ["lstm_steps_forward", "lstm_steps_backward"]
# lengths and H: units that do and do not fill their blocks, and rows that do and do not fill four
CASES = {
    "one row": ([4], 8),
    "one step": ([1, 1, 1], 12),
    "one number": ([1], 1),
    "odd": ([3, 3, 3, 3, 3], 13),
    "ragged": ([5, 1, 3, 5, 2, 1, 1, 4, 1, 3], 10),
    "rows of several passes": ([*[3] * 30, *[2] * 7], 11),
    "parts of several blocks": ([*[3] * 9, *[2] * 5, *[1] * 3], 12),
    "ragged, several passes": ([*range(1, 6), *[1] * 6, *range(5), *[4] * 8], 6),
}


@pytest.fixture
def persistent(device):
    return importlib.import_module("rnnlab.ops.cuda.persistent")


@pytest.fixture
def ops(device, persistent):
    return importlib.import_module("rnnlab.ops.cuda")


@pytest.fixture
def launched(persistent, monkeypatch):
    """The names of the kernels that are launched for whole chunks."""
    names = []

    def recording(name, *arguments, **options):
        names.append(name)
        launch(name, *arguments, **options)

    launch = persistent.launch
    monkeypatch.setattr(persistent, "launch", recording)
    return names


@pytest.fixture(params=["few threads", "all threads", "many parts"])
def threads(request, persistent, monkeypatch):
    """Few threads, on few multiprocessors, have more rows than they can work on at a time."""
    persistent.layout_on.cache_clear()
    if request.param == "few threads":
        monkeypatch.setattr(persistent, "THREADS", 64)
        monkeypatch.setattr(persistent, "_limits", lambda device: (2, 49152))
    if request.param == "many parts":
        monkeypatch.setattr(persistent, "_limits", lambda device: (16, 49152))
    yield
    persistent.layout_on.cache_clear()


def forced(monkeypatch, value):
    monkeypatch.setenv("RNNLAB_PERSISTENT", value)


def run(ops, lengths, H, rng, dtype):
    """Both directions over the middle chunk of a sequence, or all of it: every array that they write."""
    lengths = np.array(lengths)
    steps = Packing.of("f", (lengths.size, int(lengths.max())), lengths=lengths, like=np.zeros(1))
    (chunk,) = steps.chunks(4 * H)
    N, M = lengths.size, chunk.size
    normal = lambda *shape: ops.asarray(rng.standard_normal(shape).astype(dtype))  # noqa: E731
    gates, h, c, tanh_c, Wh = (
        normal(M, 4 * H),
        normal(N + M, H),
        normal(N + M, H),
        normal(M, H),
        normal(H, 4 * H),
    )
    forward = [gates, h, c, tanh_c]
    inputs = StepInputs(normal(M, 2), ops.prepacked(normal(2, 4 * H)), normal(4 * H))
    lstm_steps_forward(ops, gates, ops.prepacked(Wh), h, c, tanh_c, chunk.steps, inputs)
    after = [ops.asnumpy(a).copy() for a in forward]
    skipped = len(chunk.steps) // 2  # a chunk that is not the first one
    later = chunk.steps[skipped:]
    m = M - later[0][0].start
    dh, dstate, dcell, da = normal(m, H), normal(N, H), normal(N, H), normal(m, 4 * H)
    lstm_steps_backward(ops, dh, dstate, dcell, gates, c, tanh_c, da, ops.prepacked(Wh.T), later)
    return [*after, *(ops.asnumpy(a) for a in (dh, dstate, dcell, gates, c, tanh_c, da))]


@every_dtype
@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers(case, ops, launched, threads, dtype, monkeypatch):
    seeded = lambda: np.random.default_rng(7)  # noqa: E731
    expected = run(numpy_ops, *CASES[case], seeded(), dtype)
    forced(monkeypatch, "0")
    apart = run(ops, *CASES[case], seeded(), dtype)
    assert launched == []
    forced(monkeypatch, "grid")
    together = run(ops, *CASES[case], seeded(), dtype)
    assert launched == NAMES
    again = run(ops, *CASES[case], seeded(), dtype)
    scale = 30 if dtype == np.float32 else 10
    tolerance = {key: scale * value for key, value in TOLERANCE[dtype].items()}
    for one, same, other, reference in zip(together, again, apart, expected, strict=True):
        np.testing.assert_array_equal(one, same)
        np.testing.assert_allclose(one, other, **tolerance)
        np.testing.assert_allclose(one, reference, **tolerance)


@pytest.mark.parametrize("rows", [1, 1 << 20])
def test_gradients_are_those_of_numpy(rows, ops, launched, threads, rng, monkeypatch):
    forced(monkeypatch, "grid")
    monkeypatch.setattr(packing, "_CHUNK_ROWS", rows)
    monkeypatch.setattr(packing, "_CHUNK_NUMBERS", 0)
    N, T, D, H = 7, 5, 3, 10
    x, h0, c0 = rng.standard_normal((N, T, D)), rng.standard_normal((N, H)), rng.standard_normal((N, H))
    Wx, Wh, b = rng.standard_normal((D, 4 * H)), rng.standard_normal((H, 4 * H)), rng.standard_normal(4 * H)
    dh, dfinal_h, dfinal_c = rng.standard_normal((N, T, H)), *rng.standard_normal((2, N, H))
    lengths = np.array([5, 0, 2, 5, 1, 3, 2])

    def both(send):
        given = [send(a) for a in (x, h0, Wx, Wh, b)]
        *outputs, cache = lstm_forward(*given, c0=send(c0), lengths=lengths, return_state=True)
        finals = {"dfinal_h": send(dfinal_h), "dfinal_c": send(dfinal_c)}
        return [*outputs, *lstm_backward(send(dh), cache, **finals)]

    expected = both(np.asarray)
    assert launched == []
    actual = both(ops.asarray)
    chunks = 5 if rows == 1 else 1
    assert launched == [NAMES[0]] * chunks + [NAMES[1]] * chunks
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ops.asnumpy(one), other, rtol=1e-10, atol=1e-12)


def test_a_weight_in_a_wider_array(ops, launched, rng, monkeypatch):
    forced(monkeypatch, "grid")
    H, steps = 6, Steps(2, [2])
    wide = ops.asarray(rng.standard_normal((2 * H, 4 * H + 3)))
    results = []
    for Wh in (wide[::2, 1:-2], wide[::2, 1:-2].copy()):
        gates, h, c = ops.zeros((2, 4 * H)) + 0.3, ops.zeros((4, H)) + 0.5, ops.zeros((4, H)) + 0.7
        dstate, dcell, da = ops.zeros((2, H)) + 0.1, ops.zeros((2, H)), ops.zeros((2, 4 * H))
        tanh_c = ops.zeros((2, H))
        lstm_steps_forward(ops, gates, Wh, h, c, tanh_c, steps)
        lstm_steps_backward(ops, ops.zeros((2, H)), dstate, dcell, gates, c, tanh_c, da, Wh.T, steps)
        results.append([ops.asnumpy(a) for a in (gates, h, dstate)])
    assert launched == 2 * NAMES
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- where it is chosen


def forward(ops, N, H, dtype=np.float32, T=1):
    make = lambda *shape: ops.zeros(shape, dtype)  # noqa: E731
    lstm_forward(make(N, T, 2), make(N, H), make(2, 4 * H), make(H, 4 * H), make(4 * H))


def test_nothing_to_do(ops, launched, monkeypatch):
    forced(monkeypatch, "grid")
    forward(ops, 0, 4)
    forward(ops, 2, 4, T=0)
    assert launched == []


def test_step_by_step_where_the_weight_does_not_fit(ops, persistent, launched, monkeypatch):
    forced(monkeypatch, "grid")
    persistent.layout_on.cache_clear()
    monkeypatch.setattr(persistent, "_limits", lambda device: (4, 1000))
    forward(ops, 2, 2)
    assert launched == NAMES[:1]
    forward(ops, 2, 40)
    assert launched == NAMES[:1]
    persistent.layout_on.cache_clear()


def test_no_cooperative_launches(simulated, ops, persistent, launched, monkeypatch):
    forced(monkeypatch, "grid")
    monkeypatch.setitem(simulated.cuda.ATTRIBUTES, "CooperativeLaunch", 0)
    forward(ops, 2, 2)
    assert launched == []
    assert simulated.launches["lstm_forward"] == 1


def test_the_table_chooses_unless_the_environment_does(ops, persistent, launched, monkeypatch):
    monkeypatch.setattr(persistent, "FASTER", {"float32": ((2, 2, 8), (1, 4, 5))})
    monkeypatch.setattr(persistent, "FASTER_IN_BLOCKS", {})
    monkeypatch.delenv("RNNLAB_PERSISTENT", raising=False)
    others = ((4, 8, np.float32), (1, 8, np.float32), (2, 8, np.float64))
    for N, H, dtype in ((2, 8, np.float32), (4, 5, np.float32), *others):
        forward(ops, N, H, dtype)
    assert launched == NAMES[:1] * 2
    forced(monkeypatch, "0")
    forward(ops, 2, 8)
    assert launched == NAMES[:1] * 2
    forced(monkeypatch, "grid")
    forward(ops, 4, 8)
    assert launched == NAMES[:1] * 3
    forced(monkeypatch, "yes")
    with pytest.raises(ValueError, match="RNNLAB_PERSISTENT is 'yes', expected '0', '1', 'block' or 'grid'"):
        forward(ops, 2, 8)


@pytest.mark.parametrize("backward", [False, True])
def test_parts_of_several_blocks(persistent, backward):
    """What the fixture ``threads`` is for: barriers of some of the blocks alone."""
    layout = persistent.layout_for(17, 12, 4, 16, 49152, backward)
    assert layout.parts > 1
    assert layout.blocks > layout.parts


@pytest.mark.parametrize(
    ("N", "H", "dtype", "one"),
    [
        (2, 8, np.float32, True),
        (1, 8, np.float32, True),
        (1, 260, np.float32, False),
        (2, 8, np.float64, False),
    ],
)
def test_without_being_asked(N, H, dtype, one, ops, persistent, launched, monkeypatch):
    monkeypatch.delenv("RNNLAB_PERSISTENT", raising=False)
    monkeypatch.setattr(persistent, "FASTER_IN_BLOCKS", {})
    forward(ops, N, H, dtype)
    assert launched == NAMES[:one]


def test_the_real_kernels_are_launched(simulated, ops, monkeypatch):
    forced(monkeypatch, "grid")
    forward(ops, 2, 4, T=3)
    assert simulated.launches["lstm_steps_forward"] == 1
    assert simulated.launches["lstm_forward"] == 0


@pytest.mark.parametrize("matmul", ["float32", "tf32", "tf32x3"])
@pytest.mark.parametrize(
    ("way", "kernel"), [("grid", "lstm_steps_forward"), ("block", "lstm_sequences_forward")]
)
def test_one_launch_computes_in_float32(way, kernel, matmul, simulated, ops, monkeypatch):
    forced(monkeypatch, way)
    with products_in(matmul):
        forward(ops, 2, 4, T=3, dtype=np.float32)
    assert simulated.launches[kernel] == 1
    assert simulated.launches["lstm_forward"] == 0


def test_a_weight_in_bfloat16_is_multiplied_step_by_step(simulated, ops, monkeypatch):
    forced(monkeypatch, "grid")
    with products_in("bfloat16"):
        forward(ops, 2, 4, T=3, dtype=np.float32)
    assert simulated.launches["lstm_steps_forward"] == 0
    assert simulated.launches["lstm_forward"] == 3


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("device", [(132, 232448), (108, 166912), (4, 101376), (1, 49152)])
def test_a_layout_is_possible_and_covers_everything(device, backward, simulated):
    module = importlib.import_module("rnnlab.ops.cuda.persistent")
    multiprocessors, shared = device
    several = 4 if backward else 1
    fits = 0
    for itemsize in (4, 8):
        for H in (1, 3, 100, 128, 500, 512, 1000, 1024):
            for N in (1, 7, 64, 300):
                layout = module.layout_for(N, H, itemsize, *device, backward)
                if layout is None:
                    continue
                fits += 1
                columns, tiles = layout.units // several, layout.rows // module.TILE
                assert layout.units % several == layout.rows % module.TILE == 0
                assert layout.blocks % layout.parts == 0
                assert layout.blocks // layout.parts * layout.units >= H
                assert layout.blocks <= multiprocessors
                assert layout.shared <= shared
                assert columns * layout.splits * tiles <= layout.threads
                assert layout.rows * layout.units <= layout.threads <= module.THREADS
                assert layout.threads % 32 == 0
    assert fits > 5
    assert module.layout_for(1, 100_000, 4, *device, backward) is None


def test_constants_that_the_kernels_have_too(simulated):
    module = importlib.import_module("rnnlab.ops.cuda.persistent")
    source = kernel_source()
    assert f"#define ROWS {module.TILE}\n" in source
    assert f"#define GRID_THREADS {module.THREADS} " in source
    assert f"#define COUNTER_STRIDE {module.COUNTER_STRIDE} " in source


NAMED = {"Wh": "the weight", "tanh_c": "saved"}
WRONG = [
    ("gates", (6, 16), np.float32),
    ("gates", (8, 12), np.float32),
    ("h", (10, 4), np.float32),
    ("c", (11, 5), np.float32),
    ("tanh_c", (1, 4), np.float32),
    ("Wh", (4, 12), np.float32),
    ("c", (11, 4), np.float64),
]


@pytest.mark.parametrize("way", ["0", "grid", "block"])
@pytest.mark.parametrize(("name", "shape", "dtype"), WRONG)
def test_arrays_that_do_not_fit(name, shape, dtype, way, simulated, ops, monkeypatch):
    """One launch would write past their end."""
    forced(monkeypatch, way)
    shapes = {"gates": (8, 16), "Wh": (4, 16), "h": (11, 4), "c": (11, 4), "tanh_c": (8, 4)}
    arrays = {each: ops.zeros(size, np.float32) for each, size in shapes.items()}
    with pytest.raises(
        (TypeError, ValueError),
        match=f"^steps_forward: {NAMED.get(name, name)} .*expected",
    ):
        lstm_steps_forward(ops, **arrays | {name: ops.zeros(shape, dtype)}, steps=Steps(3, [3, 3, 2]))
    assert not simulated.launches


@pytest.mark.parametrize("way", ["0", "grid", "block"])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("dh", (7, 4)), ("da", (7, 16)), ("dstate", (2, 4)), ("dcell", (3, 5)), ("to_h", (16, 3))],
)
def test_gradients_that_do_not_fit(name, shape, way, simulated, ops, monkeypatch):
    forced(monkeypatch, way)
    shapes = {"dh": (8, 4), "dstate": (3, 4), "dcell": (3, 4), "gates": (8, 16), "c": (11, 4)}
    shapes |= {"tanh_c": (8, 4), "da": (8, 16), "to_h": (16, 4)}
    arrays = {each: ops.zeros(size, np.float32) for each, size in shapes.items()}
    with pytest.raises((TypeError, ValueError), match="^steps_backward: .*expected"):
        lstm_steps_backward(ops, **arrays | {name: ops.zeros(shape, np.float32)}, steps=Steps(3, [3, 3, 2]))
    assert not simulated.launches
