from __future__ import annotations

import signal
import threading

import pytest

from rnnlab.training.interrupt import Interrupt


def test_the_second_ctrl_c_raises():
    previous = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        assert not interrupt.requested
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is previous


def test_another_thread_receives_no_signals():
    found = []

    def work():
        with Interrupt() as interrupt:
            found.append(interrupt.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
