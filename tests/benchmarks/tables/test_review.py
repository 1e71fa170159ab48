"""The figure of the depth of review, from results alone."""

from benchmarks import results
from benchmarks.tables.review import TABLES, draw_depth

ENTRIES = [entry for row in TABLES["review_depth"].rows for entry in row.entries]
KEY = "--split val --beam 1"


def store(entry, cider, folder):
    results.store(entry.id, {"evaluations": {KEY: {"CIDEr": cider}}, "commands": []}, folder)


def test_the_figure_needs_a_line_of_two_points(tmp_path):
    path = tmp_path / "depth.png"
    assert not draw_depth(path, tmp_path)
    store(ENTRIES[0], 0.5, tmp_path)
    assert not draw_depth(path, tmp_path)
    assert not path.exists()
    store(ENTRIES[1], 0.52, tmp_path)
    assert draw_depth(path, tmp_path)
    first = path.read_bytes()
    assert first.startswith(b"\x89PNG")
    assert draw_depth(path, tmp_path)
    assert path.read_bytes() == first
    store(ENTRIES[1], 0.4, tmp_path)
    assert draw_depth(path, tmp_path)
    assert path.read_bytes() != first


def test_depths_are_those_of_the_recipes():
    names = [entry.id for entry in ENTRIES]
    assert "flickr8k_reviewnet-seed0" in names
    assert "flickr8k_rnm-seed0" in names
    assert len(set(names)) == 6
