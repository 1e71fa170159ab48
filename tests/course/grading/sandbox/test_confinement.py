"""What the process refuses, once in Python and once in the kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rnnlab.course.grading.process import Limits, StudentProcess
from rnnlab.course.grading.sandbox import confinement

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process needs POSIX")
FUNCTIONS = """
import random

def opens(x):
    return open("/etc/passwd").read()

def writes(x):
    return open("file", "w")

def system(x):
    return random._os.system("true")

def forks(x):
    return random._os.fork()

def kills(x):
    random._os.kill(random._os.getppid(), 9)

def connects(x):
    import _socket
    return _socket.socket()

def loads(x):
    return np.ctypeslib.ctypes.CDLL(None)

def changes_environment(x):
    random._os.chdir("/")

import collections

def profiles(x):
    collections._sys.setprofile(None)

def traces(x):
    collections._sys.settrace(print)

def observes(x):
    collections._sys.monitoring.register_callback(0, 1, print)
"""


@pytest.fixture(scope="module")
def student() -> Iterator[StudentProcess]:
    with StudentProcess({"cell": FUNCTIONS}, Limits()) as process:
        process.start()
        yield process


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("opens", "opens the file '/etc/passwd'"),
        ("writes", "opens the file 'file'"),
        ("system", "os.system"),
        ("forks", "os.fork"),
        ("kills", "os.kill"),
        ("changes_environment", "os.chdir"),
        ("profiles", "sets a function that observes calls (sys.setprofile)"),
        ("traces", "sets a function that observes calls (sys.settrace)"),
    ],
)
def test_refused_by_python(student: StudentProcess, name: str, message: str) -> None:
    answer = student.call(name, (np.ones(2),))
    assert answer["error"] == "Refused"
    assert message in answer["message"]


@pytest.mark.parametrize("name", ["connects", "loads", "observes"])
def test_other_errors(student: StudentProcess, name: str) -> None:
    assert "error" in student.call(name, (np.ones(2),))


@pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux")
def test_the_kernel_filters(student: StudentProcess) -> None:
    assert student.filtered


ATTEMPTS = {
    "read": "open('/etc/hostname')",
    "write": "open('file', 'w')",
    "folder": "os.mkdir('folder')",
    "fork": "os.fork()",
    "program": "os.execv('/bin/true', ['true'])",
    "connection": "socket.socket()",
    "signal": "os.kill(os.getppid(), 0)",
    "thread": "threading.Thread(target=print).start()",
    "limits": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    "removal": "os.unlink(sys.argv[0])",
    "times": "os.utime(sys.argv[0])",
    "permissions": "os.fchmod(mine.fileno(), 0o600)",
    "attribute": "os.setxattr(sys.argv[0], 'user.name', b'x')",
    "priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 0)",
    "signal by a pipe": "fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())",
}


@pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_kernel_refuses_what_gets_past_python(tmp_path: Path, attempt: str) -> None:
    """Without the audit hook."""
    script = tmp_path / "script.py"
    script.write_text(
        "import fcntl, os, resource, socket, sys, threading\n"
        f"sys.path.insert(0, {str(Path(confinement.__file__).parent)!r})\n"
        "import confinement\n"
        "print(1 + 1)\n"
        "mine = open(sys.argv[0])\n"
        "assert confinement.filter_system_calls()\n"
        f"try:\n    {ATTEMPTS[attempt]}\n"
        "except (OSError, ValueError, RuntimeError) as error:\n    print(type(error).__name__)\n"
    )
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60
    )
    assert run.stderr == ""
    first, error = run.stdout.split()
    assert (first, error) == (
        "2",
        {"thread": "RuntimeError", "limits": "ValueError"}.get(attempt, "PermissionError"),
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["script.py"]


EVERY_CALL = f"""
import ctypes, sys
sys.path.insert(0, {str(Path(confinement.__file__).parent)!r})
import confinement
libc = ctypes.CDLL(None, use_errno=True)
column = [*confinement._ARCHITECTURES].index(confinement.platform.machine())
assert confinement.filter_system_calls()
for name, numbers in confinement._CALLS.items():
    if numbers[column] is not None:
        libc.syscall(numbers[column], -1, -1, -1, -1, -1, -1)
        assert ctypes.get_errno() == (38 if name == "clone3" else 1), name
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a filter of Linux")
def test_the_kernel_refuses_every_call_of_the_table() -> None:
    run = subprocess.run([sys.executable, "-c", EVERY_CALL], stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(("column", "header"), [(0, "*/asm/unistd_64.h"), (1, "asm-generic/unistd.h")])
def test_the_numbers_of_calls(column: int, header: str) -> None:
    """They are those of the kernel's headers, which may be older than some calls."""
    texts = [path.read_text() for path in Path("/usr/include").glob(header)]
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", "".join(texts)))
    if len(found) < 300:
        pytest.skip("the headers of this architecture are not installed")
    numbers = {name: each[column] for name, each in confinement._CALLS.items()}
    assert {name: int(found[name]) for name in numbers if name in found} == {
        name: number for name, number in numbers.items() if name in found
    }
    assert {name for name, number in numbers.items() if number is None} & found.keys() == set()
    assert int(found["fcntl"]) == confinement._FCNTL[column]


@pytest.mark.slow
def test_lower_limits_of_the_system_stay(tmp_path: Path) -> None:
    script = (
        f"import resource, sys\nsys.path.insert(0, {str(Path(confinement.__file__).parent)!r})\n"
        "import confinement\nresource.setrlimit(resource.RLIMIT_CPU, (20, 30))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50, 1000))\n"
        "confinement.limit_resources(seconds=25, megabytes=500, output_bytes=100)\n"
        "print(*map(resource.getrlimit, [resource.RLIMIT_CPU, resource.RLIMIT_FSIZE]))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout == "(25, 26) (100, 100)\n"


@pytest.mark.slow
def test_limits_of_the_process(tmp_path: Path) -> None:
    script = (
        f"import sys\nsys.path.insert(0, {str(Path(confinement.__file__).parent)!r})\n"
        "import confinement\nconfinement.limit_resources(seconds=1, megabytes=500, output_bytes=100)\n"
    )
    for body in ("while True: pass", "open('file', 'wb', 0).write(b'x' * 200)[200]"):
        run = subprocess.run(
            [sys.executable, "-c", script + body], capture_output=True, cwd=tmp_path, check=False, timeout=60
        )
        assert run.returncode != 0
    assert (tmp_path / "file").stat().st_size == 100
