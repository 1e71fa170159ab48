"""Wrong arguments of a primitive are refused by name, before anything is written."""

import importlib.util
import re

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.arguments import PRIMITIVES, Declaration, checked

from .declared import call, made

KINDS = ["numpy", pytest.param("numba", marks=pytest.mark.skipif(
    importlib.util.find_spec("numba") is None or importlib.util.find_spec("threadpoolctl") is None,
    reason="the extra fast is not installed",
))]  # fmt: skip
every_primitive = pytest.mark.parametrize("name", PRIMITIVES)


@pytest.fixture(params=KINDS)
def ops(request):
    return importlib.import_module(f"rnnlab.ops.{request.param}")


def refused(ops, name, given, changes, error, message):
    """The call with some of the arrays in the place of those given raises, and all arrays are as before."""
    arrays = given | changes
    before = {key: np.asarray(array).tobytes() for key, array in arrays.items()}
    with pytest.raises(error, match=message) as caught:
        call(ops, name, arrays)
    assert re.match(rf"{name}: ({'|'.join(arrays)})\b", str(caught.value)), caught.value
    for key, array in arrays.items():
        assert np.asarray(array).tobytes() == before[key], key


@pytest.mark.slow
@every_primitive
def test_arguments_as_declared_are_taken(name, ops, rng):
    call(ops, name, made(name, rng))
    call(ops, name, made(name, rng, np.float64))


@every_primitive
def test_every_axis_one_short(name, ops, rng):
    arguments, given = PRIMITIVES[name].arguments, made(name, rng)
    letters = [letter for each in arguments for _, letter in each.axes or ()] + [
        each.size for each in arguments
    ]
    for each in arguments:
        for axis, (_, letter) in enumerate(each.axes or ()):
            if letters.count(letter) == 1:
                continue  # any size fits
            shorter = {each.name: np.delete(given[each.name], -1, axis)}
            refused(ops, name, given, shorter, (ValueError, IndexError), "has shape|has indices")
        if each.axes is None and len(arguments) > 1:
            refused(ops, name, given, {each.name: given[each.name][1:]}, ValueError, "has shape")


@every_primitive
def test_one_axis_too_few_or_too_many(name, ops, rng):
    given = made(name, rng)
    for each in PRIMITIVES[name].arguments:
        if each.axes is not None:
            message = f"{each.name} has shape .*, expected {len(each.axes)} axes"
            for changed in (given[each.name][0], given[each.name][None]):
                refused(ops, name, given, {each.name: changed}, ValueError, message)


@every_primitive
def test_wrong_dtypes(name, ops, rng):
    given = made(name, rng)
    sharing = [each for each in PRIMITIVES[name].arguments if not (each.size or each.own_dtype)]
    for each in PRIMITIVES[name].arguments:
        others = [np.float16, ">f4", int, complex] if not each.size else [float, bool]
        if each.own_dtype:
            others.append(np.float32)
        elif each in sharing[1:] or (sharing[1:] and each is sharing[0]):
            others.append(float)
        for dtype in others:
            refused(ops, name, given, {each.name: given[each.name].astype(dtype)}, TypeError, "has dtype")
        message = f"{each.name} is builtins.list, expected a NumPy array"
        refused(ops, name, given, {each.name: given[each.name].tolist()}, TypeError, message)


@every_primitive
def test_indices_out_of_range(name, ops, rng):
    given = made(name, rng)
    for each in PRIMITIVES[name].arguments:
        if each.size:
            for index in (1000, -1) if each.lowest == 0 else (1000,):
                wrong = given[each.name].copy()
                wrong.flat[2] = index
                refused(ops, name, given, {each.name: wrong}, IndexError, f"{each.name} has indices")


@every_primitive
def test_arrays_that_overlap(name, ops, rng):
    arguments, given = PRIMITIVES[name].arguments, made(name, rng)
    for a in arguments:
        for b in arguments:
            if a is b or not a.written or a.size or b.size:
                continue
            for offset in (4, 0):
                if offset == 0 and (a.may_be == b.name or b.may_be == a.name):
                    continue
                memory = np.zeros(4 * (given[a.name].size + given[b.name].size) + 4, np.uint8)
                overlapping = {
                    each.name: np.ndarray(given[each.name].shape, given[each.name].dtype, memory, start)
                    for each, start in ((a, 0), (b, offset))
                }
                refused(ops, name, given, overlapping, ValueError, "which is written, overlaps")


@pytest.mark.parametrize("memory", ["own", "pool", "foreign"])
def test_overlaps_are_found_whoever_owns_the_memory_and_whatever_came_before(memory, ops):
    rows = np.arange(100)
    make = {"own": np.zeros, "pool": ops.zeros, "foreign": lambda shape: np.frombuffer(bytearray(8 * 60000))}
    whole = make[memory]((200, 300)).reshape(200, 300)[:, :]
    ops.put(np.ones((100, 300)), rows, whole)  # the shapes are known from here on
    with pytest.raises(ValueError, match="overlaps"):
        ops.put(whole[:100], rows, whole)
    if memory == "foreign":
        again = np.frombuffer(memoryview(whole.base), count=30000).reshape(100, 300)
        with pytest.raises(ValueError, match="overlaps"):
            ops.put(again, rows, whole)


@every_primitive
def test_an_array_to_write_that_is_read_only(name, ops, rng):
    given = made(name, rng)
    for each in PRIMITIVES[name].arguments:
        if each.written:
            wrong = given[each.name].copy()
            wrong.flags.writeable = False
            refused(ops, name, given, {each.name: wrong}, ValueError, f"{each.name} is read-only")


ONE = [(name, each) for name in PRIMITIVES for each in PRIMITIVES[name].arguments if each.may_be]


@pytest.mark.parametrize(("name", "written"), ONE, ids=[f"{name}-{each.name}" for name, each in ONE])
@pytest.mark.parametrize("lies", [np.ascontiguousarray, lambda a: np.repeat(a, 2, axis=-1)[..., ::2]])
def test_arrays_that_may_be_one(name, written, lies, ops, rng, monkeypatch):
    monkeypatch.delenv("RNNLAB_STRICT", raising=False)
    arrays = {
        key: lies(array) if array.dtype.kind == "f" else array for key, array in made(name, rng).items()
    }
    apart = {key: array.copy() for key, array in arrays.items()}
    arrays[written.name] = arrays[written.may_be]
    expected, found = call(ops, name, apart), call(ops, name, arrays)
    np.testing.assert_allclose(arrays[written.name], apart[written.name], rtol=1e-5)
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_neighbours_do_not_overlap(ops, rng):
    """The states of all steps lie in one array."""
    states, gates, tanh_c = rng.standard_normal((9, 6)), rng.standard_normal((3, 24)), np.empty((3, 6))
    for _ in range(2):  # the second time the shapes are known
        ops.lstm_forward(gates, states[:3], states[3:6], tanh_c, states[6:])
        with pytest.raises(ValueError, match="lstm_forward: c, which is written, overlaps h in memory"):
            ops.lstm_forward(gates, states[:3], states[3:6], tanh_c, states[5:8])


def test_the_update_rules_of_the_solver_and_of_the_course():
    from rnnlab.cs231n import optim
    from rnnlab.training.optim import make_update_rule

    rule = make_update_rule("adam")
    rule.step(np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match=r"w is float64 of shape \(5000,\), but the state m is"):
        rule.step(np.zeros(5000), np.zeros(5000))
    with pytest.raises(ValueError, match=r"dw is float64 of shape \(10,\), expected float64 of shape"):
        make_update_rule("sgd").step(np.zeros(100_000), np.zeros(10))
    with pytest.raises(ValueError, match="has shape"):
        optim.sgd(np.zeros((30, 30)), np.ones((3, 3)), None)


# ---------------------------------------------------------------- declarations


def test_a_declaration_that_cannot_be_read():
    with pytest.raises(ValueError, match=r"'x n' declares no argument"):
        Declaration("x n")
    with pytest.raises(ValueError, match="no axis has the size V"):
        Declaration("tokens (n,) 0..V")


def test_the_shapes_that_are_remembered_stay_few(rng):
    declaration = PRIMITIVES["sum_of_squares"]
    for size in range(5000):
        numpy_ops.sum_of_squares(np.zeros(size))
    assert len(declaration._fitting) <= 4096


def test_keywords_and_missing_arguments():
    numpy_ops.rnn_forward(h=np.zeros((2, 3)), gates=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="rnn_forward: "):
        numpy_ops.rnn_forward(h=np.zeros((2, 3)), gates=np.zeros((2, 4)))
    with pytest.raises(TypeError, match="missing a required argument: 'h'"):
        numpy_ops.rnn_forward(np.zeros((2, 3)))


def test_a_checked_function_keeps_its_signature():
    def sgd(w, dw):
        """Docstring."""

    assert checked(sgd).__doc__ == "Docstring."
    assert checked(sgd).__wrapped__ is sgd
