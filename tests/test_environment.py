import os

import pytest

from rnnlab.environment import environment

SET, UNSET = "RNNLAB_TEST_SET", "RNNLAB_TEST_UNSET"


def test_variables_are_as_before(monkeypatch):
    monkeypatch.setenv(SET, "old")
    monkeypatch.delenv(UNSET, raising=False)
    with environment(**{SET: "new", UNSET: "1"}):
        assert (os.environ[SET], os.environ[UNSET]) == ("new", "1")
    assert os.environ[SET] == "old"
    assert UNSET not in os.environ


def test_a_variable_that_is_deleted_meanwhile(monkeypatch):
    monkeypatch.setenv(SET, "old")
    monkeypatch.delenv(UNSET, raising=False)
    with environment(**{SET: "new", UNSET: "1"}):
        del os.environ[SET], os.environ[UNSET]
    assert os.environ[SET] == "old"


def fail():
    with environment(**{UNSET: "1"}):
        raise ZeroDivisionError


def test_variables_are_as_before_after_an_error(monkeypatch):
    monkeypatch.delenv(UNSET, raising=False)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert UNSET not in os.environ
