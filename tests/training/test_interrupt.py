from __future__ import annotations

import signal
import threading

import pytest

from rnnlab.training.interrupt import SIGNALS, Interrupt, Interrupted


@pytest.fixture(autouse=True)
def hangups_end_the_process():
    """As in a terminal, even if the tests run with nohup."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    previous = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, previous)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_raises(number, capfd):
    previous = signal.getsignal(number)
    with Interrupt() as interrupt:
        assert interrupt.received is None
        signal.raise_signal(number)
        assert interrupt.received is number
        assert capfd.readouterr().err.endswith(
            ": saving a checkpoint after this step; a second signal stops at once\n"
        )
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is previous


needs_hangups = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows")


@needs_hangups
def test_a_closed_terminal_sends_hangups_twice():
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert interrupt.received is signal.SIGHUP
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@needs_hangups
def test_a_hangup_that_is_ignored_stays_ignored():
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGHUP)
            assert interrupt.received is None
    finally:
        signal.signal(signal.SIGHUP, previous)


@needs_hangups
def test_a_terminal_that_is_closed(monkeypatch):
    def closed(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.write", closed)
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGHUP)
        assert interrupt.received is not None


def test_while_the_parameters_change_the_second_signal_waits():
    with Interrupt() as interrupt:
        signal.raise_signal(signal.SIGINT)
        interrupt.hold()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.release()
        interrupt.release()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with Interrupt() as interrupt:
        interrupt.hold()
        signal.raise_signal(signal.SIGINT)
        interrupt.release()
        assert interrupt.received is not None


def test_at_once_the_first_signal_raises():
    with Interrupt() as interrupt:
        with pytest.raises(Interrupted), interrupt.at_once():
            signal.raise_signal(signal.SIGTERM)
        assert interrupt.received is signal.SIGTERM
        with pytest.raises(Interrupted), interrupt.at_once():
            pytest.fail("the signal came before")
    with Interrupt() as interrupt:
        with interrupt.at_once():
            pass
        signal.raise_signal(signal.SIGTERM)
        assert interrupt.received is not None


def test_a_handler_that_is_not_pythons_stays(monkeypatch):
    """As in a program in C that runs Python."""
    getsignal, previous = signal.getsignal, signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(
        signal, "getsignal", lambda number: (number != signal.SIGTERM and getsignal(number)) or None
    )
    terminating = getsignal(signal.SIGTERM)
    with Interrupt() as interrupt:
        assert getsignal(signal.SIGTERM) is terminating
        signal.raise_signal(signal.SIGINT)
        assert interrupt.received is not None
    assert getsignal(signal.SIGINT) is previous


def test_another_thread_receives_no_signals():
    found = []

    def work():
        with Interrupt() as interrupt:
            found.append(interrupt.received)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [None]
