from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from rnnlab.training import (
    UPDATE_RULES,
    Schedule,
    UpdateRule,
    make_update_rule,
    register_schedule,
    register_update_rule,
)

from .own_rules import Cosine, Lion


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Names for this test alone."""
    monkeypatch.setattr(UPDATE_RULES, "_classes", dict(UPDATE_RULES._classes))


@dataclass(kw_only=True)
class Unfinished(UpdateRule):
    slots: ClassVar[tuple[str, ...]] = ("m",)


@pytest.mark.parametrize(
    ("name", "entry", "error", "message"),
    [
        ("adam", Lion, ValueError, "update_rule 'adam' is taken, choose another name"),
        ("", Lion, ValueError, "name is '', expected a string without a colon"),
        ("a:b", Lion, ValueError, "name is 'a:b', expected a string without a colon"),
        ("mine", Lion(), TypeError, r"update_rule 'mine': found Lion\(.*, expected a class"),
        ("mine", Unfinished, TypeError, "update_rule 'mine': Unfinished has to define update"),
        ("mine", dict, TypeError, "dict has no config, learning_rate, .*; UpdateRule describes them"),
    ],
)
def test_what_cannot_be_registered(name, entry, error, message):
    with pytest.raises(error, match=message):
        register_update_rule(name, entry)
    assert "mine" not in UPDATE_RULES


def test_a_rule_that_is_no_dataclass_is_refused():
    class Nesterov(UpdateRule):
        learning_rate: float = 1e-4
        beta: float = 0.9

        def update(self, w, dw, *, learning_rate, scale):
            w -= learning_rate * scale * dw

    with pytest.raises(TypeError, match="a dataclass, so it ignores the options learning_rate, beta: put"):
        register_update_rule("mine", Nesterov)

    class Own(Schedule):
        over: int

        def multiplier(self, iteration, epoch):
            return 1 / (1 + epoch / self.over)

    with pytest.raises(TypeError, match="Own is not a dataclass, so it ignores the options over: put"):
        register_schedule("own", Own)


def test_no_schedule_has_the_name_of_functions():
    with pytest.raises(ValueError, match="name 'function' is taken, choose another name"):
        register_schedule("function", Cosine)


def defined_again():
    """A class, as a notebook cell that is run again defines it."""

    class Again(Lion):
        pass

    return Again


def test_a_class_that_is_defined_again_replaces_itself():
    for again in (defined_again(), defined_again()):
        register_update_rule("again", again)
        assert type(make_update_rule("again")) is again


def test_a_name_is_given_to_one_class():
    register_update_rule("lion", Lion)
    with pytest.raises(ValueError, match="update_rule 'lion' is taken, choose another name"):
        register_update_rule("lion", defined_again())
    assert type(make_update_rule("lion")) is Lion


def test_a_misspelt_name_gets_a_suggestion():
    register_update_rule("lion", Lion)
    with pytest.raises(ValueError, match="update_rule is 'lionn', .*; did you mean lion?"):
        make_update_rule("lionn")


def test_a_module_with_a_mistake(tmp_path, monkeypatch):
    (tmp_path / "mistaken_rule.py").write_text("class Own(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"invalid syntax \(mistaken_rule.py, line 1\)"):
        make_update_rule("mistaken_rule:Own")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("adma", r"did you mean adam\?"), ("qq", "a registered name is known only in the process that")],
)
def test_a_name_that_nothing_has(name, hint):
    with pytest.raises(ValueError, match=f"update_rule is '{name}', expected one of sgd, .*:Object'; {hint}"):
        make_update_rule(name, {})
