"""The table of the precisions of products, on the stand-in."""

import importlib
import json

import pytest

from benchmarks import gpu, precision


def test_the_table(simulated, monkeypatch, tmp_path, capsys):
    cublas = importlib.import_module("rnnlab.ops.cuda.cublas")
    monkeypatch.setattr(cublas, "split_is_faster", lambda *sizes: True)
    monkeypatch.setattr(gpu, "our_milliseconds", lambda work: work() or 2.0)
    file = tmp_path / "table.json"
    sizes = ["--sizes", "5", "6", "7", "--sizes", "3", "2", "40"]
    assert precision.main([*sizes, "--rounds", "2", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())
    assert [(row["M"], row["N"], row["K"], row["precision"]) for row in rows] == [
        (*each, name) for each in ((5, 6, 7), (3, 2, 40)) for name in precision.PRECISIONS
    ]
    assert all(row["microseconds"] == 200 for row in rows)
    for first in (0, 4):
        full, tf32, split, bfloat16 = (row["error"] for row in rows[first : first + 4])
        assert 0 < full < 1e-6
        assert split < 3 * full
        assert 30 * full < tf32 < bfloat16
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["product", "factors", "us", "TFLOP/s", "error"]
    assert lines[3].split()[:5] == ["M=5", "N=6", "K=7", "float32", "200.0"]
    assert len(lines) == 3 + len(rows)


def test_what_is_measured_before_the_end_is_written(simulated, monkeypatch, tmp_path):
    times = iter([2.0] * len(precision.PRECISIONS))  # of one product

    def milliseconds(work):
        if (time := next(times, None)) is None:
            raise KeyboardInterrupt
        return time

    monkeypatch.setattr(gpu, "our_milliseconds", milliseconds)
    file = tmp_path / "table.json"
    sizes = ["--sizes", "5", "6", "7", "--sizes", "3", "2", "40"]
    with pytest.raises(KeyboardInterrupt):
        precision.main([*sizes, "--rounds", "1", "--json", str(file)])
    assert [row["M"] for row in json.loads(file.read_text())] == [5] * len(precision.PRECISIONS)


def test_sums_in_parts_of_other_lengths(simulated, monkeypatch):
    cublas, factors = (importlib.import_module(f"rnnlab.ops.cuda.{name}") for name in ("cublas", "factors"))
    monkeypatch.setattr(cublas, "split_is_faster", lambda *sizes: True)
    before, products = factors.TERMS, []
    monkeypatch.setattr(gpu, "our_milliseconds", lambda work: work() or 2.0)
    summed = factors.summed
    monkeypatch.setattr(factors, "summed", lambda *given: products.append(factors.TERMS) or summed(*given))
    monkeypatch.setattr(cublas, "summed", factors.summed)
    found = precision.measure(5, 6, 40, 1, [16, 8])
    assert [row.precision for row in found] == [*precision.PRECISIONS, "tf32x3, 16", "tf32x3, 8"]
    assert {before, 16, 8} == set(products)
    assert factors.TERMS == before


def test_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "no_device", lambda: "there is no GPU")
    assert precision.main([]) == 2
    assert capsys.readouterr().err == "python -m benchmarks precision: there is no GPU\n"


def test_a_bad_size(capsys):
    with pytest.raises(SystemExit):
        precision.main(["--sizes", "5", "0", "7"])
    assert "--sizes" in capsys.readouterr().err
