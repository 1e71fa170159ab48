"""The precision of products: of the process, of a block of code, of a thread."""

import subprocess
import sys
import threading

import pytest

from rnnlab.errors import InputError
from rnnlab.ops.precision import products_in, products_precision

SHOWN = "from rnnlab.ops.precision import products_precision; print(products_precision())"


def in_a_process(code, monkeypatch, value=None):
    if value is None:
        monkeypatch.delenv("RNNLAB_MATMUL", raising=False)
    else:
        monkeypatch.setenv("RNNLAB_MATMUL", value)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "float32"), ("", "float32"), ("tf32", "tf32"), ("tf32x3", "tf32x3"), ("bfloat16", "bfloat16")],
)
def test_the_environment_variable(value, expected, monkeypatch):
    assert in_a_process(SHOWN, monkeypatch, value).stdout == f"{expected}\n"


def test_a_bad_name_in_the_environment(monkeypatch):
    found = in_a_process(SHOWN, monkeypatch, "TF32")
    assert "RNNLAB_MATMUL is 'TF32', expected 'float32', 'tf32', 'tf32x3' or 'bfloat16'" in found.stderr


def test_it_is_read_at_the_first_use(monkeypatch):
    code = f"import os, rnnlab.ops; os.environ['RNNLAB_MATMUL'] = 'tf32'; {SHOWN}"
    assert in_a_process(code, monkeypatch).stdout == "tf32\n"


def test_a_block_has_its_own(monkeypatch):
    code = (
        "from rnnlab.ops.precision import products_in, products_precision as now\n"
        "with products_in('float32'): print(now())\n"
        "print(now())"
    )
    assert in_a_process(code, monkeypatch, "bfloat16").stdout == "float32\nbfloat16\n"


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
