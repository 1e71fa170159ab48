"""Every module of primitives has the names and signatures of the Protocol."""

import importlib
import inspect

import pytest

from rnnlab.ops.api import Primitives

NAMES = sorted(name for name in vars(Primitives) if not name.startswith("_"))


@pytest.fixture(params=["numpy", "numba", "cuda"])
def ops(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    if request.param == "cuda":
        request.getfixturevalue("simulated")
    return importlib.import_module(f"rnnlab.ops.{request.param}")


def shape_of(function):
    """Names, kinds and defaults of the parameters; annotations are mypy's to compare."""
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters if each.name != "self"]


def test_the_signatures_are_those_of_the_protocol(ops):
    for name in NAMES:
        if name != "CHUNK":
            assert shape_of(getattr(ops, name)) == shape_of(getattr(Primitives, name)), name


def test_chunks_are_counted(ops):
    assert isinstance(ops.CHUNK, int)
    assert ops.CHUNK >= 1


@pytest.mark.parametrize("name", NAMES)
def test_each_primitive_is_documented_once(name):
    documented = vars(Primitives)[name]
    assert (documented.fget if name == "CHUNK" else documented).__doc__
