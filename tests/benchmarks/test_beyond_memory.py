"""Features and sentence pairs that are made on the spot, and processes with a limit of memory."""

import h5py
import numpy as np
import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import beyond_memory
from rnnlab.data import open_parallel


def test_features_of_any_number_of_images(tmp_path):
    beyond_memory.write_features(tmp_path / "features.h5", 100)
    with h5py.File(tmp_path / "features.h5") as file:
        features = file["features"][()]
    assert (features.shape, features.dtype) == ((100, *beyond_memory.SHAPE), np.float32)
    assert len(np.unique(features[:, 0, 0])) == 100


def test_pairs_of_any_number(tmp_path):
    beyond_memory.write_pairs(tmp_path, 300)
    data = open_parallel(tmp_path, "src", "trg", tokenizer="spaces")
    assert len(data.split("train")) == 300
    assert {len(words) for words in data.split("train").target} == {beyond_memory.SENTENCE}
    found = beyond_memory.opening(str(tmp_path))
    assert found["resident"] >= found["resident before"] > 0


@pytest.mark.slow
def test_both_tables(capsys):
    small = ["--gigabytes", "0.014", "--small", "0.007", "--pairs", "200", "--threads", "1"]
    assert benchmarks.main(["beyond_memory", *small]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("139 images, 0.01 GB")
    cells = [line.split() for line in lines[2:7]]
    assert [row[:2] for row in cells] == [["in", "memory,"], *4 * [["lazy,", "2"]]]
    assert [row[-8] for row in cells] == ["69", "69", "69", "139", "139"]
    assert cells[0][-3] == "1.00x"
    assert lines[8].startswith("200 pairs of 13 words")


@pytest.mark.slow
def test_the_limit_holds(tmp_path):
    beyond_memory.write_features(tmp_path / "features.h5", 70)
    with pytest.raises(SystemExit, match="the process ended with"):
        beyond_memory.measure("epoch", str(tmp_path / "features.h5"), 70, True, limit=0.2)
