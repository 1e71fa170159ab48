"""``rnnlab discrepancy``: distances, and a picture of the states."""

import json

import numpy as np
import pytest

from rnnlab import cli, runs
from rnnlab.decoding import greedy
from rnnlab.metrics import mean_centroid_distance, pointwise_distance


def test_the_discrepancy_of_a_split(run, tmp_path, capsys):
    """Of the first caption of each image, and of the greedy one."""
    numbers = tmp_path / "discrepancy.json"
    arguments = ["discrepancy", str(run), "--split", "val", "--first", "7", "--json", str(numbers)]
    assert cli.main(arguments) == 0
    found = json.loads(numbers.read_text())
    assert found["sentences"] == 7
    assert all(0 <= found[distance] <= 2 for distance in ("d_mc", "d_pw"))
    lines = capsys.readouterr().out.splitlines()
    opened = runs.load_run(run)
    val, model = opened.data.split("val"), opened.model
    firsts = [np.flatnonzero(val.image_idxs == image)[0] for image in range(7)]
    unknown = model.word_to_idx["<UNK>"]
    found = greedy(
        model, val.features[:7], max_length=12, forbid=(model.null_token, model.start_token, unknown)
    )
    rows = [[model.start_token, *best.tokens, *[model.end_token] * best.finished] for best, *_ in found]
    teacher_forced, free_running = (
        np.concatenate([model.last_states(val.features[k : k + 1], [row]) for k, row in enumerate(some)])
        for some in (val.captions[firsts], rows)
    )
    d_mc, d_pw = (
        mean_centroid_distance(teacher_forced, free_running),
        pointwise_distance(teacher_forced, free_running),
    )
    assert [line.split() for line in lines] == [
        ["sentences", "7"],
        ["d_mc", f"{d_mc:.4f}"],
        ["d_pw", f"{d_pw:.4f}"],
    ]
    assert cli.main(["discrepancy", str(run)]) == 0
    assert capsys.readouterr().out.split()[1] == "12"  # images of the recipe's split


def test_a_picture_of_states(run, tmp_path, capsys, monkeypatch):
    pytest.importorskip("sklearn")
    picture = tmp_path / "states.png"
    assert cli.main(["discrepancy", str(run), "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    assert cli.main(["discrepancy", "nowhere", "--picture", str(picture)]) == 2
    assert "rnnlab[sklearn]" in capsys.readouterr().err
