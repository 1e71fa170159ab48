"""The precision of products: of the process, of a block of code, of a thread."""

import functools
import os
import subprocess
import sys
import threading

import pytest

from rnnlab.errors import InputError
from rnnlab.ops import precision
from rnnlab.ops.precision import products_in, products_precision


@pytest.fixture
def matmul(monkeypatch):
    """A function that sets the variable, or removes it, for a process that has not read it."""
    anew = functools.cache(precision._of_process.__wrapped__)
    monkeypatch.setattr(precision, "_of_process", anew)

    def become(value):
        anew.cache_clear()
        if value is None:
            monkeypatch.delenv("RNNLAB_MATMUL", raising=False)
        else:
            monkeypatch.setenv("RNNLAB_MATMUL", value)

    return become


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "float32"), ("", "float32"), ("tf32", "tf32"), ("tf32x3", "tf32x3"), ("bfloat16", "bfloat16")],
)
def test_the_environment_variable(value, expected, matmul, monkeypatch):
    matmul(value)
    assert products_precision() == expected
    monkeypatch.setenv("RNNLAB_MATMUL", "float32")  # it is read once
    assert products_precision() == expected


def test_a_bad_name_in_the_environment(matmul):
    matmul("TF32")
    message = "RNNLAB_MATMUL is 'TF32', expected 'float32', 'tf32', 'tf32x3' or 'bfloat16'"
    with pytest.raises(InputError, match=message):
        products_precision()


def test_it_is_read_at_the_first_use():
    """A program may set it after it has imported the library."""
    code = (
        "import os, rnnlab.ops; os.environ['RNNLAB_MATMUL'] = 'tf32'\n"
        "from rnnlab.ops.precision import products_precision; print(products_precision())"
    )
    given = {name: value for name, value in os.environ.items() if name != "RNNLAB_MATMUL"}
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, env=given).stdout == "tf32\n"


def test_a_block_has_its_own(matmul):
    matmul("bfloat16")
    with products_in("float32"):
        assert products_precision() == "float32"
    assert products_precision() == "bfloat16"


def test_blocks_may_be_nested():
    before = products_precision()
    with products_in("bfloat16"):
        with products_in("tf32"):
            assert products_precision() == "tf32"
        assert products_precision() == "bfloat16"
    assert products_precision() == before


def test_an_exception_ends_a_block():
    before = products_precision()
    with pytest.raises(KeyError), products_in("bfloat16"):
        raise KeyError
    assert products_precision() == before


def test_other_threads_are_not_concerned():
    before, found = products_precision(), []
    inside, looked = threading.Event(), threading.Event()

    def work():
        found.append(products_precision())
        with products_in("tf32"):
            inside.set()
            looked.wait(10)
            found.append(products_precision())

    with products_in("bfloat16"):
        thread = threading.Thread(target=work)
        thread.start()
        assert inside.wait(10)
        assert products_precision() == "bfloat16"
        looked.set()
        thread.join()
    assert found == [before, "tf32"]


def test_a_bad_name():
    before = products_precision()
    with (
        pytest.raises(
            InputError, match="matmul is 'half', expected 'float32', 'tf32', 'tf32x3' or 'bfloat16'"
        ),
        products_in("half"),
    ):
        pass
    assert products_precision() == before
