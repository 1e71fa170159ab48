"""What ranks do together. The ranks are threads here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnlab.errors import InputError
from rnnlab.training.distributed import (
    ALONE,
    by_rank_0,
    device_of_rank,
    gather_results,
    in_shares,
    of_rank_0,
    rank_0_prints,
)
from rnnlab.training.interrupt import Interrupted

from ..ranks import on_ranks


def test_the_device_of_a_rank(monkeypatch):
    monkeypatch.setattr("rnnlab.training.distributed.ranks.num_gpus", lambda: 2)
    ranks = [SimpleNamespace(rank=rank, size=5, local_rank=rank % 3) for rank in range(5)]
    assert [device_of_rank(each, "gpu") for each in ranks] == ["gpu:0", "gpu:1", "gpu:0", "gpu:0", "gpu:1"]
    assert [device_of_rank(each, "gpu:1") for each in ranks[:2]] == ["gpu:1", "gpu:1"]
    assert device_of_rank(ranks[1], "cpu") == "cpu"
    assert device_of_rank(ALONE, "gpu") == "gpu"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_shares_come_back_in_order(size):
    def squares(communicator):
        def square(number):
            done.append(number)
            return number * number

        return in_shares(communicator, range(4), square)

    done = []
    assert on_ranks(size, squares) == [[0, 1, 4, 9]] * size
    assert sorted(done) == [0, 1, 2, 3]


class SignalledOnArrival:
    """A rank that a signal interrupts as it returns from an exchange, before it has seen the values."""

    def __init__(self, communicator, exchange):
        self.rank, self.size = communicator.rank, communicator.size
        self._communicator, self._left = communicator, exchange

    def gather(self, value):
        values = self._communicator.gather(value)
        self._left -= 1
        if self._left == 0:
            raise Interrupted
        return values


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("exchange", [1, 2, 3])
def test_signals_at_several_ranks_leave_them_in_step(first, exchange):
    """One rank at work and another in an exchange: mpirun passes a signal on to all."""

    def work(communicator):
        def interrupted():
            gather_results(signalled, "one")
            if communicator.rank == first:
                raise Interrupted
            gather_results(signalled, "two")
            gather_results(signalled, "three")

        is_to_be = communicator.rank == (first + 1) % 3
        signalled = SignalledOnArrival(communicator, exchange) if is_to_be else communicator
        with pytest.raises(Interrupted):
            of_rank_0(communicator, interrupted)
        return communicator.gather(communicator.rank)

    assert on_ranks(3, work) == [[0, 1, 2]] * 3


def test_rank_0_alone_works():
    def work(communicator):
        return by_rank_0(communicator, lambda: done.append(communicator.rank) or "scores")

    done = []
    assert on_ranks(3, work) == ["scores"] * 3
    assert done == [0]
    assert by_rank_0(ALONE, lambda: "scores") == "scores"


def test_an_error_of_rank_0_is_one_of_all():
    def work(communicator):
        def fail():
            raise InputError("no Java")

        with pytest.raises(InputError, match="no Java"):
            by_rank_0(communicator, fail)

    on_ranks(3, work)


def test_work_of_all_ranks_is_that_of_rank_0():
    found = on_ranks(3, lambda communicator: of_rank_0(communicator, lambda: communicator.rank))
    assert found == [0, 0, 0]


@pytest.mark.parametrize(("rank", "expected"), [(0, "before\nwithin\nafter\n"), (1, "before\nafter\n")])
def test_rank_0_alone_prints(rank, expected, capsys):
    print("before")
    with rank_0_prints(SimpleNamespace(rank=rank)):
        print("within")
    print("after")
    assert capsys.readouterr().out == expected


def test_other_ranks_may_print_what_the_locale_has_no_letter_for():
    with rank_0_prints(SimpleNamespace(rank=1)):
        print("\ud800")
