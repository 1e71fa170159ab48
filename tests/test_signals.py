"""Signals wait within a context; nothing is lost, and every handler is there again at its end."""

import signal
import threading
import time
from contextlib import nullcontext

import pytest

from rnnlab.signals import deferred_signals, deliver_signals

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX")


class Alarm(Exception):
    """What the handler raises."""


def ring(number, frame):
    raise Alarm(number)


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGUSR1)}
    signal.signal(signal.SIGALRM, ring)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("inner", [nullcontext, deferred_signals])
def test_a_signal_waits_for_the_end_of_the_outermost_context(inner):
    done = []

    def work():
        with deferred_signals():
            with inner():
                signal.raise_signal(signal.SIGALRM)
            done.append("the rest of the block")

    with pytest.raises(Alarm):
        work()
    assert done
    assert signal.getsignal(signal.SIGALRM) is ring


def test_without_a_signal_nothing_happens():
    with deferred_signals():
        assert signal.getsignal(signal.SIGALRM) is not ring
    assert signal.getsignal(signal.SIGALRM) is ring


def test_each_handler_gets_its_signals_in_order():
    received = []
    for number in (signal.SIGALRM, signal.SIGUSR1):
        signal.signal(number, lambda number, frame: received.append(number))
    with deferred_signals():
        for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGUSR1):
            signal.raise_signal(number)
        assert received == []
    assert received == [signal.SIGUSR1, signal.SIGALRM, signal.SIGUSR1]


def test_delivery_between_two_steps():
    done = []

    def work():
        with deferred_signals():
            deliver_signals()
            for step in range(3):
                signal.raise_signal(signal.SIGALRM)
                done.append(step)
                deliver_signals()

    with pytest.raises(Alarm):
        work()
    assert done == [0]
    assert signal.getsignal(signal.SIGALRM) is ring


def test_an_error_of_the_block():
    def fail(number=None):
        with deferred_signals():
            if number is not None:
                signal.raise_signal(number)
            raise ValueError("own")

    with pytest.raises(ValueError, match="own"):
        fail()
    with pytest.raises(Alarm) as caught:
        fail(signal.SIGALRM)
    assert isinstance(caught.value.__context__, ValueError)


def test_other_threads_have_no_signals():
    done = []

    def work():
        with deferred_signals():
            deliver_signals()
            done.append(signal.getsignal(signal.SIGALRM) is ring)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_at_any_moment():
    """The block runs whole or not at all, and no handler is lost."""

    def work(seconds):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        until = time.perf_counter() + 4e-4
        while time.perf_counter() < until:
            with deferred_signals():
                steps.append("begin")
                steps.append("end")

    raised, before = 0, signal.getsignal(signal.SIGINT)
    for k in range(300):
        steps = []
        try:
            try:
                work(1e-5 + k * 1e-6)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Alarm:
            raised += 1
        assert steps.count("begin") == steps.count("end")
        assert signal.getsignal(signal.SIGALRM) is ring
        assert signal.getsignal(signal.SIGINT) is before
    assert raised > 200
