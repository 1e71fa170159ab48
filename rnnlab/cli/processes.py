"""Commands as processes, several at a time. A signal to this process ends all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from rnnlab.training.interrupt import handled


class Command(NamedTuple):
    """The words of a command, and the file that its output is appended to."""

    name: str
    words: Sequence[str]
    log: Path


def rnnlab_command() -> list[str]:
    """The words that start ``rnnlab`` in another process, which imports modules from where this one does.

    ``python -m rnnlab`` would import from the working directory first, which may hold a ``random.py``.
    """
    path = [each for each in sys.path if isinstance(each, str)]  # Python ignores others
    code = f"import sys; sys.path[:] = {path!r}; from rnnlab.__main__ import main; sys.exit(main())"
    return [sys.executable, "-P", "-c", code]


class Processes:
    """Runs each command in a separate process.

    Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP are forwarded to all processes, and no further one is started. Each
    process has its own session, because a terminal would otherwise send Ctrl-C to it as well, and a second
    signal ends a training without a checkpoint.

    Parameters
    ----------
    jobs : int
        The maximum number of processes at a time.
    environment : mapping of str to str
        Variables in addition to those of this process.

    Attributes
    ----------
    received : signal.Signals or None
        The last signal.
    """

    def __init__(self, jobs: int, environment: Mapping[str, str]) -> None:
        self._jobs, self._environment = jobs, {**os.environ, **environment}
        self._running: list[subprocess.Popen[bytes]] = []
        # Held while a process starts, so that a signal either reaches it or prevents it. A second signal may
        # arrive meanwhile.
        self._starting = threading.RLock()
        self.received: signal.Signals | None = None

    def run(self, commands: Sequence[Command]) -> Iterator[tuple[Command, int | None]]:
        """Yield each command when it ends, with its exit status; None if it was not started.

        It must be called in the main thread, which receives the signals.

        Raises
        ------
        OSError
            If a process cannot be started. Running processes are waited for, and no further one is started.
        """
        with handled(self._send_on), ThreadPoolExecutor(self._jobs) as pool:
            futures = {pool.submit(self._run, command): command for command in commands}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _run(self, command: Command) -> int | None:
        with self._starting:
            if self.received is not None:
                return None
            command.log.parent.mkdir(parents=True, exist_ok=True)
            with command.log.open("ab") as log:
                process = subprocess.Popen(
                    command.words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    start_new_session=True,
                )
            self._running.append(process)
        return process.wait()

    def _send_on(self, number: int, frame: FrameType | None) -> None:
        with self._starting:
            self.received = signal.Signals(number)
        if os.name == "nt":  # the console sends Ctrl-C to all processes, and no other signal can be sent
            return
        for process in self._running:
            process.send_signal(number)  # does nothing if the process has ended
