"""Ranks as processes of an MPI job: the sum, a training, other commands, and ranks that fail, hang or get a
signal.
"""

from __future__ import annotations

import json
import subprocess
import time

import numpy as np
import pytest

from rnnlab import cli
from rnnlab.data import write_shapes
from rnnlab.metrics import CAPTION_SCORERS
from rnnlab.recipes.recipe import load_recipe
from rnnlab.runs import resume, train
from rnnlab.training import load_checkpoint

from .mpirun import mpirun, needs_mpi

pytestmark = needs_mpi
needs_scorers = pytest.mark.skipif(not CAPTION_SCORERS.installed, reason='needs the extra "eval"')


def on_processes(count, program, *arguments):
    """Run a Python program on ranks; return its exit status, output and errors."""
    command, options = mpirun(count, program, *arguments)
    found = subprocess.run(command, **options, capture_output=True, timeout=240, check=False)
    return found.returncode, found.stdout.removesuffix("\x1b[0m"), found.stderr  # mpirun adds that


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
from rnnlab.recipes.recipe import load_recipe
from rnnlab.training import gradient_sum
from rnnlab.training.distributed import world

gradient_sum._SMALLEST = 1  # so that the gradient travels in pieces
ranks = world()
assert (ranks.rank, ranks.size) == (MPI.COMM_WORLD.rank, 3)
for size in (1, 2, 3, 1000, 100_001):
    for dtype in ("float32", "float64"):
        arrays = [np.random.default_rng(rank).standard_normal(size).astype(dtype) for rank in range(3)]
        own = arrays[ranks.rank].copy()
        for piece in (own[: size // 4], own[size // 4 : size // 2], own[size // 2 :]):
            ranks.begin_sum(piece)
        ranks.end_sums()
        np.testing.assert_array_equal(own, (arrays[0] + arrays[1]) + arrays[2])
        ranks.share(own := arrays[ranks.rank])
        np.testing.assert_array_equal(own, np.random.default_rng(0).standard_normal(size).astype(dtype))
assert ranks.gather("abc"[ranks.rank]) == ["a", "b", "c"]
config, out = load_recipe(sys.argv[1]), sys.argv[2]
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
    train(load_recipe(recipe, ["training.accumulate=3"]), whole, progress=False)
    found, expected = (load_checkpoint(path / "last.h5") for path in (tmp_path / "1", whole))
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)
    np.testing.assert_allclose(found.parameters.flat, expected.parameters.flat, rtol=1e-6, atol=1e-9)


ON_A_GPU = """
import sys
from rnnlab import runs
from rnnlab.ops import device_of
from rnnlab.recipes.recipe import load_recipe
from rnnlab.training.distributed import world
from tests.simulated_cupy import install

ranks = world()
with install.installed():
    run = runs.train(load_recipe(sys.argv[1]), sys.argv[2], communicator=ranks, device="gpu", progress=False)
    devices, local = ranks.gather(device_of(run.model.params.flat)), ranks.gather(ranks.local_rank)
    if ranks.rank == 0:
        print(f"devices: {devices}, local ranks: {local}")
"""


def test_a_training_on_a_gpu(recipe, tmp_path, simulated):
    status, printed, errors = on_processes(2, ON_A_GPU, recipe, tmp_path / "gpu")
    assert status == 0, errors
    assert "devices: ['gpu:0', 'gpu:0']" in printed
    assert "local ranks: [0, 1]" in printed
    whole = tmp_path / "whole"
    train(load_recipe(recipe, ["training.accumulate=2"]), whole, progress=False)
    found, expected = (load_checkpoint(path / "last.h5") for path in (tmp_path / "gpu", whole))
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)
    np.testing.assert_allclose(found.parameters.flat, expected.parameters.flat, rtol=1e-6, atol=1e-9)


FROM_GPU_TO_GPU = """
import sys
import numpy as np
from rnnlab import ops, runs
from rnnlab.recipes.recipe import load_recipe
from rnnlab.training.distributed import sum_on_gpus, world
from tests.simulated_cupy import install, nccl

ranks = world()
config, out = load_recipe(sys.argv[1]), sys.argv[2]
arrays = [np.random.default_rng(rank).standard_normal(100_001) for rank in range(3)]
with install.installed() as cupy:
    cupy.cuda.nccl = nccl
    on_gpu = cupy.asarray(arrays[ranks.rank])
    assert sum_on_gpus(ranks, arrays[0]) is None
    assert sum_on_gpus(ranks, on_gpu) is None  # the ranks share the stand-in's only GPU
    through_host = runs.train(config, out + "/1", communicator=ranks, device="gpu", progress=False)
    assert not nccl.moved
    ops.gpu_training().machine_and_gpu = lambda: ("here", str(ranks.rank))
    for size in (1, 2, 3, 1000, 100_001):
        for dtype in ("float32", "float64"):
            pieces = [array[:size].astype(dtype) for array in arrays]
            array = cupy.asarray(pieces[ranks.rank])
            sum_on_gpus(ranks, array)(array)
            np.testing.assert_array_equal(array.get(), (pieces[0] + pieces[1]) + pieces[2])
    nccl.moved.clear()
    run = runs.train(config, out + "/2", communicator=ranks, device="gpu", progress=False)
    assert nccl.moved
    np.testing.assert_array_equal(run.model.params.flat.get(), through_host.model.params.flat.get())
    ops.gpu_training().machine_and_gpu = lambda: ("here", "1") if ranks.rank else None
    assert sum_on_gpus(ranks, on_gpu) is None  # rank 0 has no NCCL
    print("done")
"""


def test_sums_from_gpu_to_gpu_have_the_bits_of_those_through_the_hosts(recipe, tmp_path, simulated):
    status, printed, errors = on_processes(3, FROM_GPU_TO_GPU, recipe, tmp_path)
    assert status == 0, errors
    assert printed.count("done") == 3


COMMANDS = """
import json, sys
from rnnlab import cli

for command in json.loads(sys.argv[1]):
    assert cli.main(command) == 0, command
"""


@needs_scorers
def test_other_commands_print_and_write_what_one_process_does(recipe, tmp_path, capsys):
    run = tmp_path / "run"
    train(load_recipe(recipe), run, progress=False)
    capsys.readouterr()

    def commands(folder):
        folder.mkdir()
        return [
            ["evaluate", str(run), "--metrics", "BLEU", "--json", str(folder / "scores.json")],
            ["caption", str(run), "test", "--picture", str(folder / "captions.png")],
            ["caption", str(run), "train", "--method", "sample", "--seed", "3"],
            ["discrepancy", str(run), "--json", str(folder / "distances.json")],
        ]

    for command in commands(tmp_path / "one"):
        assert cli.main(command) == 0
    expected = capsys.readouterr().out
    status, printed, errors = on_processes(2, COMMANDS, json.dumps(commands(tmp_path / "two")))
    assert status == 0, errors
    assert printed == expected
    for file in ("scores.json", "distances.json", "captions.png"):
        assert (tmp_path / "two" / file).read_bytes() == (tmp_path / "one" / file).read_bytes()


# In its n-th batch, rank 1 meets a signal or an error, or hangs, or it meets a signal in a validation. The
# rest is the command rnnlab train.
COMMAND = """
import os, signal, sys, time
from mpi4py import MPI
from rnnlab import cli
from rnnlab.errors import InputError
from rnnlab.models import CaptioningRNN

event, recipe, out, *options = sys.argv[1:]
loss, nll, calls = CaptioningRNN.loss, CaptioningRNN.nll, []

def eventful(model, *batch, **options):
    calls.append(batch)
    if MPI.COMM_WORLD.rank == 1 and len(calls) == 8:
        if event == "error":
            raise InputError("rank 1 is broken")
        if event == "hang":
            time.sleep(600)
        if event == "signal":
            os.kill(os.getpid(), signal.SIGTERM)
    return loss(model, *batch, **options)

def signalled(model, *batch):
    if MPI.COMM_WORLD.rank == 1 and event == "validation":
        os.kill(os.getpid(), signal.SIGTERM)
    return nll(model, *batch)

CaptioningRNN.loss, CaptioningRNN.nll = eventful, signalled
sys.exit(cli.main(["train", recipe, "--out", out, "--no-progress", *options]))
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
    assert printed.count(f"Resume with: mpirun -n 2 rnnlab train --resume {tmp_path}\n") == 1
    assert len(load_checkpoint(tmp_path / "last.h5").losses) == 8
    assert not resume(tmp_path, progress=False).interrupted


def test_a_signal_of_one_rank_in_a_validation_stops_all(recipe, tmp_path):
    status, printed, errors = on_processes(2, COMMAND, "validation", recipe, tmp_path)
    assert status == 128 + 15, errors
    assert "Traceback" not in errors
    assert printed.count("Interrupted after iteration") == 1
    last = load_checkpoint(tmp_path / "last.h5")
    assert last.history == []
    assert last.losses.size
    assert not resume(tmp_path, progress=False).interrupted


def test_a_rank_that_hangs_ends_the_job(recipe, tmp_path):
    started = time.monotonic()
    status, _, errors = on_processes(2, COMMAND, "hang", recipe, tmp_path, "--mpi-timeout", "6")
    assert time.monotonic() - started < 100
    assert status == 1
    assert "rnnlab: rank 0 of 2 has waited 6 s for the others in the exchange sum, called by " in errors
    assert errors.count("has waited") == 1
    assert len(load_checkpoint(tmp_path / "last.h5").history) == 1
