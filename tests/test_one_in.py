"""The default tests have some of many alike cases, the same ones in every run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from .one_in import pytest_collection_modifyitems


class Item:
    """A case of a test."""

    def __init__(self, nodeid, fixtures=(), values=(), **marks):
        self.nodeid, self.fixturenames, self.marks = nodeid, fixtures, marks
        self.callspec = SimpleNamespace(params=dict(enumerate(values)))

    def get_closest_marker(self, name):
        return SimpleNamespace(args=self.marks[name]) if name in self.marks else None

    def add_marker(self, name):
        self.marks[name] = ()


def kept(items):
    pytest_collection_modifyitems(items)
    return [item.nodeid for item in items if "slow" not in item.marks]


@pytest.mark.parametrize(("cases", "expected"), [(1, 1), (3, 1), (4, 2), (30, 10)])
def test_one_in_three_and_at_least_one(cases, expected):
    assert len(kept([Item(f"a.py::test[{n}]", one_in=(3,)) for n in range(cases)])) == expected


def test_tests_without_the_mark_have_all_cases():
    items = [Item(f"a.py::test[{n}]", values=(n,)) for n in range(9)] + [Item("a.py::single")]
    assert len(kept(items)) == 10


@pytest.mark.parametrize("where", [{"fixtures": ("simulated",)}, {"values": ("simulated",)}])
def test_on_the_stand_in_it_is_one_in_four(where):
    assert len(kept([Item(f"a.py::test[{n}]", **where) for n in range(12)])) == 3


def test_cases_that_are_marked_already_do_not_count():
    gpu = [Item(f"a.py::test[gpu-{n}]", values=("gpu",), gpu=()) for n in range(6)]
    slow = [Item(f"a.py::test[slow-{n}]", slow=()) for n in range(6)]
    others = [Item(f"a.py::test[simulated-{n}]", values=("simulated",)) for n in range(4)]
    assert len(set(kept(gpu + slow + others)) & {item.nodeid for item in others}) == 1
    assert not any("slow" in item.marks for item in gpu)


def test_the_order_does_not_matter():
    names = [f"a.py::test[{n}]" for n in range(20)]
    first, second = ([Item(name, one_in=(4,)) for name in each] for each in (names, names[::-1]))
    assert sorted(kept(first)) == sorted(kept(second))
