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
    """Limit processor time, the amount of output and, on Linux, memory; lower limits of the system stay."""
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
        _, most = resource.getrlimit(which)
        if most != resource.RLIM_INFINITY:
            limit = (min(limit[0], most), min(limit[1], most))
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
    # open files
    "open": (2, None), "creat": (85, None), "openat": (257, 56), "openat2": (437, 437),
    "open_by_handle_at": (304, 265), "memfd_create": (319, 279), "userfaultfd": (323, 282),
    # names of files
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "unlink": (87, None), "unlinkat": (263, 35),
    "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "mknod": (133, None), "mknodat": (259, 33),
    # sizes, permissions, owners, times and attributes of files
    "truncate": (76, 45), "ftruncate": (77, 46),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    # connections and shared memory
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200),
    "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269), "io_uring_setup": (425, 425),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195),
    "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181),
    # new processes and programs
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "clone3": (435, 435),
    "execve": (59, 221), "execveat": (322, 281),
    # signals
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "setrlimit": (160, 164), "prlimit64": (302, 261), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # the system
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "personality": (135, 92),
    "bpf": (321, 280), "perf_event_open": (298, 241), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89),
    "quotactl": (179, 60), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
}  # fmt: skip
_FCNTL = (72, 25)
_SIGNAL_COMMANDS = (8, 10, 15)  # F_SETOWN, F_SETSIG and F_SETOWN_EX: which process gets which signal
_LOAD, _EQUALS, _ABOVE, _RETURN = 0x20, 0x15, 0x25, 0x06  # instructions of the filter's machine
_ALLOW, _NOT_PERMITTED, _NOT_THERE, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def filter_system_calls() -> bool:
    """Refuse the calls above, most with "operation not permitted", from now on. This cannot be undone.

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
    program += [(_EQUALS, 0, 1 + 2 * len(_SIGNAL_COMMANDS), _FCNTL[column]), (_LOAD, 0, 0, 24)]  # its command
    for command in _SIGNAL_COMMANDS:
        program += [(_EQUALS, 0, 1, command), (_RETURN, 0, 0, _NOT_PERMITTED)]
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
