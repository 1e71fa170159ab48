from __future__ import annotations

import numpy as np
import pytest

from rnnlab import plots


def test_a_map_of_states(rng):
    pytest.importorskip("sklearn")
    teacher_forced = np.concatenate([rng.standard_normal((8, 5)), 50 + rng.standard_normal((8, 5))])
    free_running = teacher_forced + 0.1 * rng.standard_normal(teacher_forced.shape)
    (axes,) = plots.state_map(teacher_forced, free_running).axes
    u, v = (np.asarray(marks.get_offsets()) for marks in axes.collections)
    assert u.shape == v.shape == (16, 2)
    apart = np.linalg.norm(u[:8].mean(axis=0) - u[8:].mean(axis=0))
    assert np.linalg.norm(u - v, axis=1).max() < apart  # the clusters stay what they are
    filled, opened = axes.collections
    assert filled.get_facecolor().size
    assert not opened.get_facecolor().size
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["teacher forcing", "free running"]
    again = plots.state_map(teacher_forced, free_running).axes[0].collections[0]
    np.testing.assert_array_equal(again.get_offsets(), u)


def test_a_map_of_few_states(rng):
    pytest.importorskip("sklearn")
    plots.state_map(*rng.standard_normal((2, 2, 3)))
    for shapes in (((1, 3), (1, 3)), ((4, 3), (3, 3)), ((4,), (4,))):
        with pytest.raises(ValueError, match="state_map: teacher_forced has shape .* N and H of at least 2"):
            plots.state_map(*(np.zeros(shape) for shape in shapes))


def test_a_map_of_states_needs_an_extra(rng, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs scikit-learn: pip install "rnnlab\[sklearn\]"'):
        plots.state_map(*rng.standard_normal((2, 3, 4)))


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (np.ones((20, 3)), "all 40 states are equal, expected states that differ"),
        (np.full((3, 2), np.nan), "hold NaN or infinity"),
        (np.zeros((9, 1)), r"shape \(9, 1\) .*, expected both \(N, H\) with N and H of at least 2"),
    ],
)
def test_states_without_a_map(states, message):
    with pytest.raises(ValueError, match=f"state_map: .*{message}"):
        plots.state_map(states, states)
