from __future__ import annotations

import errno
import json
import math
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import h5py
import numpy as np
import pytest

from rnnlab import files
from rnnlab.files import (
    WriteError,
    atomic_folder,
    atomic_hdf5,
    atomic_text,
    atomic_write,
    check_new_folder,
    check_writable,
    write_json,
)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_writes_and_makes_the_directory(tmp_path):
    target = tmp_path / "a" / "b" / "x.txt"
    with atomic_write(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == target.parent
        assert temporary.suffix == ".txt"
        assert not target.exists()
    assert target.read_text() == "new"
    assert names(target.parent) == ["x.txt"]


def test_replaces_only_at_the_end(tmp_path):
    target = tmp_path / "x.txt"
    target.write_text("old")
    with atomic_write(str(target)) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "x.txt"
    target.write_text("old")

    def write():
        with atomic_write(target) as temporary:
            temporary.write_text("half of the n")
            raise error

    with pytest.raises(error):
        write()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


def test_data_are_on_disk_before_the_rename(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (steps.append("sync"), fsync(handle)))
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda self, target: (steps.append("rename"), replace(self, target))
    )
    with atomic_write(tmp_path / "x") as temporary:
        temporary.write_text("new")
        assert steps == []
    assert steps[:2] == ["sync", "rename"]


def test_where_no_folder_can_be_opened_files_are_flushed_alone(tmp_path, monkeypatch):
    """Windows opens no folders, and flushes only what is opened to be written."""
    flushed, opened = [], os.open

    def windows_open(path, flags, *rest, **options):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "a folder", str(path))
        handle = opened(path, flags, *rest, **options)
        flushed.append(flags & os.O_RDWR == os.O_RDWR)
        return handle

    monkeypatch.setattr(files, "_OPENS_FOLDERS", False)
    monkeypatch.setattr(os, "open", windows_open)
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    with atomic_folder("--out", tmp_path / "folder") as temporary:
        (temporary / "b.txt").write_text("b")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert (tmp_path / "folder" / "b.txt").read_text() == "b"
    assert all(flushed)


def opened_elsewhere(monkeypatch, attempts):
    """Windows refuses so many times to replace a file, because another program has it open."""
    replace, refused, pauses = Path.replace, iter(range(attempts)), []

    def busy(path, target):
        if next(refused, None) is not None:
            raise PermissionError(errno.EACCES, "Access is denied")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", busy)
    monkeypatch.setattr(files, "_PAUSES", (0.1, 0.2))
    monkeypatch.setattr(files.time, "sleep", pauses.append)
    return pauses


def test_a_file_that_is_open_elsewhere_for_a_moment(tmp_path, monkeypatch):
    pauses = opened_elsewhere(monkeypatch, attempts=2)
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert pauses == [0.1, 0.2]


def test_a_file_that_stays_open_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("old")
    opened_elsewhere(monkeypatch, attempts=3)
    with (
        pytest.raises(WriteError, match="a.txt was not written: Access is denied"),
        atomic_write(tmp_path / "a.txt") as temporary,
    ):
        temporary.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_file_system_that_cannot_flush_a_folder(number, tmp_path, monkeypatch):
    flush = os.fsync

    def no_folder(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, "no flush")
        flush(handle)

    monkeypatch.setattr(os, "fsync", no_folder)
    broken = pytest.raises(WriteError, match="no flush") if number == errno.EIO else nullcontext()
    with broken, atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_threads_that_write_leave_the_umask(tmp_path, monkeypatch):
    first, umask = threading.Event(), os.umask

    def slow(mask):
        previous = umask(mask)
        if mask == 0 and not first.is_set():
            first.set()
            time.sleep(0.2)
        return previous

    def write(name):
        with atomic_write(tmp_path / name) as temporary:
            temporary.write_text(name)

    before = umask(0o22)
    try:
        monkeypatch.setattr(os, "umask", slow)
        threads = [threading.Thread(target=write, args=("a",))]
        threads[0].start()
        first.wait()
        write("b")
        threads[0].join()
        assert umask(0o22) == 0o22
    finally:
        umask(before)


def test_mode_is_that_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    with atomic_write(tmp_path / "x") as temporary:
        temporary.touch()
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "x")}
    assert len(modes) == 1


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    (tmp_path / "x").touch()
    (tmp_path / "x").chmod(mode)
    (tmp_path / "link").symlink_to("x")
    for name in ("x", "link"):
        with atomic_write(tmp_path / name) as temporary:
            temporary.write_text(name)
        assert (tmp_path / "x").read_text() == name
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


def test_what_cannot_be_written_is_found_early(tmp_path, monkeypatch):
    check_writable("--out", tmp_path / "new" / "folder" / "x.txt")
    check_writable("--out", tmp_path / "new" / "folder", is_folder=True)
    check_writable("--out", tmp_path, is_folder=True)
    assert names(tmp_path) == []
    with pytest.raises(IsADirectoryError, match="--out .* cannot be written: it is a directory, expected a"):
        check_writable("--out", tmp_path)
    (tmp_path / "file").touch()
    check_writable("--out", tmp_path / "file")
    for path, is_folder in ((tmp_path / "file" / "x", False), (tmp_path / "file", True)):
        with pytest.raises(NotADirectoryError, match="file is a file, expected a folder"):
            check_writable("--out", path, is_folder=is_folder)

    (tmp_path / "link").symlink_to("absent")
    for path, is_folder in ((tmp_path / "link" / "x", False), (tmp_path / "link" / "new" / "x", True)):
        with pytest.raises(NotADirectoryError, match="link is a link to nothing, expected a folder"):
            check_writable("--out", path, is_folder=is_folder)

    def refuse(dir):
        raise PermissionError(13, "Permission denied", f"{dir}/tmp12345")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    target = tmp_path / "new" / "x.txt"
    with pytest.raises(PermissionError) as caught:
        check_writable("--out", target)
    reason = f"{tmp_path} takes no new files (Permission denied)"
    assert str(caught.value) == f"--out {target} cannot be written: {reason}"


def test_a_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    target, real_stat = tmp_path / "theirs" / "x.json", os.stat

    def stat_of_mine(path, *arguments, **options):
        if os.fspath(path) == str(target):
            raise PermissionError(13, "Permission denied", str(path))
        return real_stat(path, *arguments, **options)

    def refuse(dir):
        raise PermissionError(13, "Permission denied", f"{dir}/tmp12345")

    monkeypatch.setattr(os, "stat", stat_of_mine)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(PermissionError) as caught:
        check_writable("--json", target)
    reason = f"{tmp_path / 'theirs'} takes no new files (Permission denied)"
    assert str(caught.value) == f"--json {target} cannot be written: {reason}"


def test_names_that_no_file_can_have_are_found_early(tmp_path):
    for name in ("a" * 300, "a" * 250 + ".json"):  # atomic_write adds to the name
        for folder in (tmp_path, tmp_path / "new"):
            with pytest.raises(OSError, match=f"^--json .*/{name} cannot be written: File name too long$"):
                check_writable("--json", folder / name)
    with pytest.raises(
        IsADirectoryError, match="^--json .*/new/ cannot be written: it ends with /, expected a"
    ):
        check_writable("--json", f"{tmp_path}/new/")
    check_writable("--out", f"{tmp_path}/new/", is_folder=True)
    check_new_folder("--out", f"{tmp_path}/new/")
    assert names(tmp_path) == []


def test_a_folder_is_there_at_the_end(tmp_path):
    target = tmp_path / "a" / "made"
    with atomic_folder("--out", target) as temporary:
        (temporary / "x.txt").write_text("new")
        assert temporary.parent == target.parent
        assert not target.exists()
    assert (target / "x.txt").read_text() == "new"
    assert names(target.parent) == ["made"]
    (tmp_path / "plain").mkdir()
    assert len({stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "plain", target)}) == 1


def test_no_folder_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = names(tmp_path)
    for name in before:
        message = (
            f"^--out .*{name} already exists, expected no such folder: delete it, or choose another one$"
        )
        with pytest.raises(FileExistsError, match=message):
            check_new_folder("--out", tmp_path / name)
        with pytest.raises(FileExistsError, match=message), atomic_folder("--out", tmp_path / name):
            pytest.fail("the block began")
    check_new_folder("--out", tmp_path / "new")
    with pytest.raises(NotADirectoryError, match="--out .* cannot be written: .*file is a file, expected a"):
        check_new_folder("--out", tmp_path / "file" / "new")
    assert names(tmp_path) == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_error_leaves_no_folder(tmp_path, error):
    def write():
        with atomic_folder("--out", tmp_path / "made") as temporary:
            (temporary / "x.txt").write_text("half")
            raise error("full")

    with pytest.raises(WriteError if error is OSError else error, match="full"):
        write()
    assert names(tmp_path) == []


def test_the_error_of_a_file_in_a_folder_names_the_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write():
        with atomic_folder("--out", tmp_path / "made") as temporary, atomic_write(temporary / "x.txt"):
            full()

    with pytest.raises(WriteError, match=f"^{tmp_path}/made was not written: No space left on device$"):
        write()


# ------------------------------------------------------------------ files that cannot be written


@pytest.mark.parametrize("call", ["mkstemp", "fsync", "replace", "block"])
def test_what_the_system_refuses_is_a_write_error(tmp_path, monkeypatch, call):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "x.txt"
    target.write_text("old")
    places = {"mkstemp": "tempfile.mkstemp", "fsync": "os.fsync", "replace": "pathlib.Path.replace"}
    if call in places:
        monkeypatch.setattr(places[call], full)

    def write():
        with atomic_write(target):
            if call == "block":
                full()

    with pytest.raises(WriteError, match=r"x.txt was not written: No space left on device"):
        write()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.txt"]


WRITE = """
import resource, sys
import numpy as np
from rnnlab.files import WriteError, atomic_hdf5
limit, path, options = int(sys.argv[1]), sys.argv[2], eval(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with atomic_hdf5(path, **options) as file:
        chunked = file.create_dataset("chunked", (100, 50), np.float32, chunks=(10, 50))
        whole = file.create_dataset("whole", (100, 50), np.float32)
        for row in range(100):
            chunked[row] = whole[row] = row
        for k in range(20):
            file[f"group{k}/names"] = np.array([b"name"] * 50)
except WriteError as error:
    print(error)
"""


@pytest.mark.one_in(5)
@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("options", [{}, {"libver": "latest"}])
@pytest.mark.parametrize("limit", [1, 700, 20_000, 39_990, 52_000])
def test_a_full_disk_is_an_error_and_no_crash(tmp_path, limit, options):
    target = tmp_path / "x.h5"
    target.write_text("old")
    command = [sys.executable, "-c", WRITE, str(limit), str(target), repr(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{target} was not written: File too large\n"
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.h5"]


def test_an_hdf5_file_is_whole_or_absent(tmp_path):
    def fail():
        with atomic_hdf5(tmp_path / "x.h5") as file:
            file["a"] = np.arange(5)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not names(tmp_path)
    with atomic_hdf5(tmp_path / "x.h5") as file:
        file["a"] = np.arange(5)
    with h5py.File(tmp_path / "x.h5") as file:
        np.testing.assert_array_equal(file["a"][()], np.arange(5))


RANDOM_ALARMS = """
import random, signal, sys
import numpy as np
import h5py
from rnnlab.files import atomic_hdf5

class Alarm(BaseException):
    pass

def ring(number, frame):
    raise Alarm

signal.signal(signal.SIGALRM, ring)
path, values, alarms = sys.argv[1], np.arange(200_000.0), 0

def write(k):
    signal.setitimer(signal.ITIMER_REAL, random.Random(k).uniform(1e-5, 6e-3))
    while True:
        with atomic_hdf5(path, libver="latest") as file:
            for name in "abc":
                file.create_dataset(name, data=values + k, chunks=(5000,), fletcher32=True)

for k in range(120):
    try:
        try:
            write(k)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Alarm:
        alarms += 1
    try:
        with h5py.File(path) as file:
            first = [file[name][0] for name in "abc"]
            assert len(set(first)) == 1 and first[0] <= k, first
            assert all((file[name][:] == values + first[0]).all() for name in "abc"), k
    except FileNotFoundError:
        assert k < 60, "found no file after 60 interruptions"
print(alarms)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX")
def test_an_exception_of_a_signal_handler_at_any_moment(tmp_path):
    """HDF5 calls Python to write; an exception there would be lost with a part of the file, or crash."""
    script = [sys.executable, "-c", RANDOM_ALARMS, str(tmp_path / "x.h5")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == 120
    assert names(tmp_path) in (["x.h5"], [])


def test_json_has_no_numbers_of_its_own(tmp_path):
    content = {"ü": (np.float32(0.5), math.nan), "b": [math.inf, True, None]}
    write_json(tmp_path / "a" / "x.json", content)
    text = (tmp_path / "a" / "x.json").read_text(encoding="utf-8")
    assert text == '{"ü": [0.5, null], "b": [null, true, null]}\n'
    write_json(tmp_path / "a" / "x.json", [1], indent=1)
    assert (tmp_path / "a" / "x.json").read_text() == "[\n 1\n]\n"
    with pytest.raises(TypeError):
        write_json(tmp_path / "a" / "x.json", {"model": object})
    assert (tmp_path / "a" / "x.json").read_text() == "[\n 1\n]\n"


def test_a_name_that_is_not_utf_8_is_escaped(tmp_path):
    name = os.fsdecode(b"\xffx")
    with atomic_text(tmp_path / "x.json") as file:
        file.write(json.dumps(["ü", name], ensure_ascii=False) + "\n")
    assert (tmp_path / "x.json").read_bytes() == b'["\xc3\xbc", "\\udcffx"]\n'
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == ["ü", name]


def test_a_link_stays(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "x.txt", tmp_path / "link"
    link.symlink_to(target)
    for text in ("first", "second"):  # the target is made, then replaced
        check_writable("--out", link)
        with atomic_write(link) as temporary:
            temporary.write_text(text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert names(tmp_path) == ["link", "there"]
    assert names(target.parent) == ["x.txt"]


def test_a_pipe_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(
        OSError, match="--json .* cannot be written: it is a device or a pipe, expected a file"
    ):
        check_writable("--json", pipe)
    with pytest.raises(WriteError, match="was not written: it is a device or a pipe"), atomic_write(pipe):
        pass
    assert pipe.is_fifo()


def test_the_file_that_is_missing_is_named(tmp_path):
    with (
        pytest.raises(WriteError, match=r"out.txt was not written: .*absent.txt: No such file or directory$"),
        atomic_write(tmp_path / "out.txt") as file,
    ):
        file.write_text((tmp_path / "absent.txt").read_text())
