import json
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest

from rnnlab import plots
from rnnlab.reporting.discrepancy import discrepancy_table, states_picture, write_discrepancy
from rnnlab.tasks.discrepancy import Discrepancy


@pytest.fixture
def found(rng):
    return Discrepancy(*rng.standard_normal((2, 5, 3)), 0.12345, 0.5)


def test_a_table_and_a_file_of_the_distances(found, tmp_path):
    rows = [line.split() for line in discrepancy_table(found).splitlines()]
    assert rows == [["sentences", "5"], ["d_mc", "0.1235"], ["d_pw", "0.5000"]]
    many = Discrepancy(*np.zeros((2, 1234, 1)), 1.0, 2.0)
    assert discrepancy_table(many).splitlines()[0] == "sentences        1,234"
    run = SimpleNamespace(directory=Path("runs") / "one", members=())
    write_discrepancy(tmp_path / "distances.json", run, "val", found)
    written = json.loads((tmp_path / "distances.json").read_text())
    assert {key: written[key] for key in ("run", "split", "sentences", "d_mc", "d_pw")} == {
        "run": "runs/one",
        "split": "val",
        "sentences": 5,
        "d_mc": 0.12345,
        "d_pw": 0.5,
    }


def test_a_picture_of_the_states(found, tmp_path):
    pytest.importorskip("sklearn")
    states_picture(tmp_path / "states.png", found)
    assert matplotlib.image.imread(tmp_path / "states.png").ndim == 3


def test_the_picture_is_of_the_teacher_forced_states_first(found, monkeypatch):
    shown = []
    monkeypatch.setattr(plots, "state_map", lambda *states: shown.extend(states))
    monkeypatch.setattr(plots, "save", lambda figure, path: None)
    states_picture("states.png", found)
    assert shown[0] is found.teacher_forced
    assert shown[1] is found.free_running
