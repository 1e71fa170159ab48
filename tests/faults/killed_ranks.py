"""The ranks of an MPI job that trains, one of which is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..training.mpirun import mpirun

_SIZE = 2
_PROGRAM = """
import json, os, sys
from pathlib import Path
from unittest.mock import patch
from rnnlab.training.distributed import world
from tests.faults.kills import train_on

tables, path, folder = json.loads(sys.argv[1]), *map(Path, sys.argv[2:])
ranks = world()
with patch("rnnlab.training.run_directory.RunDirectory.plot"):
    train_on(tables | {"training": tables["training"] | {"num_epochs": 1}}, folder / f"kernels{ranks.rank}")
    ready = folder / f"{ranks.rank}.new"
    ready.write_text(str(os.getpid()))
    ready.rename(folder / str(ranks.rank))
    train_on(tables, path, ranks)
"""


class Job:
    """The :class:`~tests.faults.kills.Training` of two ranks, of which a random one is killed.

    It exists when both have started and loaded their kernels, so that a kill comes while they train. mpirun
    ends the other rank.
    """

    def __init__(self, tables: dict[str, Any], path: Path) -> None:
        self._folder = tempfile.TemporaryDirectory()
        command, options = mpirun(_SIZE, _PROGRAM, json.dumps(tables), path, self._folder.name)
        self._mpirun = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
        files = [Path(self._folder.name, str(rank)) for rank in range(_SIZE)]
        while self._mpirun.poll() is None and not all(file.exists() for file in files):
            time.sleep(0.01)
        self._ranks = [int(file.read_text()) for file in files if file.exists()]

    def kill(self, rng: random.Random) -> None:
        """Kill one rank."""
        with suppress(ProcessLookupError):
            os.kill(rng.choice(self._ranks), signal.SIGKILL)

    def wait(self) -> int:
        """The exit status of mpirun, whose 137 stands for a rank that was killed."""
        status = self._mpirun.wait()
        self._folder.cleanup()
        return -signal.SIGKILL if status == 128 + signal.SIGKILL else status
