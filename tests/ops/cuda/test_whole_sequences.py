"""Whole sequences of an LSTM in a block, against NumPy; both ways of one launch at the sizes in use."""

import importlib

import numpy as np
import pytest

from rnnlab.layers import lstm_backward, lstm_forward
from rnnlab.layers.recurrent import packing
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.cuda_source import SEQUENCES, kernel_source
from rnnlab.ops.precision import products_in
from rnnlab.ops.steps import Steps

from ..cases import TOLERANCE
from ..chunk_cases import lstm_steps_backward, lstm_steps_forward

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
NAMES = ["lstm_sequences_forward", "lstm_sequences_backward"]
# how many rows are alive at each step
ALIVE = {
    "one row": [1] * 4,
    "one step": [3],
    "one number": [1],
    "equal lengths": [7] * 4,
    "ragged": [11, 11, 7, 6, 6, 3, 2, 1],
    "ended in the middle of a block": [6, 5, 5, 3, 3, 1],
}


@pytest.fixture
def whole(device):
    return importlib.import_module("rnnlab.ops.cuda.whole_sequences")


@pytest.fixture
def ops(device, whole, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", "block")
    return importlib.import_module("rnnlab.ops.cuda")


@pytest.fixture
def launched(whole, monkeypatch):
    """The names of the kernels that are launched, and the rows of their blocks."""
    calls = []

    def recording(name, dtype, blocks, threads, arguments, shared, cooperative, constants):
        calls.append((name, constants[0]))
        launch(name, dtype, blocks, threads, arguments, shared, cooperative, constants)

    launch = whole.launch
    monkeypatch.setattr(whole, "launch", recording)
    return calls


@pytest.fixture(params=[1, 2, 4])
def rows(request, whole, monkeypatch):
    """Of a block, with as few multiprocessors as that takes; fewer where there are fewer sequences."""
    limited = whole.whole_layout_for

    def layout_for(N, H, itemsize, multiprocessors, shared, backward):
        return limited(N, H, itemsize, -(-N // request.param), shared, backward)

    whole.whole_layout_on.cache_clear()
    monkeypatch.setattr(whole, "whole_layout_for", layout_for)
    yield request.param
    whole.whole_layout_on.cache_clear()


def run(ops, alive, H, rng, dtype, skipped=0):
    """Both directions over the steps after the first ``skipped``: every array, written or not."""
    N = alive[0] + 2  # two sequences have no steps
    steps, M = Steps(N, alive), sum(alive)
    scale = H**-0.5
    normal = lambda *shape: ops.asarray(rng.standard_normal(shape).astype(dtype))  # noqa: E731
    gates, h, c, tanh_c = normal(M, 4 * H), normal(N + M, H), normal(N + M, H), normal(M, H)
    Wh = ops.asarray((scale * rng.standard_normal((H, 4 * H))).astype(dtype))
    later = steps[skipped:]
    lstm_steps_forward(ops, gates, ops.prepacked(Wh), h, c, tanh_c, later)
    after = [ops.asnumpy(a).copy() for a in (gates, h, c, tanh_c)]
    m = M - later[0][0].start
    dh, dstate, dcell, da = normal(m, H), normal(N, H), normal(N, H), normal(m, 4 * H)
    lstm_steps_backward(ops, dh, dstate, dcell, gates, c, tanh_c, da, ops.prepacked(Wh.T), later)
    return [*after, *(ops.asnumpy(a) for a in (dh, dstate, dcell, gates, c, tanh_c, da))]


def compare(ops, alive, H, dtype, skipped=0):
    seeded = lambda: np.random.default_rng(7)  # noqa: E731
    expected = run(numpy_ops, alive, H, seeded(), dtype, skipped)
    actual = run(ops, alive, H, seeded(), dtype, skipped)
    again = run(ops, alive, H, seeded(), dtype, skipped)
    scale = 30 if dtype == np.float32 else 10
    tolerance = {key: scale * value for key, value in TOLERANCE[dtype].items()}
    for one, same, reference in zip(actual, again, expected, strict=True):
        np.testing.assert_array_equal(one, same)
        np.testing.assert_allclose(one, reference, **tolerance)


@every_dtype
@pytest.mark.parametrize("case", ALIVE)
def test_the_same_numbers(case, ops, launched, rows, dtype):
    alive = ALIVE[case]
    compare(ops, alive, 5, dtype)
    compare(ops, alive, 5, dtype, skipped=len(alive) // 2)
    assert {name for name, _ in launched} == set(NAMES)


@pytest.mark.parametrize("H", [1, 3, 4, 31, 32, 64, 65, 100, 127, 128])
def test_numbers_of_units(H, ops, launched, rows):
    compare(ops, [rows + 1, rows + 1, rows, 1], H, np.float32)
    assert launched == [(name, f"-DBLOCK_ROWS={rows}") for name in NAMES] * 2


@pytest.mark.parametrize("H", [1, 33, 64])
def test_numbers_of_units_in_float64(H, ops, launched, rows):
    compare(ops, [rows + 1, rows, 1], H, np.float64)
    assert len(launched) == 4


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("way", "N", "H"),
    [
        ("grid", 16, 1024),
        ("grid", 64, 512),
        ("grid", 128, 256),
        ("grid", 256, 128),
        ("grid", 33, 500),
        ("block", 600, 128),
        ("block", 264, 100),
        ("block", 132, 64),
    ],
)
def test_sizes_in_use(way, N, H, monkeypatch):
    """The table of ``persistent`` and all multiprocessors of an H100, against step by step."""
    ops, persistent = (importlib.import_module(f"rnnlab.ops.cuda{name}") for name in ("", ".persistent"))
    layouts = {"grid": persistent.layout_on, "block": persistent.whole_layout_on}
    assert all(layouts[way](0, N, H, 4, backward) is not None for backward in (False, True))
    alive = [N] * 40 + [N - 1] * 5 + [N // 2] * 5

    def of(asked):
        monkeypatch.setenv("RNNLAB_PERSISTENT", asked)
        return run(ops, alive, H, np.random.default_rng(7), np.float32)

    apart, first = of("0"), of(way)
    for one, other in zip(first, apart, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    for _ in range(20 if way == "grid" else 2):  # a missing fence of a barrier shows rarely
        for one, other in zip(first, of(way), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("chunk_rows", [1, 1 << 20])
def test_gradients_are_those_of_numpy(chunk_rows, ops, launched, rows, rng, monkeypatch):
    monkeypatch.setattr(packing, "_CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr(packing, "_CHUNK_NUMBERS", 0)
    N, T, D, H = 7, 5, 1, 10
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
    actual = both(ops.asarray)
    chunks = 5 if chunk_rows == 1 else 1
    assert [name for name, _ in launched] == [NAMES[0]] * chunks + [NAMES[1]] * chunks
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ops.asnumpy(one), other, rtol=1e-10, atol=1e-12)


def test_a_weight_in_a_wider_array(ops, launched, rng):
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
    assert [name for name, _ in launched] == 2 * NAMES
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


# ---------------------------------------------------------------- where it is chosen


def forward(ops, N, H, dtype=np.float32):
    make = lambda *shape: ops.zeros(shape, dtype)  # noqa: E731
    lstm_forward(make(N, 2, 2), make(N, H), make(2, 4 * H), make(H, 4 * H), make(4 * H))


@pytest.mark.parametrize(
    ("asked", "N", "H", "dtype", "kernel"),
    [
        ("", 1, 8, np.float32, "lstm_sequences_forward"),
        ("", 16, 8, np.float32, "lstm_sequences_forward"),
        ("", 17, 8, np.float32, "lstm_steps_forward"),
        ("", 1, 132, np.float32, "lstm_steps_forward"),
        ("", 2, 8, np.float64, "lstm_forward"),
        ("1", 17, 8, np.float64, "lstm_sequences_forward"),
        ("1", 1, 132, np.float32, "lstm_steps_forward"),
        ("block", 17, 8, np.float32, "lstm_sequences_forward"),
        ("block", 1, 132, np.float32, "lstm_forward"),
        ("grid", 1, 8, np.float32, "lstm_steps_forward"),
        ("0", 1, 8, np.float32, "lstm_forward"),
    ],
)
def test_the_choice_of_a_way(asked, N, H, dtype, kernel, simulated, ops, whole, monkeypatch):
    """The stand-in has 4 multiprocessors."""
    persistent = importlib.import_module("rnnlab.ops.cuda.persistent")
    assert "float64" not in persistent.FASTER_IN_BLOCKS
    monkeypatch.setattr(persistent, "FASTER_IN_BLOCKS", {"float32": (4, 128)})
    monkeypatch.setenv("RNNLAB_PERSISTENT", asked)
    whole.whole_layout_on.cache_clear()
    whole.limits.cache_clear()
    forward(ops, N, H, dtype)
    assert {name for name in simulated.launches if name.startswith("lstm")} == {kernel}


def test_it_is_not_chosen_before_it_is_measured(simulated, ops, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", "")
    forward(ops, 1, 8)
    assert not simulated.launches["lstm_sequences_forward"]


def test_a_weight_in_bfloat16_is_multiplied_step_by_step(simulated, ops, monkeypatch):
    monkeypatch.setenv("RNNLAB_PERSISTENT", "block")
    with products_in("bfloat16"):
        forward(ops, 2, 4)
    assert simulated.launches["lstm_sequences_forward"] == 0
    assert simulated.launches["lstm_forward"] == 2


def test_indices_of_32_bits(whole):
    weight, steps = np.zeros((4, 16)), Steps(2, [2, 2])
    assert whole.indexable(steps, weight)
    assert not whole.indexable(steps, weight[:, ::-1])
    for stride, fits in ((2**31, True), (2**32, False)):  # four rows of so many bytes
        found = whole.indexable(steps, np.lib.stride_tricks.as_strided(weight, strides=(stride, 8)))
        assert found == fits, stride  # an assertion that shows the array would read it
    steps.table[-1, 2] = 2**31 - 2
    assert not whole.indexable(steps, weight)


def test_only_steps_of_different_rows_need_a_table(simulated, ops):
    simulated.cuda.transfers.reset()
    rng = np.random.default_rng(0)
    run(ops, [3, 3, 3], 4, rng, np.float32)
    same = simulated.cuda.transfers.to_device
    simulated.cuda.transfers.reset()
    run(ops, [3, 3, 2], 4, rng, np.float32)
    assert simulated.cuda.transfers.to_device == same + 2


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("limits", [(132, 232448), (108, 166912), (4, 101376), (80, 98304)])
def test_a_layout_is_possible_and_covers_everything(limits, backward, whole):
    multiprocessors, shared = limits
    for H in (1, 3, 16, 17, 64, 65, 100, 127, 128):
        for N in (1, 7, 64, 300, 5000):
            for itemsize in (4, 8):
                layout = whole.whole_layout_for(N, H, itemsize, *limits, backward)
                if layout is None:
                    assert itemsize == 8
                    continue
                splits = 16 if backward else 4
                assert layout.rows in (1, 2, 4)
                assert layout.blocks * layout.rows >= N
                fewer = itemsize == 8 or shared < 120_000  # rows than would do
                assert layout.blocks <= multiprocessors or layout.rows == 4 or fewer
                assert layout.threads * 8 // splits >= (H if backward else 4 * H)
                assert layout.threads % 32 == 0
                assert layout.threads <= whole.THREADS
                assert 4 * layout.quads * splits >= (4 * H if backward else H)
                assert 0 < layout.held <= 4 * layout.quads
                assert layout.shared <= shared
    assert whole.whole_layout_for(1, 129, 4, *limits, backward) is None


def test_constants_that_the_kernels_have_too(whole):
    source = kernel_source(SEQUENCES)
    assert f"#define SEQUENCE_THREADS {whole.THREADS} " in source
    assert f"#define COLUMNS {whole.COLUMNS} " in source
    assert f"#define FORWARD_SPLITS {whole.SPLITS[False]} " in source
    assert f"#define BACKWARD_SPLITS {whole.SPLITS[True]} " in source
