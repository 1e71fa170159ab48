"""Ranks as processes of an MPI job: the sum, a training, a rank that fails, and one that gets a signal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pytest

from rnnlab.data import write_shapes
from rnnlab.recipes.recipe import load_config
from rnnlab.runs import resume, train
from rnnlab.training import load_checkpoint

MPIRUN = which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
pytestmark = pytest.mark.skipif(
    find_spec("mpi4py") is None or MPIRUN is None, reason="needs the extra mpi and an MPI library"
)

ROOT = Path(__file__).resolve().parents[2]


def on_processes(count, program, *arguments):
    """Run a Python program on ranks; return its exit status, output and errors."""
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONPATH": str(ROOT),
        "MPLBACKEND": "Agg",
    }
    command = [
        MPIRUN,
        "-n",
        str(count),
        "--oversubscribe",
        sys.executable,
        "-c",
        program,
        *map(str, arguments),
    ]
    found = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    return found.returncode, found.stdout, found.stderr


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    write_shapes(folder / "data", {"train": 40, "val": 8, "test": 8})
    path = folder / "tiny.toml"
    path.write_text(
        f"""
        [data]
        kind = "shapes"
        directory = "{folder / "data"}"
        [model]
        hidden_dim = 8
        wordvec_dim = 8
        output_dropout = 0.2
        dtype = "float64"
        [training]
        num_epochs = 2
        batch_size = 32
        clip_norm = 1.0
        [evaluation]
        split = "test"
        """
    )
    return path


SUMS = """
import json, sys
import numpy as np
from mpi4py import MPI
from rnnlab import runs
from rnnlab.recipes.recipe import load_config
from rnnlab.training.distributed import world

ranks = world()
assert (ranks.rank, ranks.size) == (MPI.COMM_WORLD.rank, 3)
for size in (1, 2, 3, 1000, 100_001):
    for dtype in ("float32", "float64"):
        arrays = [np.random.default_rng(rank).standard_normal(size).astype(dtype) for rank in range(3)]
        own = arrays[ranks.rank].copy()
        ranks.sum(own)
        np.testing.assert_array_equal(own, (arrays[0] + arrays[1]) + arrays[2])
        ranks.share(own := arrays[ranks.rank])
        np.testing.assert_array_equal(own, np.random.default_rng(0).standard_normal(size).astype(dtype))
assert ranks.gather("abc"[ranks.rank]) == ["a", "b", "c"]
config, out = load_config(sys.argv[1]), sys.argv[2]
first, again = (runs.train(config, out + name, communicator=ranks, progress=False) for name in ("/1", "/2"))
same = bool((first.model.params.flat == again.model.params.flat).all())
flats = ranks.gather(first.model.params.flat)
if ranks.rank == 0:
    print(json.dumps({"repeats": same, "ranks agree": all((flat == flats[0]).all() for flat in flats)}))
"""


def test_a_training_repeats_and_is_that_of_one_process(recipe, tmp_path):
    status, printed, errors = on_processes(3, SUMS, recipe, tmp_path)
    assert status == 0, errors
    (results,) = (json.loads(line) for line in printed.splitlines() if line.startswith("{"))
    assert results == {"repeats": True, "ranks agree": True}
    assert printed.count("(Iteration 1 /") == 2
    whole = tmp_path / "whole"
    train(load_config(recipe, ["training.accumulate=3"]), whole, progress=False)
    found, expected = (load_checkpoint(path / "last.h5") for path in (tmp_path / "1", whole))
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)
    np.testing.assert_allclose(found.parameters.flat, expected.parameters.flat, rtol=1e-6, atol=1e-9)


# rank 1 meets a signal or an error in its n-th batch; the rest is the command rnnlab train
COMMAND = """
import os, signal, sys
from mpi4py import MPI
from rnnlab import cli
from rnnlab.models import CaptioningRNN

event, recipe, out = sys.argv[1:]
loss, calls = CaptioningRNN.loss, []

def eventful(model, *batch, **options):
    calls.append(batch)
    if MPI.COMM_WORLD.rank == 1 and len(calls) == 8:
        if event == "error":
            raise ValueError("rank 1 is broken")
        os.kill(os.getpid(), signal.SIGTERM)
    return loss(model, *batch, **options)

CaptioningRNN.loss = eventful
sys.exit(cli.main(["train", recipe, "--out", out, "--no-progress"]))
"""


def test_a_rank_that_fails_ends_the_job(recipe, tmp_path):
    status, _, errors = on_processes(2, COMMAND, "error", recipe, tmp_path)
    assert status == 2
    assert errors.count("rnnlab train: rank 1 is broken") == 1
    assert len(load_checkpoint(tmp_path / "last.h5").history) == 1


def test_a_signal_of_one_rank_stops_all_and_one_process_resumes(recipe, tmp_path):
    status, printed, _ = on_processes(2, COMMAND, "signal", recipe, tmp_path)
    assert status == 128 + 15
    assert printed.count("Interrupted after iteration 8") == 1
    assert printed.count("Resume with: rnnlab train --resume") == 1
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == 8
    assert not resume(tmp_path, progress=False).interrupted
