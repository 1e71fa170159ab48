"""The tables of docs/training.md have the keys and defaults of all update rules and schedules."""

import ast
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from rnnlab.training import optim, sampling_schedules, schedules

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"
WORDS = {"required": MISSING, "none": None, "false": False}


def documented(heading):
    """The keys of each name in the table below a heading, with their defaults."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
    rows = [line.split("|")[1:4] for line in section.splitlines() if line.startswith("| `")]
    found = {}
    for names, key, default in rows:
        for name in re.findall(r"`(\w+)`", names):
            keys, default = found.setdefault(name, {}), default.strip(" `")
            if key.strip():
                assert key.strip(" `") not in keys
                keys[key.strip(" `")] = WORDS[default] if default in WORDS else ast.literal_eval(default)
    return found


@pytest.mark.parametrize(
    ("heading", "module", "registry"),
    [
        ("Update rules", optim, optim.UPDATE_RULES),
        ("Schedules", schedules, schedules.SCHEDULES),
        ("Scheduled sampling", sampling_schedules, sampling_schedules.SAMPLING_SCHEDULES),
    ],
)
def test_keys_and_defaults_are_those_of_the_code(heading, module, registry):
    built_in = {name: each for name, each in registry.items() if each.__module__ == module.__name__}
    assert documented(heading) == {
        name: {field.name: field.default for field in fields(each) if field.init}
        for name, each in built_in.items()
    }
