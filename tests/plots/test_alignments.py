from __future__ import annotations

import numpy as np
import pytest

from rnnlab import plots


def test_alignments_have_a_cell_for_each_pair_of_words(tmp_path):
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.3, 0.7]])
    figure = plots.alignment_matrix(weights, ["$a^$", "b", "<END>"], ["x", "y"])
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["$a^$", "b", "<END>"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    plots.save(figure, tmp_path / "alignment.png")
    with pytest.raises(ValueError, match=r"weights has shape \(2, 3\), expected \(1, 3\)"):
        plots.alignment_matrix(weights, ["a", "b", "c"], ["x"])
    with pytest.raises(ValueError, match="at least 1 of each"):
        plots.alignment_matrix(np.zeros((0, 1)), ["a"], [])
