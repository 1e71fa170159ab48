"""NumPy's BLAS or the kernels: measured once, and noted for all processes."""

import os
import time

import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import blas, kernel, products
from rnnlab.ops.numba.blas import NumpyBlas, is_faster


@pytest.fixture(autouse=True)
def small_products(monkeypatch):
    """Their times do not depend on the load of the machine by more than a tenth of a second."""
    monkeypatch.setattr(blas, "_SIZES", (64, 64, 64))
    monkeypatch.setattr(blas, "_ROUNDS", 2)


def slow(x, w, out):
    time.sleep(0.1)


def fast(x, w, out):
    pass


@pytest.mark.parametrize(("kernels", "expected"), [(slow, True), (fast, False)])
def test_it_is_measured_once(kernels, expected, tmp_path, monkeypatch):
    assert is_faster(kernels, str(tmp_path), 2) is expected
    (noted,) = tmp_path.iterdir()
    assert ("BLAS is faster" in noted.read_text()) is expected
    monkeypatch.setattr(blas, "_seconds", None)
    assert is_faster(kernels, str(tmp_path), 2) is expected


def test_another_number_of_threads_is_measured_anew(tmp_path):
    assert is_faster(slow, str(tmp_path), 2)
    assert not is_faster(fast, str(tmp_path), 3)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_first_process_decides(tmp_path):
    def while_another_notes(x, w, out):
        for path in [tmp_path / name for name in names]:
            path.write_text(blas._FASTER)

    is_faster(fast, str(tmp_path), 2)
    names = os.listdir(tmp_path)
    (tmp_path / names[0]).unlink()
    assert is_faster(while_another_notes, str(tmp_path), 2)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"other"])
def test_a_damaged_note_means_the_kernels(content, tmp_path):
    """It stays as it is, so that all processes choose the same."""
    is_faster(slow, str(tmp_path), 2)
    (noted,) = tmp_path.iterdir()
    noted.write_bytes(content)
    assert not is_faster(slow, str(tmp_path), 2)
    assert noted.read_bytes() == content


def test_where_nothing_can_be_noted(tmp_path):
    assert not is_faster(slow, None, 2)
    assert not is_faster(slow, str(tmp_path / "none"), 2)


def test_the_library_of_products(monkeypatch):
    monkeypatch.setattr(products, "_MKL", None)
    monkeypatch.setattr(products, "_ZEN", False)
    for faster in (True, False):
        monkeypatch.setattr(products, "is_faster", lambda *given, answer=faster: answer)
        assert isinstance(products._library.__wrapped__(), NumpyBlas) is faster
    monkeypatch.setattr(products, "_ZEN", True)
    assert products._library.__wrapped__() is None


def test_the_folder_of_the_kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel.numba.config, "CACHE_DIR", str(tmp_path))
    assert kernel.cache_folder().startswith(str(tmp_path))
