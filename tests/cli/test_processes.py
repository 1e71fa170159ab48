"""Processes side by side, and the signals that end them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import rnnlab
from rnnlab.cli.processes import Command, Processes, rnnlab_command

WAITS = """
import pathlib, signal, sys, time
def end(number, frame):
    print("signal", number, flush=True)
    sys.exit(128 + number)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, end)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""


def command(folder, name, code, *arguments):
    return Command(name, [sys.executable, "-c", code, *arguments], folder / name / "log")


def test_each_command_with_its_exit_status_and_its_output(tmp_path):
    codes = {"good": "print('one')", "bad": "raise SystemExit(3)", "env": "import os; print(os.environ['A'])"}
    commands = [command(tmp_path, name, code) for name, code in codes.items()]
    statuses = {done.name: status for done, status in Processes(2, {"A": "two"}).run(commands)}
    assert statuses == {"good": 0, "bad": 3, "env": 0}
    assert (tmp_path / "good" / "log").read_text() == "one\n"
    assert (tmp_path / "env" / "log").read_text() == "two\n"
    assert [status for _, status in Processes(1, {"A": "3"}).run(commands[2:])] == [0]
    assert (tmp_path / "env" / "log").read_text() == "two\n3\n"


def test_modules_of_the_working_directory_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "rnnlab").mkdir()
    for name in ("random.py", "rnnlab/__init__.py", "rnnlab/__main__.py"):
        (tmp_path / name).write_text("raise RuntimeError('shadow')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    shown = subprocess.run([*rnnlab_command(), "--version"], capture_output=True, text=True)
    assert (shown.stdout, shown.stderr, shown.returncode) == (f"rnnlab {rnnlab.__version__}\n", "", 0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_more_than_so_many_at_a_time(tmp_path, jobs):
    code = "import time; print(time.time()); time.sleep(0.3); print(time.time())"
    commands = [command(tmp_path, str(number), code) for number in range(4)]
    assert [status for _, status in Processes(jobs, {}).run(commands)] == [0] * 4
    times = [tuple(map(float, each.log.read_text().split())) for each in commands]
    at_once = [sum(start <= moment < end for start, end in times) for moment, _ in times]
    assert max(at_once) == jobs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_what_runs_and_nothing_more_starts(tmp_path, number):
    begun = [tmp_path / "a.begun", tmp_path / "b.begun"]
    commands = [command(tmp_path, name, WAITS, str(file)) for name, file in zip("ab", begun, strict=True)]
    commands.append(command(tmp_path, "c", "print('started')"))
    before = signal.getsignal(number)

    def send():
        while not all(file.exists() for file in begun):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    sender.start()
    processes = Processes(2, {})
    statuses = {done.name: status for done, status in processes.run(commands)}
    sender.join()
    assert statuses == {"a": 128 + number, "b": 128 + number, "c": None}
    assert processes.received == number
    assert (tmp_path / "a" / "log").read_text() == f"signal {int(number)}\n"  # once
    assert not (tmp_path / "c").exists()
    assert signal.getsignal(number) == before


def test_on_windows_the_console_sends_ctrl_c_to_all_processes(monkeypatch):
    processes = Processes(1, {})
    monkeypatch.setattr(processes, "_running", [None])  # to which nothing can be sent
    monkeypatch.setattr(os, "name", "nt")
    processes._send_on(signal.SIGINT, None)
    monkeypatch.undo()
    assert processes.received == signal.SIGINT


def test_a_second_signal_may_come_while_the_first_is_sent_on(tmp_path, monkeypatch):
    begun, sent, kind = tmp_path / "a.begun", [], signal.Signals

    def send():
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    def again(number):
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), signal.SIGTERM)
        return kind(number)

    monkeypatch.setattr("rnnlab.cli.processes.signal.Signals", again)  # called while the lock is held
    sender = threading.Thread(target=send)
    sender.start()
    results = Processes(1, {}).run([command(tmp_path, "a", WAITS, str(begun))])
    # -2: the second signal came while Python ended, where it has given SIGINT its default effect back
    assert [status for _, status in results] in ([130], [143], [-signal.SIGINT])
    sender.join()


def test_a_process_that_cannot_start_ends_the_rest(tmp_path):
    (tmp_path / "file").touch()
    bad = Command("bad", [sys.executable, "-c", ""], tmp_path / "file" / "log")
    with pytest.raises(OSError, match="file"):
        list(Processes(1, {}).run([bad, *(command(tmp_path, str(number), "") for number in range(8))]))
    assert not (tmp_path / "7").exists()  # the first may have started


def test_who_stops_asking_starts_nothing_more(tmp_path):
    ended = Processes(1, {}).run([command(tmp_path, str(number), "") for number in range(8)])
    next(ended)
    ended.close()
    assert not (tmp_path / "7").exists()
