"""The restrictions of the student's process: it may only compute, for a limited time and in limited memory.

There are three layers. Resource limits of the operating system stop endless loops and floods of output. A
filter of system calls (Linux on x86-64 and ARM) refuses files, sockets, other processes and signals to any
code. An audit hook of Python refuses the same on other systems, and its error names the refused action.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

_REFUSED = {  # by the name of an audit event, or its part before the first dot
    "open": "opens the file {0!r}",
    "os": "calls the operating system ({event})",
    "subprocess": "starts another program",
    "pty": "starts another program",
    "socket": "opens a network connection",
    "urllib": "opens a network connection",
    "shutil": "changes files",
    "tempfile": "makes a file",
    "glob": "looks for files",
    "pathlib": "looks for files",
    "mmap": "maps a file",
    "ctypes": "calls C functions by ctypes",
    "signal": "sends a signal",
    "resource": "changes its limits",
    "sqlite3": "opens a database",
    "webbrowser": "starts another program",
    **dict.fromkeys(
        ["sys.setprofile", "sys.settrace", "sys.monitoring.register_callback"],
        "sets a function that observes calls ({event})",
    ),
}


class Refused(PermissionError):
    """The student's code has tried a forbidden action."""


def limit_resources(*, seconds: int, megabytes: int, output_bytes: int) -> None:
    """Limit processor time, memory and the amount of output."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = {
        resource.RLIMIT_CPU: (seconds, seconds + 1),
        resource.RLIMIT_FSIZE: (output_bytes, output_bytes),
        resource.RLIMIT_CORE: (0, 0),
    }
    if sys.platform == "linux":
        limits[resource.RLIMIT_AS] = (megabytes << 20, megabytes << 20)
    for which, limit in limits.items():
        resource.setrlimit(which, limit)


def refuse_by_audit() -> None:
    """Refuse files, programs, connections, ctypes and profilers from now on. This cannot be undone."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        what = _REFUSED.get(event) or _REFUSED.get(event.partition(".")[0])
        if what is not None:
            _deeper(10)  # Python also replaces a profile function that reaches the recursion limit
            raise Refused(what.format(*arguments, event=event) if "{0" in what else what.format(event=event))

    sys.addaudithook(hook)


def _deeper(count: int) -> None:
    """Nest so many calls, which raises RecursionError near the recursion limit."""
    if count:
        _deeper(count - 1)


# ---------------------------------------------------------------- the filter of system calls

# The kernel's identifiers of the architectures, and the numbers of the refused calls.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS: dict[str, tuple[int | None, int | None]] = {  # on x86-64, on ARM
    "open": (2, None), "creat": (85, None), "openat": (257, 56), "openat2": (437, 437),
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "sendto": (44, 206), "sendmsg": (46, 211),
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435),
    "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_send_signal": (424, 424),
    "truncate": (76, 45), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "unlink": (87, None), "unlinkat": (263, 35),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "chmod": (90, None), "fchmodat": (268, 53), "chown": (92, None), "fchownat": (260, 54),
    "mknod": (133, None), "mknodat": (259, 33), "mount": (165, 40), "chroot": (161, 51),
    "setrlimit": (160, 164), "prlimit64": (302, 261), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "io_uring_setup": (425, 425), "bpf": (321, 280), "unshare": (272, 97),
    "setns": (308, 268), "personality": (135, 92), "keyctl": (250, 219), "perf_event_open": (298, 241),
}  # fmt: skip
_LOAD, _EQUALS, _ABOVE, _RETURN = 0x20, 0x15, 0x25, 0x06  # instructions of the filter's machine
_ALLOW, _NOT_PERMITTED, _NOT_THERE, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def filter_system_calls() -> bool:
    """Refuse the system calls above with "operation not permitted" from now on. This cannot be undone.

    Returns
    -------
    bool
        False on a system that has no such filter.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _ARCHITECTURES or sys.maxsize < 2**32:
        return False
    column = [*_ARCHITECTURES].index(machine)
    program = [(_LOAD, 0, 0, 4), (_EQUALS, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _KILL)]
    program.append((_LOAD, 0, 0, 0))
    if machine == "x86_64":  # also refuse the x32 interface, whose calls have other numbers
        program += [(_ABOVE, 0, 1, 0x3FFFFFFF), (_RETURN, 0, 0, _NOT_PERMITTED)]
    for name, numbers in _CALLS.items():
        if (number := numbers[column]) is not None:
            program += [(_EQUALS, 0, 1, number)]
            program += [(_RETURN, 0, 0, _NOT_THERE if name == "clone3" else _NOT_PERMITTED)]
    program.append((_RETURN, 0, 0, _ALLOW))
    return _install(program)


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jump_true", ctypes.c_ubyte),
        ("jump_false", ctypes.c_ubyte),
        ("operand", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def _install(program: list[tuple[int, int, int, int]]) -> bool:
    """Install the filter in the kernel; False if the kernel does not support filters."""
    set_no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    instructions = (_Instruction * len(program))(*(_Instruction(*each) for each in program))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(set_no_new_privileges, 1, 0, 0, 0):
        return False
    return prctl(set_seccomp, by_filter, ctypes.byref(_Program(len(program), instructions)), 0, 0) == 0
