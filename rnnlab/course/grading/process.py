"""A process that runs one student's functions, and its answers."""

from __future__ import annotations

import io
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, NoReturn, Self

from rnnlab.course.grading import sandbox
from rnnlab.course.grading.sandbox import wire
from rnnlab.errors import InputError

_MOST_REPLY = 64 << 20  # bytes
# The sandbox's modules as a separate package, without rnnlab.
_START = """
import importlib.util, os, sys
sys.dont_write_bytecode = True
folder, requests, replies = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "sandbox", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
)
sys.modules["sandbox"] = importlib.util.module_from_spec(spec)
from sandbox.serve import serve
serve(os.fdopen(int(requests), "rb"), os.fdopen(int(replies), "wb"))
"""


# the minimum and the maximum of each limit; a process cannot have larger ones
BOUNDS = {"seconds": (0.1, 86_400), "megabytes": (300, 10_000_000), "output_bytes": (0, 1 << 40)}


@dataclass(frozen=True)
class Limits:
    """Limits on the resources of a student's function.

    Attributes
    ----------
    seconds : float
        The time of one call, and of the definitions of one cell.
    megabytes : int
        The memory of the process, including that of Python and NumPy.
    output_bytes : int
        The amount of output.
    """

    seconds: float = 5.0
    megabytes: int = 1500
    output_bytes: int = 4 << 20

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                raise InputError(f"Limits: {name} is {value!r}, expected a number from {least:,} to {most:,}")


class _Deadline(NamedTuple):
    """The time at which an answer must be complete, and the seconds that it had."""

    time: float
    seconds: float


class Stopped(Exception):
    """The student's process has been stopped. The message says why: "has no result after 5 s"."""


class StudentProcess:
    """Runs a student's functions without access to rnnlab, files, the network and other processes.

    After :class:`Stopped` the process has ended; :meth:`start` starts it again.

    Parameters
    ----------
    cells : mapping of str to str
        The code cells that define the functions, by name. Definitions, imports and assignments are run.
    limits : Limits
    constants_only : collection of str
        The cells in which only definitions and constants are run.
    counted : collection of str
        The functions whose calls within a call are counted, for the answer's ``forwards``.
    """

    def __init__(
        self,
        cells: Mapping[str, str],
        limits: Limits,
        *,
        constants_only: Collection[str] = (),
        counted: Collection[str] = (),
    ) -> None:
        self._cells = dict(cells)
        self._counted = tuple(counted)
        self._constants_only = set(constants_only)
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: int | None = None
        self._replies: int | None = None
        self._output: IO[bytes] | None = None
        self._said = ""  # the last line of the output of a process that has ended
        self.problems: dict[str, str] = {}  # problems of the definitions, by cell
        self.functions: set[str] = set()  # names of the defined functions
        self.filtered = False  # whether the kernel filters its system calls

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(
        self,
        function: str,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        keep_cache: bool = False,
        given: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    ) -> Mapping[str, Any]:
        """Call a function; see :mod:`rnnlab.course.grading.sandbox.serve` for the answer.

        The functions ``given`` are computed in this process, whenever the student's function calls them.

        Raises
        ------
        Stopped
            If there is no answer.
        """
        if self._process is None:
            self.start()
        request = {
            "function": function,
            "arguments": arguments,
            "options": dict(options),
            "keep_cache": keep_cache,
            "asked": (*given,),
            "counted": self._counted,
        }
        deadline = time.monotonic() + self.limits.seconds
        answer = self._ask(request)
        while "ask" in answer:
            if time.monotonic() > deadline:
                self._stop_because(_no_result(self.limits.seconds))
            answer = self._ask(_computed(given, answer))
        if "error" in answer and self._printed_too_much():
            self._stop_because(f"prints more than {self.limits.output_bytes:,} bytes")
        return answer

    def _printed_too_much(self) -> bool:
        assert self._output is not None
        return os.fstat(self._output.fileno()).st_size >= self.limits.output_bytes

    def start(self) -> None:
        """Start the process and define the functions.

        If a cell stops the process, only its definitions and constants are run; if that stops it as well, the
        cell is left out.

        Raises
        ------
        OSError
            If the process does not start, independent of the student's code.
        """
        self._launch()
        for name in list(self._cells):
            try:
                answer = self._ask(
                    {
                        "source": self._cells[name],
                        "name": name,
                        "constants_only": name in self._constants_only,
                    }
                )
            except Stopped as stopped:
                if name in self._constants_only:
                    self.problems[name] = f"{name} {stopped}"
                    del self._cells[name]
                self._constants_only.add(name)
                return self.start()
            self.functions.update(answer["functions"])
            for problem in answer["problems"]:
                self.problems.setdefault(name, _problem(name, problem))

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for end in (self._requests, self._replies):
            if end is not None:
                os.close(end)
        if self._output is not None:
            self._said = _last_line(self._output)
            self._output.close()
        self._requests = self._replies = self._output = None

    def _launch(self) -> None:
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        os.set_blocking(self._requests, False)  # the process may not read
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  closed by stop
        folder = str(Path(sandbox.__file__).parent)
        environment = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        with tempfile.TemporaryDirectory() as empty:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, folder, str(request_end), str(reply_end)],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(request_end, reply_end),
                cwd=empty,
                env=environment | {"PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
            os.close(request_end)
            os.close(reply_end)
            limits = asdict(self.limits)
            # Processor time is limited from the start; the time of a single call is measured from outside.
            limits["seconds"] = 60 + int(20 * self.limits.seconds)
            try:
                answer = self._ask({"limits": limits, "code": "\n".join(self._cells.values())}, seconds=60)
            except Stopped as stopped:
                said = f": {self._said}" if self._said else ""
                raise OSError(
                    f"a process for students' functions does not start: it {stopped}{said}"
                ) from None
        self.filtered = bool(answer["filtered"])

    def _ask(self, request: Mapping[str, Any], seconds: float | None = None) -> Mapping[str, Any]:
        seconds = seconds or self.limits.seconds
        deadline = _Deadline(time.monotonic() + seconds, seconds)
        self._write(request, deadline)
        answer = self._answer(deadline)
        if not isinstance(answer, Mapping):
            self._stop_because("has written into the channel of the results")
        return answer

    def _write(self, request: Mapping[str, Any], deadline: _Deadline) -> None:
        """Write a request."""
        assert self._requests is not None
        frame = io.BytesIO()
        wire.send(frame, dict(request))
        rest = frame.getbuffer()
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_WRITE)
            while rest:
                self._wait(selector, deadline)
                try:
                    rest = rest[os.write(self._requests, rest) :]
                except BrokenPipeError:
                    self._stop_because(self._ended())

    def _answer(self, deadline: _Deadline) -> Any:
        start = self._read(wire.START, deadline)
        try:
            rest = self._read(wire.frame_length(start, _MOST_REPLY), deadline)
            return wire.value_of(start, rest)
        except wire.BadFrame as error:
            self._stop_because(f"returns too much, or has written into the channel of the results ({error})")

    def _read(self, count: int, deadline: _Deadline) -> bytes:
        """Read ``count`` bytes of a reply."""
        assert self._replies is not None
        pieces: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(self._replies, selectors.EVENT_READ)
            while count:
                self._wait(selector, deadline)
                pieces.append(os.read(self._replies, min(count, 1 << 20)))
                if not pieces[-1]:
                    self._stop_because(self._ended())
                count -= len(pieces[-1])
        return b"".join(pieces)

    def _wait(self, selector: selectors.BaseSelector, deadline: _Deadline) -> None:
        """Wait until the pipe is ready; stop the process at the deadline."""
        if not selector.select(max(deadline.time - time.monotonic(), 0)):
            self._stop_because(_no_result(deadline.seconds))

    def _ended(self) -> str:
        """The reason why the process has ended by itself."""
        assert self._process is not None
        code = self._process.wait()
        if self._printed_too_much():
            return f"prints more than {self.limits.output_bytes:,} bytes"
        if code in (-24, -9):  # SIGXCPU, SIGKILL
            return "needs too much processor time or memory"
        return f"ends the process (exit status {code})"

    def _stop_because(self, reason: str) -> NoReturn:
        self.stop()
        raise Stopped(reason)


def _last_line(output: IO[bytes]) -> str:
    """The end of the last line of a file."""
    output.seek(max(0, output.seek(0, os.SEEK_END) - 500))
    lines = output.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _computed(given: Mapping[str, Callable[..., Any]], question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a call of a given function."""
    try:
        function = given[str(question["ask"])]
        return {"results": function(*question["arguments"], **question["options"])}
    except Exception as error:  # the student's arguments do not fit
        return {"raises": f"{question['ask']}: {error}"}


def _no_result(seconds: float) -> str:
    return f"has no result after {seconds:g} s: there may be a loop without end"


def _problem(name: str, described: Mapping[str, Any]) -> str:
    """A description of the error in a definition."""
    place = str(described["place"]).removeprefix(f"{name}, ")
    error, message = described["error"], described["message"]
    what = f" {message}" if error in ("NotAtHand", "Refused") else f": {error}: {message}"
    return f"{name}{what}{f', in {place}' if place else ''}"
