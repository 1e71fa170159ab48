import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import rnnlab
from rnnlab.reporting.json_file import write_json


def test_results_have_the_version_and_the_run(tmp_path):
    run = SimpleNamespace(directory=Path("runs") / "one", members=())
    write_json(tmp_path / "x.json", run, {"words": "grün", "numbers": [np.float32(0.5), math.nan]})
    assert json.loads((tmp_path / "x.json").read_text("utf-8")) == {
        "rnnlab_version": rnnlab.__version__,
        "run": "runs/one",
        "words": "grün",
        "numbers": [0.5, None],
    }


def test_an_ensemble_has_its_runs(tmp_path):
    members, model = (Path("runs/one"), Path("runs/two")), SimpleNamespace(average="probabilities")
    write_json(tmp_path / "x.json", SimpleNamespace(directory=members[0], members=members, model=model), {})
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["runs"] == ["runs/one", "runs/two"]
    assert found["average"] == "probabilities"
    assert "run" not in found
